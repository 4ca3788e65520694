package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/methodrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestBackupWhileOthersWrite checks that each backup is a complete database with all changes that
// were stored before it, and that it leaves no other files.
func TestBackupWhileOthersWrite(t *testing.T) {
	dir, kept := t.TempDir(), t.TempDir()
	methods := methodrecords.NewMethods(open(t, config(dir)))
	written, stop := make(chan int), make(chan struct{})
	go func() {
		defer close(written)
		for id := 1; ; id++ {
			if err := methods.Add(t.Context(), catalogue.Method{
				ID: catalogue.MethodID(id), Path: "/" + strings.Repeat("x", id),
			}); err != nil {
				t.Error(err)
				return
			}
			select {
			case written <- id:
			case <-stop:
				return
			}
		}
	}()
	for n := range 5 {
		before := <-written
		restored := filepath.Join(kept, string(rune('a'+n)))
		must.Succeed(t, os.Mkdir(restored, 0o700))
		file := filepath.Join(restored, sqlite.File)
		if size, err := sqlite.WriteBackup(t.Context(), config(dir), file, false); err != nil || size == 0 {
			t.Fatalf("%d bytes, %v", size, err)
		}
		if files, err := os.ReadDir(restored); err != nil || len(files) != 1 {
			t.Errorf("next to the backup are the files %v (%v)", files, err)
		}
		got, err := methodrecords.NewMethods(open(t, config(restored))).List(t.Context())
		if err != nil || len(got) < 35+before {
			t.Errorf("the backup has %d methods, want %d or more (%v)", len(got), 35+before, err)
		}
	}
	close(stop)
	for range written { // until the writer has ended
	}
}

func TestBackupsThatFail(t *testing.T) {
	dir, kept := t.TempDir(), t.TempDir()
	open(t, config(dir))
	if _, err := sqlite.WriteBackup(t.Context(), config(filepath.Join(kept, "none")), filepath.Join(kept, "file"),
		false); !fault.Is(err, fault.NotFound) {
		t.Errorf("a backup of no database: %v", err)
	}
	if _, err := sqlite.WriteBackup(t.Context(), config(dir), filepath.Join(kept, "none", "file"),
		false); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a backup to a folder that does not exist: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.WriteBackup(ended, config(dir), filepath.Join(kept, "cancelled"), false); err == nil {
		t.Error("a cancelled backup succeeded")
	}
}

// TestPresent checks that the error for a missing database names its setting, and that Present
// creates no database.
func TestPresent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := sqlite.Present(config(dir)); !fault.Is(err, fault.NotFound) ||
		!strings.Contains(err.Error(), filepath.Join(dir, sqlite.File)) || !strings.Contains(err.Error(), "DATA_DIR") {
		t.Errorf("no database: %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
	open(t, config(dir))
	must.Succeed(t, sqlite.Present(config(dir)))
	file := filepath.Join(t.TempDir(), "file")
	must.Succeed(t, os.WriteFile(file, nil, 0o600))
	if err := sqlite.Present(config(file)); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), file) {
		t.Errorf("a folder that is a file: %v", err)
	}
}

// TestBackupIntoItself checks that a backup does not overwrite the files of the database, under any
// name, and other files only with replace.
func TestBackupIntoItself(t *testing.T) {
	dir := t.TempDir()
	open(t, config(dir))
	link := filepath.Join(t.TempDir(), "link")
	must.Succeed(t, os.Symlink(filepath.Join(dir, sqlite.File), link))
	other := filepath.Join(t.TempDir(), "other")
	must.Succeed(t, os.WriteFile(other, []byte("kept"), 0o600))
	for _, file := range []string{filepath.Join(dir, sqlite.File), filepath.Join(dir, sqlite.File+"-wal"), link} {
		if _, err := sqlite.WriteBackup(t.Context(), config(dir), file, true); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := sqlite.WriteBackup(t.Context(), config(dir), other, false); !fault.Is(err, fault.Conflict) {
		t.Errorf("without replace: %v", err)
	}
	if _, err := sqlite.WriteBackup(t.Context(), config(dir), other, true); err != nil {
		t.Errorf("with replace: %v", err)
	}
}
