package database_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestDiskAlmostFull leaves room for the probe of Ready and not for a large document: once one did not
// fit, the database is not ready until there is room for one.
func TestDiskAlmostFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=6m,mode=0700"); err != nil {
		t.Skipf("a small file system needs the right to mount one: %v", err)
	}
	t.Cleanup(func() { must.Succeed(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	db := relationaltest.OpenSQLite(t, dir)
	write := func(size int) error {
		_, err := db.Exec(t.Context(), "INSERT INTO documents VALUES (zeroblob(?))", size)
		return err
	}
	_, err := db.Exec(t.Context(), "CREATE TABLE documents (document BLOB)")
	must.Succeed(t, err)
	filler, err := os.Create(filepath.Join(dir, "filler"))
	must.Succeed(t, err)
	size := int64(0)
	for err == nil {
		var n int
		n, err = filler.Write(make([]byte, 4<<10))
		size += int64(n)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	must.Succeed(t, filler.Truncate(size-256<<10))
	must.Succeed(t, write(1))
	must.Succeed(t, db.Ready(t.Context()))
	if err := write(512 << 10); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("a large document is answered with %v", err)
	}
	must.Succeed(t, write(1))
	for range 3 {
		db.ProbeAgain()
		if err := db.Ready(t.Context()); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("after a large document did not fit, Ready returned %v", err)
		}
	}
	must.Succeed(t, filler.Truncate(0))
	must.Succeed(t, write(512<<10))
	db.ProbeAgain()
	must.Succeed(t, db.Ready(t.Context()))
	if left, err := filepath.Glob(filepath.Join(dir, "*room*")); err != nil || len(left) > 0 {
		t.Errorf("the probes have left %q, error %v", left, err)
	}
}
