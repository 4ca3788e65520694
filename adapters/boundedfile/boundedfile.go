// Package boundedfile reads files that somebody else writes: ordinary ones, and never more of them than was agreed. What is in
// them, and who may have written it, is the caller's business.
package boundedfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

var errNoFile = errors.New("is not a file")

// Open opens a file of at most so many bytes. Nothing beyond them is read, whatever is written to the file meanwhile. What is no
// ordinary file, such as a folder or a pipe, or is too large, is a *fs.PathError like any other.
func Open(path string, most int64) (io.ReadCloser, error) {
	f, _, err := openRegular(path, most)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, most), f}, nil
}

// Read returns what is in a file of at most so many bytes. Errors are those of Open.
func Read(path string, most int64) ([]byte, error) {
	f, size, err := openRegular(path, most)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	content := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := content.ReadFrom(io.LimitReader(f, most+1)); err != nil {
		return nil, err //nolint:wrapcheck // the file has put its name into it
	}
	if int64(content.Len()) > most { // it has grown
		return nil, tooLarge(path, most)
	}
	return content.Bytes(), nil
}

// openRegular looks before it opens, since opening a pipe waits for whoever writes to it.
func openRegular(path string, most int64) (f *os.File, size int64, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, &fs.PathError{Op: "open", Path: path, Err: errNoFile}
	case info.Size() > most:
		return nil, 0, tooLarge(path, most)
	}
	f, err = os.Open(path) // #nosec G304 -- who calls us was told by the operator to read it
	return f, info.Size(), err
}

func tooLarge(path string, most int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is larger than %d bytes", most)}
}

// Temporary reports whether reading again may succeed although nothing about the file changes: the process or the system was
// short of something, or a file system did not answer. Errors that say something about the file itself are not temporary.
func Temporary(err error) bool {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return false
	}
	switch number {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EACCES, syscall.EPERM,
		syscall.ENXIO, syscall.ENODEV, syscall.EINVAL:
		return false
	default:
		return true
	}
}
