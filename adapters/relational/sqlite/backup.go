package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Present returns fault.NotFound, with the name of the file and its setting, if there is no
// database. Only Open creates one.
func Present(c Config) error {
	_, err := findDatabase(c.Dir)
	return err
}

// privateMode are the permissions of a backup, which holds secrets.
const privateMode = 0o600

// WriteBackup writes the state of the database at one moment into a file, and returns the size of
// the file in bytes. Other processes can read and write the database meanwhile. It returns
// fault.NotFound if there is no database, fault.Conflict if the file exists and replace is false,
// fault.Invalid if the file is part of the database, and fault.Unavailable if the copy cannot be
// written.
func WriteBackup(ctx context.Context, c Config, file string, replace bool) (int64, error) {
	source, err := findDatabase(c.Dir)
	if err != nil {
		return 0, err
	}
	if holdsDatabase(c, file) {
		return 0, fault.New(fault.Invalid, file+" is the database itself")
	}
	return files.Write(file, files.WriteOptions{Mode: privateMode, Replace: replace}, func(f *os.File) error {
		return c.copyInto(ctx, source, f.Name())
	})
}

// holdsDatabase reports whether the database is kept in a file, so that a backup there would
// destroy it.
func holdsDatabase(c Config, file string) bool {
	of, err := os.Stat(file)
	if err != nil {
		return false
	}
	for _, suffix := range [...]string{"", "-wal", "-shm"} { // https://sqlite.org/tempfiles.html
		if own, err := os.Stat(filepath.Join(c.Dir, File+suffix)); err == nil && os.SameFile(own, of) {
			return true
		}
	}
	return false
}

// findDatabase returns the path of the database in a folder.
func findDatabase(dir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, File))
	if err != nil {
		return "", brokenFile(dir, err)
	}
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fault.New(fault.NotFound,
			"there is no database "+path+": DATA_DIR names its folder, and the service makes it at its first start")
	case err != nil:
		return "", brokenFile(path, err)
	}
	return path, nil
}

// copyInto copies the database, without its free pages, into an empty file.
func (c Config) copyInto(ctx context.Context, source, target string) error {
	target, err := filepath.Abs(target) // SQLite could read a relative name as a URL
	if err != nil {
		return fault.Wrap(fault.Unavailable, "cannot copy the database "+source, err)
	}
	db, err := newPool(source, c, "deferred", 1, ofTables...)
	if err != nil {
		return brokenFile(source, err)
	}
	defer func() { _ = db.Close() }() // it was not changed
	if err := db.PingContext(ctx); err != nil {
		return brokenFile(source, err)
	}
	if _, err := db.DB.ExecContext(ctx, "VACUUM INTO ?", target); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("backup: %w", ctx.Err())
		}
		return fault.Wrap(fault.Unavailable, "cannot copy the database "+source, err)
	}
	return nil
}
