// Package credentialfile stores the tokens of a person's commands in a file that only that person
// can read. It does not call the service or renew tokens.
package credentialfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// File permissions, and limits of size and time.
const (
	fileMode    = 0o600
	folderMode  = 0o700
	othersMode  = 0o077
	maxFile     = 1 << 20 // bytes
	lockTimeout = 2 * time.Minute
	lockRetry   = 20 * time.Millisecond
)

// DefaultPath returns the default path of the file, in the person's configuration folder.
func DefaultPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the configuration folder for credentials: %w", err)
	}
	return filepath.Join(dir, "tollgate", "credentials.json"), nil
}

// File is a credential file, which need not exist yet. Several processes may use it at once.
type File struct{ path string }

// New returns the file at a path.
func New(path string) *File { return &File{path} }

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Read returns the contents of the file; the zero value if it does not exist. It returns an error
// if others may read the file, because they may already have the tokens.
func (f *File) Read() (Contents, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Contents{}, nil
	}
	if err != nil {
		return Contents{}, fmt.Errorf("read credentials: %w", err)
	}
	defer func() { _ = file.Close() }() // it was opened for reading
	info, err := file.Stat()
	switch {
	case err != nil:
		return Contents{}, fmt.Errorf("read credentials: %w", err)
	case !info.Mode().IsRegular():
		return Contents{}, fmt.Errorf("%s is not a file", f.path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&othersMode != 0: // Windows does not have these permissions
		return Contents{}, fmt.Errorf(
			"%s is accessible to other users (mode %#o): run chmod 600 on it, or remove it and sign in again",
			f.path, info.Mode().Perm())
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

// LockedFile is a file that no other process changes until the lock is released. Contents was read
// under the lock.
type LockedFile struct {
	Contents

	file *File
}

// WithLock locks the file, calls do and unlocks the file. It returns an error if another process
// holds the lock for two minutes.
func (f *File) WithLock(ctx context.Context, do func(*LockedFile) error) error {
	if err := os.MkdirAll(filepath.Dir(f.path), folderMode); err != nil {
		return fmt.Errorf("create the folder for credentials: %w", err)
	}
	// a separate file, because writing replaces the file itself
	lock := flock.New(f.path+".lock", flock.SetPermissions(fileMode))
	waiting, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(waiting, lockRetry); err != nil {
		if ctx.Err() == nil && waiting.Err() != nil {
			return fmt.Errorf("another command has held %s for %s", lock.Path(), lockTimeout)
		}
		return fmt.Errorf("lock the credentials: %w", err) // it names the file
	}
	defer func() { _ = lock.Unlock() }() // the end of the process unlocks it too
	contents, err := f.Read()
	if err != nil {
		return err
	}
	return do(&LockedFile{contents, f})
}

// Update changes the contents of the file under its lock.
func (f *File) Update(ctx context.Context, change func(*Contents)) error {
	return f.WithLock(ctx, func(h *LockedFile) error {
		change(&h.Contents)
		return h.Save()
	})
}

// Save replaces the file atomically and returns when the contents are on disk: a lost refresh token
// cannot be recovered.
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

// replaceFile writes a temporary file in the same folder, readable only by its owner, and renames
// it to path.
func replaceFile(path string, text []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".credentials-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // it may be closed already
			_ = os.Remove(f.Name()) // a leftover file does no harm
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
		_ = d.Sync() // not supported on all systems
		_ = d.Close()
	}
	return nil
}

// Contents is the content of the file.
type Contents struct {
	Device       Device        `json:"device"`
	SignIn       *SignIn       `json:"signIn,omitempty"` // of the context in use; nil before the first
	Others       []*SignIn     `json:"others,omitempty"` // of the other contexts
	DeviceTokens []DeviceToken `json:"deviceTokens,omitempty"`
}

// All returns the sign-ins of all contexts, that of the one in use first.
func (c *Contents) All() []*SignIn {
	if c.SignIn == nil {
		return c.Others
	}
	return append([]*SignIn{c.SignIn}, c.Others...)
}

// Context returns the sign-in of a context; nil if there is none of the name.
func (c *Contents) Context(name string) *SignIn {
	for _, s := range c.All() {
		if s.ContextName() == name {
			return s
		}
	}
	return nil
}

// Of returns the sign-in of a person at a service; nil without one.
func (c *Contents) Of(url, email string) *SignIn {
	for _, s := range c.All() {
		if s.URL == url && s.Email == email {
			return s
		}
	}
	return nil
}

// Use makes a sign-in that of the context in use. It replaces that of the same context.
func (c *Contents) Use(s *SignIn) {
	others := slices.DeleteFunc(c.All(), func(o *SignIn) bool { return o == s || o.ContextName() == s.ContextName() })
	c.SignIn, c.Others = s, others
}

// Remove removes a sign-in. If its context was in use, the first of the others is.
func (c *Contents) Remove(s *SignIn) {
	left := slices.DeleteFunc(c.All(), func(o *SignIn) bool { return o == s })
	c.SignIn, c.Others = nil, nil
	if len(left) > 0 {
		c.SignIn, c.Others = left[0], left[1:]
	}
}

// Device identifies this machine to every service. It never changes, so that services recognise the
// device at a later login.
type Device struct {
	UserAgent string `json:"userAgent"`
}

// SignIn is a sign-in of a person at a service, with the tokens of the session until it ends.
type SignIn struct {
	Name         string     `json:"name,omitempty"` // of the context; empty for the host of the service
	URL          string     `json:"url"`
	InsecureHTTP bool       `json:"insecureHttp,omitempty"`
	CACert       string     `json:"caCert,omitempty"` // file with certificates that are trusted too
	Email        string     `json:"email"`
	Tokens       *Tokens    `json:"tokens,omitempty"`
	Challenge    *Challenge `json:"challenge,omitempty"`
}

// ContextName returns the name of the context.
func (s *SignIn) ContextName() string {
	if s.Name != "" {
		return s.Name
	}
	if u, err := url.Parse(s.URL); err == nil && u.Host != "" {
		return u.Host
	}
	return s.URL
}

// Tokens are the tokens of a session.
type Tokens struct {
	Access    string    `json:"access"`
	Refresh   string    `json:"refresh"`
	ExpiresAt time.Time `json:"expiresAt"` // of the access token, by the clock of this machine

	// Spending is set while a command uses the refresh token. If a command finds it set under the
	// lock, the service may have used the token, and using it twice would end all sessions of the
	// person.
	Spending bool `json:"spending,omitempty"`
}

// Challenge is a step-up that is waiting for its code.
type Challenge struct {
	ID     string `json:"id"`
	Method string `json:"method"`
}

// DeviceToken proves the identity of this machine to one service, for one person. It outlives
// sessions.
type DeviceToken struct {
	URL   string `json:"url"`
	Email string `json:"email"`
	Token string `json:"token"`
}

// DeviceToken returns the device token for a person at a service; otherwise empty.
func (c *Contents) DeviceToken(url, email string) string {
	if i := c.indexToken(url, email); i >= 0 {
		return c.DeviceTokens[i].Token
	}
	return ""
}

// KeepDeviceToken stores the device token for a person at a service. It replaces the previous one.
func (c *Contents) KeepDeviceToken(d DeviceToken) {
	if i := c.indexToken(d.URL, d.Email); i >= 0 {
		c.DeviceTokens[i] = d
		return
	}
	c.DeviceTokens = append(c.DeviceTokens, d)
}

func (c *Contents) indexToken(url, email string) int {
	return slices.IndexFunc(c.DeviceTokens, func(d DeviceToken) bool { return d.URL == url && d.Email == email })
}
