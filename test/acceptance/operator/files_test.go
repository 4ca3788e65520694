package operator

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// TestPermissions checks that only the owner can read the files that the service writes, with any
// umask.
func TestPermissions(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	p := e.NewPerson(t, "ada@example.com")
	p.Login(t, s)
	p.StepUp(t, e, s) // the code is written to a file
	seen := 0
	err := filepath.WalkDir(e.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == e.Dir || strings.HasPrefix(path, filepath.Join(e.Dir, "runtime")) {
			return err // the rules are the test's
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		seen++
		if open := info.Mode().Perm() & 0o077; open != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil || seen < 5 { // folders, database, key, codes
		t.Errorf("looked at %d files, %v", seen, err)
	}
}

// TestSecretsFromFiles starts with secrets in files, and checks that the log and the settings do
// not show them.
func TestSecretsFromFiles(t *testing.T) {
	e := fixture.NewProduction(t)
	secret := "a-root-secret-of-more-than-32-characters"
	values := map[string]string{"SECRET_KEY": secret}
	var environ []string
	for _, entry := range e.Environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "DATABASE_URL", "KVSTORE_URL":
			values[name] = value
		default:
			environ = append(environ, entry)
		}
	}
	for name, value := range values {
		path := filepath.Join(e.Dir, name)
		fixture.WriteFile(t, path, value+"\n")
		environ = append(environ, name+"_FILE="+path)
	}
	e.Environ = environ
	s := e.Start(t)
	apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, 200)
	shown := e.RunCommand(t, "", "settings") + s.Process.Log()
	for name, value := range values {
		if name != "KVSTORE_URL" && strings.Contains(shown, value) {
			t.Errorf("%s is shown", name)
		}
	}
	_, err := instance.Start(filepath.Join(fixture.BinDir, "tollgate"),
		append(e.Environ, "SECRET_KEY="+secret), "serve")
	if err == nil || !strings.Contains(err.Error(), "SECRET_KEY and SECRET_KEY_FILE are both set") ||
		strings.Contains(err.Error(), secret) {
		t.Errorf("started with both: %v", err)
	}
}
