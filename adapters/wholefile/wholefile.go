// Package wholefile makes the files that operator commands write: whole or not
// at all, and in the place of another only where that is wanted. What stands in
// them is the business of others.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Options is how a file is made.
type Options struct {
	Mode    fs.FileMode // its permissions
	Replace bool        // whether it may take the place of another
}

// Write makes the file at path of what fill writes and returns its size in
// bytes. It has another name until it is on disk, beside the one it gets; the
// error of fill is returned as it is, and leaves nothing behind.
//
// Whoever is told of a failure gave the path, so that all of these name it as
// it was given: fault.Conflict when a file is there and is not to be replaced,
// also when it came meanwhile; fault.Invalid when what is there is no file;
// fault.Unavailable when nothing can be written there.
func Write(path string, o Options, fill func(*os.File) error) (size int64, err error) {
	if err := free(path, o); err != nil {
		return 0, err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".tollgate-*") // beside it, so that it can be renamed
	if err != nil {
		return 0, unwritable(path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // a whole one has another name by then
	defer func() { _ = temp.Close() }()           // it is on disk by then
	if err := fill(temp); err != nil {
		return 0, err
	}
	info, err := temp.Stat()
	if err := errors.Join(err, temp.Chmod(o.Mode), temp.Sync()); err != nil {
		return 0, unwritable(path, err)
	}
	if err := free(path, o); err != nil {
		return 0, err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return 0, unwritable(path, err)
	}
	return info.Size(), nil
}

// free reports whether a file may get its name.
func free(path string, o Options) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unwritable(path, err)
	case !info.Mode().IsRegular(): // whatever the options: nobody is told to replace it
		return fault.New(fault.Invalid, "", path+" is not a regular file, and is not overwritten")
	case !o.Replace:
		return fault.New(fault.Conflict, "", path+" is there already, and is not overwritten")
	}
	return nil
}

// unwritable leaves out the names that an error of the system comes with: one
// of them is temporary.
func unwritable(path string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return fault.Wrap(fault.Unavailable, "", "cannot write "+path, err)
}
