package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// WriteOptions are the options of Write.
type WriteOptions struct {
	Mode    fs.FileMode // the permissions of the file
	Replace bool        // replace an existing file
}

// Write calls fill to write a file, and returns its size in bytes. The file appears at path only
// when it is complete and on disk: Write uses a temporary name in the same folder, and then renames
// the file. If fill returns an error, Write returns it unchanged and leaves no file.
//
// The other errors name the path as it was given: fault.Conflict if the file exists and Replace is
// false, even if another process created it meanwhile; fault.Invalid if path is not a regular file;
// fault.Unavailable if the file cannot be written.
func Write(path string, o WriteOptions, fill func(*os.File) error) (size int64, err error) {
	if err := checkTarget(path, o); err != nil {
		return 0, err
	}
	// the same folder, because rename needs the same file system
	temp, err := os.CreateTemp(filepath.Dir(path), ".tollgate-*")
	if err != nil {
		return 0, writeError(path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // no-op after the rename
	defer func() { _ = temp.Close() }()           // Sync has returned any error
	if err := fill(temp); err != nil {
		return 0, err
	}
	info, err := temp.Stat()
	if err := errors.Join(err, temp.Chmod(o.Mode), temp.Sync()); err != nil {
		return 0, writeError(path, err)
	}
	if err := checkTarget(path, o); err != nil {
		return 0, err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return 0, writeError(path, err)
	}
	return info.Size(), nil
}

// checkTarget returns an error if Write must not create a file at path.
func checkTarget(path string, o WriteOptions) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return writeError(path, err)
	case !info.Mode().IsRegular(): // Invalid even without Replace, so that the caller does not suggest it
		return fault.New(fault.Invalid, path+" is not a regular file, and is not overwritten")
	case !o.Replace:
		return fault.New(fault.Conflict, path+" exists already, and is not overwritten")
	}
	return nil
}

// writeError returns an error that names path. It removes the names from the error of the system,
// because one of them is temporary.
func writeError(path string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return fault.Wrap(fault.Unavailable, "cannot write "+path, err)
}
