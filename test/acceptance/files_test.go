package acceptance

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// TestPermissions wants what the service writes to be its owner's alone, whatever the umask is.
func TestPermissions(t *testing.T) {
	e := newEnvironment(t, "embedded")
	s := e.start(t)
	p := e.newPerson(t, "ada@example.com")
	p.login(t, s)
	p.stepUp(t, e, s) // the code is written to a file
	seen := 0
	err := filepath.WalkDir(e.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == e.dir || strings.HasPrefix(path, filepath.Join(e.dir, "runtime")) {
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

// TestSecretsFromFiles starts on secrets that stand in files, and wants none of them shown.
func TestSecretsFromFiles(t *testing.T) {
	e := production(t)
	secret := "a-root-secret-of-more-than-32-characters"
	values := map[string]string{"SECRET_KEY": secret}
	var environ []string
	for _, entry := range e.environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "DATABASE_URL", "KVSTORE_URL":
			values[name] = value
		default:
			environ = append(environ, entry)
		}
	}
	for name, value := range values {
		path := filepath.Join(e.dir, name)
		write(t, path, value+"\n")
		environ = append(environ, name+"_FILE="+path)
	}
	e.environ = environ
	s := e.start(t)
	call(t, "GET", s.api+"/ready", nil).want(t, 200)
	shown := e.tollgate(t, "", "settings") + s.process.Log()
	for name, value := range values {
		if name != "KVSTORE_URL" && strings.Contains(shown, value) {
			t.Errorf("%s is shown", name)
		}
	}
	_, err := instance.Start(filepath.Join(built, "tollgate"), append(e.environ, "SECRET_KEY="+secret), "serve")
	if err == nil || !strings.Contains(err.Error(), "SECRET_KEY and SECRET_KEY_FILE are both set") || strings.Contains(err.Error(), secret) {
		t.Errorf("started with both: %v", err)
	}
}
