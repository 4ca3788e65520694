package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// TestBackupWhileOthersWrite wants each backup to be a whole database with all
// that was answered before it, and none of its files left elsewhere.
func TestBackupWhileOthersWrite(t *testing.T) {
	dir, kept := t.TempDir(), t.TempDir()
	methods := relational.NewMethods(open(t, config(dir)))
	written, stop := make(chan int), make(chan struct{})
	go func() {
		defer close(written)
		for id := 1; ; id++ {
			if err := methods.Add(t.Context(), catalogue.Method{ID: catalogue.MethodID(id), Path: "/" + strings.Repeat("x", id)}); err != nil {
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
		if err := os.Mkdir(restored, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(restored, sqlite.File)
		size, err := sqlite.Backup(t.Context(), config(dir), file)
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
			t.Fatalf("backup of %d bytes (%v), file %v (%v)", size, err, info, statErr)
		}
		if files, err := os.ReadDir(restored); err != nil || len(files) != 1 {
			t.Errorf("beside the backup there is %v (%v)", files, err)
		}
		got, err := relational.NewMethods(open(t, config(restored))).List(t.Context())
		if err != nil || len(got) < 35+before {
			t.Errorf("the backup holds %d methods, want %d or more (%v)", len(got), 35+before, err)
		}
	}
	close(stop)
	for range written { // until the writer has ended
	}
}

func TestBackupsThatCannotBe(t *testing.T) {
	dir, kept := t.TempDir(), t.TempDir()
	open(t, config(dir))
	there := filepath.Join(kept, "there")
	if err := os.WriteFile(there, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir, file string
		kind      fault.Kind
		names     string
	}{
		"the file is there":    {dir, there, fault.Conflict, there},
		"no folder for it":     {dir, filepath.Join(kept, "none", "file"), fault.Unavailable, "none/file: no such file"},
		"there is no database": {filepath.Join(kept, "none"), filepath.Join(kept, "file"), fault.NotFound, "DATA_DIR"},
	} {
		if _, err := sqlite.Backup(t.Context(), config(c.dir), c.file); !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Backup(ended, config(dir), filepath.Join(kept, "cancelled")); err == nil {
		t.Error("a cancelled backup succeeded")
	}
	files, err := os.ReadDir(kept)
	content, readErr := os.ReadFile(there)
	if err != nil || readErr != nil || len(files) != 1 || string(content) != "precious" {
		t.Errorf("left are %v (%v), %q (%v)", files, err, content, readErr)
	}
}
