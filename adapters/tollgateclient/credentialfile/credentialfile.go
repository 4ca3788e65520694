// Package credentialfile keeps what a person's commands sign in with, in a file that nobody else can read. It knows
// nothing of the service: when tokens are renewed, its caller decides.
package credentialfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
)

// Permissions, and bounds of waiting and reading.
const (
	fileMode    = 0o600
	folderMode  = 0o700
	othersMode  = 0o077
	maxFile     = 1 << 20 // bytes
	lockTimeout = 2 * time.Minute
	lockRetry   = 20 * time.Millisecond
)

// DefaultPath returns where the file is when nobody says otherwise: in the person's folder of settings.
func DefaultPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the folder for credentials: %w", err)
	}
	return filepath.Join(dir, "tollgate", "credentials.json"), nil
}

// File is a file of credentials, which need not exist yet. Many processes may use it at once.
type File struct{ path string }

// New returns the file at a path.
func New(path string) *File { return &File{path} }

// Path returns where the file is.
func (f *File) Path() string { return f.path }

// Read returns what the file holds; the zero value when there is none. A file that others may read is refused: what
// is in it may be in other hands already.
func (f *File) Read() (Contents, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Contents{}, nil
	}
	if err != nil {
		return Contents{}, fmt.Errorf("read credentials: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return Contents{}, fmt.Errorf("read credentials: %w", err)
	case !info.Mode().IsRegular():
		return Contents{}, fmt.Errorf("%s is not a file", f.path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&othersMode != 0: // which has no such permissions
		return Contents{}, fmt.Errorf("%s is open to others (mode %#o): chmod 600 it, or remove it and sign in again", f.path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return Contents{}, fmt.Errorf("read credentials: %w", err)
	}
	var c Contents
	if err := json.Unmarshal(text, &c); err != nil {
		return Contents{}, fmt.Errorf("%s contains no credentials: remove it and sign in again: %w", f.path, err)
	}
	return c, nil
}

// Held is a file that no other process changes meanwhile. Contents are what it held when the lock was taken.
type LockedFile struct {
	Contents

	file *File
}

// Locked calls do while no other process is in it, at most after two minutes of waiting.
func (f *File) WithLock(ctx context.Context, do func(*LockedFile) error) error {
	if err := os.MkdirAll(filepath.Dir(f.path), folderMode); err != nil {
		return fmt.Errorf("make the folder for credentials: %w", err)
	}
	lock := flock.New(f.path+".lock", flock.SetPermissions(fileMode)) // beside it, since writing replaces the file itself
	waiting, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(waiting, lockRetry); err != nil {
		if ctx.Err() == nil && waiting.Err() != nil {
			return fmt.Errorf("another command has held %s for %s", lock.Path(), lockTimeout)
		}
		return fmt.Errorf("lock the credentials: %w", err) // which names the file
	}
	defer func() { _ = lock.Unlock() }() // the end of the process unlocks it as well
	contents, err := f.Read()
	if err != nil {
		return err
	}
	return do(&LockedFile{contents, f})
}

// Update changes what the file holds while no other process does.
func (f *File) Update(ctx context.Context, change func(*Contents)) error {
	return f.WithLock(ctx, func(h *LockedFile) error {
		change(&h.Contents)
		return h.Save()
	})
}

// Save writes the contents, whole or not at all, and returns once they are on disk: a refresh token that is lost
// cannot be had again.
func (h *LockedFile) Save() error {
	text, err := json.MarshalIndent(h.Contents, "", "  ")
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	if err := replaceFile(h.file.path, append(text, '\n')); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}

// replace writes a file beside the one at path, which only its owner may read, and puts it in that one's place.
func replaceFile(path string, text []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".credentials-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // closed already, or not worth keeping
			_ = os.Remove(f.Name()) // a leftover is all that it would be
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	if d, openErr := os.Open(dir); openErr == nil {
		_ = d.Sync() // some systems cannot
		_ = d.Close()
	}
	return nil
}
