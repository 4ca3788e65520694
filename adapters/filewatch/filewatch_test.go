package filewatch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

// fixture is a file under watch; nothing happens but in look.
type fixture struct {
	t       *testing.T
	path    string
	watcher *Watcher
	reads   int
	err     error
	log     *logtest.Hook
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "list")}
	f.write("a", 0)
	log, hook := logtest.NewNullLogger()
	f.log = hook
	f.watcher = New(logrus.NewEntry(log), File{f.path, func(string) error { f.reads++; return f.err }})
	return f
}

// write writes the file in place, at a time of its own.
func (f *fixture) write(content string, age time.Duration) {
	f.t.Helper()
	if err := os.WriteFile(f.path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	at := time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC).Add(age)
	if err := os.Chtimes(f.path, at, at); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) want(reads, told int) {
	f.t.Helper()
	if f.reads != reads || len(f.log.AllEntries()) != told {
		f.t.Errorf("read %d times, %d lines in the log; want %d and %d", f.reads, len(f.log.AllEntries()), reads, told)
	}
}

func (f *fixture) look(times int) {
	for range times {
		f.watcher.look()
	}
}

func TestChanges(t *testing.T) {
	f := newFixture(t)
	f.look(3)
	f.want(0, 0)
	f.write("b", time.Hour)
	f.look(1)
	f.want(0, 0) // it may be written on
	f.write("bc", time.Hour)
	f.look(1)
	f.want(0, 0)
	f.look(5)
	f.want(1, 1)
}

func TestRename(t *testing.T) {
	f := newFixture(t)
	old := f.path
	f.path += ".new"
	f.write("b", 0) // as large and as old as the one before
	if err := os.Rename(f.path, old); err != nil {
		t.Fatal(err)
	}
	f.look(3)
	f.want(1, 1)
}

func TestLink(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	other, link := filepath.Join(dir, "other"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(other, []byte("a"), 0o600), os.Symlink(f.path, link)); err != nil {
		t.Fatal(err)
	}
	f.watcher = New(f.watcher.log, File{link, func(string) error { f.reads++; return nil }})
	if err := errors.Join(os.Remove(link), os.Symlink(other, link)); err != nil {
		t.Fatal(err)
	}
	f.look(3)
	f.want(1, 1)
}

func TestRefusedIsToldOnce(t *testing.T) {
	f := newFixture(t)
	f.err = errors.New("line 3")
	f.write("b", time.Hour)
	f.look(5)
	f.want(1, 1)
	f.err = nil
	f.write("c", 2*time.Hour)
	f.look(5)
	f.want(2, 2)
}

func TestGoneIsToldOnce(t *testing.T) {
	f := newFixture(t)
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.look(5)
	f.want(0, 1)
	f.write("a", 0)
	f.look(5)
	f.want(1, 2)
}
