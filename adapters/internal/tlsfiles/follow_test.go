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
)

// files are a folder's, and what is made of them: a configuration named after
// the content of the first, unless that is "broken files". Contents differ in size, for clocks of file systems are coarse.
type files struct {
	dir   string
	loads int
}

func (f *files) path(name string) string { return filepath.Join(f.dir, name) }

func (f *files) put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(f.path(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f *files) load() (*tls.Config, error) {
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

// follow returns what tells the name of the configuration in use.
func (f *files) follow(t *testing.T, log *logrus.Logger) func() string {
	t.Helper()
	c, err := tlsfiles.FollowFiles(log.WithField("part", "test"), f.load, f.path("cert"), f.path("key"))
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		present, err := c.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return present.ServerName
	}
}

func TestFollow(t *testing.T) {
	f := &files{dir: t.TempDir()}
	log, logged := test.NewNullLogger()
	if _, err := tlsfiles.FollowFiles(log.WithField("part", "test"), f.load, f.path("cert")); err == nil {
		t.Error("no error without a file")
	}
	f.put(t, "cert", "first")
	name := f.follow(t, log)
	loads := f.loads
	for range 2 {
		if got := name(); got != "first" || f.loads != loads {
			t.Errorf("in use is %q, loaded %d times more", got, f.loads-loads)
		}
	}
	for _, step := range []struct{ file, content, want string }{
		{"cert", "second", "second"},
		{"cert", "broken files", "second"},
		{"key", "appears", "second"}, // and with it another try
		{"cert", "third one", "third one"},
	} {
		logged.Reset()
		f.put(t, step.file, step.content)
		if got := name(); got != step.want || name() != got || len(logged.Entries) != 1 {
			t.Errorf("after %s: in use is %q, want %q; logged %d lines, want one", step.content, got, step.want, len(logged.Entries))
		}
	}
	if err := os.Remove(f.path("cert")); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "third one" {
		t.Errorf("without the file in use is %q", got)
	}
}

// TestFollowLinks changes files as Kubernetes does: a link turns to another
// folder. Size and time of the files are the same.
func TestFollowLinks(t *testing.T) {
	f := &files{dir: t.TempDir()}
	at := time.Unix(1_800_000_000, 0)
	for _, version := range []string{"one", "two"} {
		f.put(t, version, version)
		if err := os.Chtimes(f.path(version), at, at); err != nil {
			t.Fatal(err)
		}
	}
	point := func(to string) {
		t.Helper()
		if err := errors.Join(os.Symlink(f.path(to), f.path("link")), os.Rename(f.path("link"), f.path("cert"))); err != nil {
			t.Fatal(err)
		}
	}
	point("one")
	log, _ := test.NewNullLogger()
	name := f.follow(t, log)
	point("two")
	if got := name(); got != "two" {
		t.Errorf("in use is %q after the link turned", got)
	}
}
