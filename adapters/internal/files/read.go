// Package files reads, writes and watches files for the adapters. It does not interpret their
// content.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

var errNoFile = errors.New("is not a file")

// Open opens a file of at most maxBytes bytes. The reader ends after maxBytes, even if the file
// grows meanwhile. Open returns a *fs.PathError if the path is not a regular file, for example a
// folder or a pipe, or if the file is larger.
func Open(path string, maxBytes int64) (io.ReadCloser, error) {
	f, _, err := openRegular(path, maxBytes)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, maxBytes), f}, nil
}

// Read returns the content of a file of at most maxBytes bytes. It returns the same errors as Open.
func Read(path string, maxBytes int64) ([]byte, error) {
	f, size, err := openRegular(path, maxBytes)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	content := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := content.ReadFrom(io.LimitReader(f, maxBytes+1)); err != nil {
		return nil, err //nolint:wrapcheck // the error names the file
	}
	if int64(content.Len()) > maxBytes { // the file has grown
		return nil, tooLarge(path, maxBytes)
	}
	return content.Bytes(), nil
}

// openRegular checks the kind of the file before it opens it, because opening a pipe blocks until
// another process writes to it.
func openRegular(path string, maxBytes int64) (f *os.File, size int64, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, &fs.PathError{Op: "open", Path: path, Err: errNoFile}
	case info.Size() > maxBytes:
		return nil, 0, tooLarge(path, maxBytes)
	}
	f, err = os.Open(path) // #nosec G304 -- the operator chose the path
	return f, info.Size(), err
}

func tooLarge(path string, maxBytes int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is larger than %d bytes", maxBytes)}
}

// IsTemporary reports whether reading a file again may succeed although the file has not changed:
// the process or the system was short of a resource, or a file system did not respond. An error
// about the file itself is not temporary.
func IsTemporary(err error) bool {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return false
	}
	switch number {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EACCES,
		syscall.EPERM,
		syscall.ENXIO, syscall.ENODEV, syscall.EINVAL:
		return false
	default:
		return true
	}
}

// ByteOrderMark may be the start of a text file. A JSON parser may ignore it (RFC 8259, 8.1).
const ByteOrderMark = "\ufeff"

// TrimByteOrderMark returns the start of a file without the byte order mark.
func TrimByteOrderMark(start []byte) []byte { return bytes.TrimPrefix(start, []byte(ByteOrderMark)) }

// Permission bits of a secret file. A group may read it, because orchestrators give files to
// containers in this way.
const (
	writableByAll fs.FileMode = 0o002
	tooOpen       fs.FileMode = 0o024 // the group may write, or all may read
)

// CheckSecret checks who may use a file that must stay secret, for example a signing key or a
// database. It returns an error if every user may write to it, and a sentence for a warning if
// other users may read it or its group may write to it. It returns neither for a file that does not
// exist, and on Windows, which does not have these permissions.
func CheckSecret(path string) (warning string, err error) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return "", nil //nolint:nilerr // opening the file reports it
	}
	switch mode := info.Mode().Perm(); {
	case mode&writableByAll != 0:
		return "", &fs.PathError{
			Op: "use", Path: path,
			Err: fmt.Errorf(
				"every user may write to it (mode %#o): run chmod 600 on it, after you have checked that nobody has changed it", mode),
		}
	case mode&tooOpen != 0:
		return fmt.Sprintf("other users may read or change %s (mode %#o): run chmod 600 on it", path, mode), nil
	}
	return "", nil
}
