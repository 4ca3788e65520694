package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/test/must"
)

// fixture is a watched file. The watcher checks it only when a test calls check.
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
	f.overwrite("a", 0)
	log, hook := logtest.NewNullLogger()
	f.log = hook
	f.watcher = NewWatcher(logrus.NewEntry(log), WatchedFile{f.path, func(string) error { f.reads++; return f.err }})
	return f
}

// overwrite writes the file in place and sets its time of modification.
func (f *fixture) overwrite(content string, age time.Duration) {
	f.t.Helper()
	must.Succeed(f.t, os.WriteFile(f.path, []byte(content), 0o600))
	at := time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC).Add(age)
	must.Succeed(f.t, os.Chtimes(f.path, at, at))
}

func (f *fixture) wantReads(reads, lines int) {
	f.t.Helper()
	if f.reads != reads || len(f.log.AllEntries()) != lines {
		f.t.Errorf("read %d times, %d lines in the log; want %d and %d", f.reads, len(f.log.AllEntries()), reads, lines)
	}
}

func (f *fixture) check(times int) {
	for range times {
		f.watcher.checkFiles()
	}
}

func TestWatchChangedFile(t *testing.T) {
	f := newFixture(t)
	f.check(3)
	f.wantReads(0, 0)
	f.overwrite("b", time.Hour)
	f.check(1)
	f.wantReads(0, 0) // another process may still be writing the file
	f.overwrite("bc", time.Hour)
	f.check(1)
	f.wantReads(0, 0)
	f.check(5)
	f.wantReads(1, 1)
}

func TestWatchRenamedFile(t *testing.T) {
	f := newFixture(t)
	old := f.path
	f.path += ".new"
	f.overwrite("b", 0) // with the size and time of the previous file
	must.Succeed(t, os.Rename(f.path, old))
	f.check(3)
	f.wantReads(1, 1)
}

func TestWatchChangedLink(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	other, link := filepath.Join(dir, "other"), filepath.Join(dir, "link")
	must.Succeed(t, errors.Join(os.WriteFile(other, []byte("a"), 0o600), os.Symlink(f.path, link)))
	f.watcher = NewWatcher(f.watcher.log, WatchedFile{link, func(string) error { f.reads++; return nil }})
	must.Succeed(t, errors.Join(os.Remove(link), os.Symlink(other, link)))
	f.check(3)
	f.wantReads(1, 1)
}

func TestRefusedFileIsLoggedOnce(t *testing.T) {
	f := newFixture(t)
	f.err = errors.New("line 3")
	f.overwrite("b", time.Hour)
	f.check(5)
	f.wantReads(1, 1)
	f.err = nil
	f.overwrite("c", 2*time.Hour)
	f.check(5)
	f.wantReads(2, 2)
}

func TestRemovedFileIsLoggedOnce(t *testing.T) {
	f := newFixture(t)
	must.Succeed(t, os.Remove(f.path))
	f.check(5)
	f.wantReads(0, 1)
	f.overwrite("a", 0)
	f.check(5)
	f.wantReads(1, 2)
}
