package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/methodrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func config(dir string) sqlite.Config {
	return sqlite.Config{Dir: dir, BusyTimeout: 5 * time.Second}
}

func open(t *testing.T, c sqlite.Config) *database.DB {
	t.Helper()
	db, closeDB, err := sqlite.Open(t.Context(), c)
	must.Succeed(t, err)
	t.Cleanup(closeDB)
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestOtherUsersCannotReadTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here with ? and #%41")
	db := open(t, config(dir))
	must.Succeed(t, db.Ping(t.Context()))
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has the mode %v (%v)", info.Mode(), err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatalf("the folder has the files %v (%v), want the database and its log", files, err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(f.Name(), sqlite.File) {
			t.Errorf("%s has the mode %v (%v)", f.Name(), info.Mode(), err)
		}
	}
}

func TestFoldersThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Succeed(t, os.WriteFile(file, []byte("this is no database, and long enough to be seen as none"), 0o600))
	taken := filepath.Join(dir, "taken")
	must.Succeed(t, os.MkdirAll(filepath.Join(taken, sqlite.File), 0o700))
	other := filepath.Join(dir, "other")
	must.Succeed(t, os.Mkdir(other, 0o700))
	must.Succeed(t, os.Rename(file, filepath.Join(other, sqlite.File)))
	must.Succeed(t, os.WriteFile(file, nil, 0o600))
	for name, path := range map[string]string{
		"a file is in the way": file, "a folder is in the way": taken, "the file is no database": other,
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := sqlite.Open(t.Context(), config(path))
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), path) ||
				!strings.Contains(err.Error(), "DATA_DIR") {
				t.Errorf("got %v, want an error with the path", err)
			}
		})
	}
}

func TestOpenWithAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := sqlite.Open(ctx, config(t.TempDir())); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestTwoProcessesWriteOneFile opens the file twice, as the service and an operator command do. The
// locks of one are no errors for the other.
func TestTwoProcessesWriteOneFile(t *testing.T) {
	dir := t.TempDir()
	const each = 20
	var all sync.WaitGroup
	for process := range 2 {
		methods := methodrecords.NewMethods(open(t, config(dir)))
		all.Go(func() {
			for i := range each {
				id := catalogue.MethodID(1 + process*each + i)
				if err := methods.Add(t.Context(), catalogue.Method{ID: id, Path: fmt.Sprintf("/%d", id)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := methodrecords.NewMethods(open(t, config(dir))).List(t.Context())
	if err != nil || len(got) != 35+2*each {
		t.Errorf("there are %d methods (%v)", len(got), err)
	}
}

// TestALockHeldForLongIsUnavailable checks that the wait for another process has a limit.
func TestALockHeldForLongIsUnavailable(t *testing.T) {
	dir := t.TempDir()
	holder := open(t, config(dir))
	impatient := config(dir)
	impatient.BusyTimeout = 100 * time.Millisecond
	waiter := methodrecords.NewMethods(open(t, impatient))
	err := holder.Atomically(t.Context(), func(ctx context.Context) error {
		if err := waiter.Remove(t.Context(), catalogue.ListingID); !fault.Is(err, fault.Unavailable) {
			t.Errorf("the waiting write ended with %v", err)
		}
		if _, err := waiter.List(t.Context()); err != nil {
			t.Errorf("a read during a write: %v", err)
		}
		return nil
	})
	must.Succeed(t, err)
	if err := waiter.Remove(t.Context(), catalogue.ListingID); err != nil {
		t.Errorf("after the lock is gone: %v", err)
	}
}

func TestConfigValidate(t *testing.T) {
	must.Succeed(t, config("x").Validate())
	cases := map[string]func(*sqlite.Config){
		"DATA_DIR": func(c *sqlite.Config) { c.Dir = "" },
	}
	for variable, spoil := range cases {
		c := config("x")
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

// TestAccessToTheFile checks that a database that every user may write to is not opened, and that
// there is a warning of one that every user may read.
func TestAccessToTheFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not have these permissions")
	}
	c := sqlite.Config{Dir: t.TempDir(), BusyTimeout: time.Second}
	for _, mode := range []os.FileMode{0, 0o600, 0o644, 0o666} {
		if mode != 0 {
			must.Succeed(t, os.Chmod(filepath.Join(c.Dir, sqlite.File), mode))
		}
		_, end, err := sqlite.Open(t.Context(), c)
		if err == nil {
			end()
		}
		if refused := mode == 0o666; (err != nil) != refused || refused && !strings.Contains(err.Error(), "DATA_DIR") {
			t.Errorf("mode %#o: Open returns %v", mode, err)
		}
		if warning := c.AccessWarning(); (warning != "") != (mode == 0o644) {
			t.Errorf("mode %#o: the warning is %q", mode, warning)
		}
	}
}
