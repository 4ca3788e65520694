package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Backup writes the database as it is at one moment into a file, and returns
// its size in bytes. Other processes go on reading and writing meanwhile. The
// file gets its name when it is whole, and nobody else may read it; one that is
// there already is fault.Conflict and stays. fault.NotFound where there is no
// database, fault.Unavailable where the file cannot be written.
func Backup(ctx context.Context, c Config, file string) (size int64, err error) {
	source, err := existing(c.Dir)
	if err != nil {
		return 0, err
	}
	if file, err = filepath.Abs(file); err != nil {
		return 0, unwritable(file, err)
	}
	if _, err := os.Lstat(file); err == nil {
		return 0, fault.New(fault.Conflict, "", file+" is there already, and is not overwritten")
	}
	// Beside the file, so that it can be renamed.
	temp, err := os.CreateTemp(filepath.Dir(file), ".tollgate-backup-*")
	if err != nil {
		return 0, unwritable(file, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // a whole backup has another name by then
	defer func() { _ = temp.Close() }()           // it is on disk by then
	if err := c.copyInto(ctx, source, temp.Name()); err != nil {
		return 0, err
	}
	info, err := temp.Stat()
	if err == nil {
		err = temp.Sync()
	}
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return 0, unwritable(file, err)
	}
	return info.Size(), nil
}

// existing returns the path of the database in a folder.
func existing(dir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, File))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", fault.Wrap(fault.NotFound, "", "there is no database "+path+" (DATA_DIR)", err)
	}
	return path, nil
}

// copyInto copies the database, without its free pages, into an empty file.
func (c Config) copyInto(ctx context.Context, source, target string) error {
	db, err := pool(source, c, "deferred", 1)
	if err != nil {
		return broken(source, err)
	}
	defer func() { _ = db.Close() }() // it was only read
	if err := db.PingContext(ctx); err != nil {
		return broken(source, err)
	}
	if _, err := db.DB.ExecContext(ctx, "VACUUM INTO ?", target); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("backup: %w", ctx.Err())
		}
		return fault.Wrap(fault.Unavailable, "", "cannot copy the database "+source, err)
	}
	return nil
}

func unwritable(file string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fault.Wrap(fault.Unavailable, "", "cannot write "+file, err)
}
