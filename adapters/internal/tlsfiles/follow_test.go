package tlsfiles_test

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/test/must"
)

// testFiles are files in a folder. Their configuration has the content of the file cert as its
// name; the content "broken files" is invalid. The contents in the tests differ in size, because
// file times are coarse.
type testFiles struct {
	dir   string
	loads int
}

func (f *testFiles) path(name string) string { return filepath.Join(f.dir, name) }

func (f *testFiles) writeFile(t *testing.T, name, content string) {
	t.Helper()
	must.Succeed(t, os.WriteFile(f.path(name), []byte(content), 0o600))
}

func (f *testFiles) load() (*tls.Config, error) {
	f.loads++
	content, err := os.ReadFile(f.path("cert"))
	if err != nil {
		return nil, err
	}
	if string(content) == "broken files" {
		return nil, errors.New("broken")
	}
	return &tls.Config{ServerName: string(content), MinVersion: tls.VersionTLS13}, nil
}

// follow returns a function that returns the name of the configuration in use.
func (f *testFiles) follow(t *testing.T, log *logrus.Logger) func() string {
	t.Helper()
	c, err := tlsfiles.FollowFiles(log.WithField("part", "test"), f.load, f.path("cert"), f.path("key"))
	must.Succeed(t, err)
	return func() string {
		present, err := c.GetConfigForClient(nil)
		must.Succeed(t, err)
		return present.ServerName
	}
}

func TestFollow(t *testing.T) {
	f := &testFiles{dir: t.TempDir()}
	log, logged := test.NewNullLogger()
	if _, err := tlsfiles.FollowFiles(log.WithField("part", "test"), f.load, f.path("cert")); err == nil {
		t.Error("FollowFiles returns no error without a file")
	}
	f.writeFile(t, "cert", "first")
	name := f.follow(t, log)
	loads := f.loads
	for range 2 {
		if got := name(); got != "first" || f.loads != loads {
			t.Errorf("%q is in use and was loaded again %d times", got, f.loads-loads)
		}
	}
	for _, step := range []struct{ file, content, want string }{
		{"cert", "second", "second"},
		{"cert", "broken files", "second"},
		{"key", "appears", "second"}, // the files are loaded again
		{"cert", "third one", "third one"},
	} {
		logged.Reset()
		f.writeFile(t, step.file, step.content)
		if got := name(); got != step.want || name() != got || len(logged.Entries) != 1 {
			t.Errorf("after %s: %q is in use, want %q; %d lines were logged, want 1", step.content, got, step.want,
				len(logged.Entries))
		}
	}
	must.Succeed(t, os.Remove(f.path("cert")))
	if got := name(); got != "third one" {
		t.Errorf("without the file %q is in use", got)
	}
}

// TestFollowLinks changes the target of a symbolic link, like Kubernetes. Size and time of both
// files are equal.
func TestFollowLinks(t *testing.T) {
	f := &testFiles{dir: t.TempDir()}
	at := time.Unix(1_800_000_000, 0)
	for _, version := range []string{"one", "two"} {
		f.writeFile(t, version, version)
		must.Succeed(t, os.Chtimes(f.path(version), at, at))
	}
	point := func(to string) {
		t.Helper()
		must.Succeed(t, errors.Join(os.Symlink(f.path(to), f.path("link")),
			os.Rename(f.path("link"), f.path("cert"))))
	}
	point("one")
	log, _ := test.NewNullLogger()
	name := f.follow(t, log)
	point("two")
	if got := name(); got != "two" {
		t.Errorf("%q is in use after the link changed", got)
	}
}
