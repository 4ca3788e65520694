// Package certfiles keeps the TLS configuration of a listener in step with the
// files that it is made of, so that a renewed certificate counts without a
// restart. What the files are and what is made of them is the listener's
// business.
package certfiles

import (
	"crypto/tls"
	"os"
	"sync"

	"github.com/sirupsen/logrus"
)

// Follow returns a configuration that gives each connection what load makes of
// the files as they are. Each handshake looks whether they have changed, which
// costs little beside a handshake and misses no change on any file system; a
// symbolic link that points elsewhere is one. While the changed files do not
// load, which is logged once a change, what was loaded last stays in use.
//
// The error is that of the first load. Later loads come one at a time.
func Follow(log *logrus.Entry, load func() (*tls.Config, error), files ...string) (*tls.Config, error) {
	f := &follower{log: log, load: load, files: files, seen: look(files)}
	var err error
	if f.loaded, err = load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return f.present(), nil
		},
	}, nil
}

type follower struct {
	log   *logrus.Entry
	load  func() (*tls.Config, error)
	files []string

	mutex  sync.Mutex
	seen   []os.FileInfo
	loaded *tls.Config
}

// present returns what the files as they are say, or, while they do not load,
// what they last said.
func (f *follower) present() *tls.Config {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := look(f.files)
	if same(now, f.seen) {
		return f.loaded
	}
	f.seen = now
	fresh, err := f.load()
	if err != nil {
		f.log.WithError(err).Error("the changed TLS files are not taken; the ones before stay in use")
		return f.loaded
	}
	f.log.Info("the changed TLS files are in use")
	f.loaded = fresh
	return fresh
}

// look returns what is at each path, nil where nothing is.
func look(paths []string) []os.FileInfo {
	found := make([]os.FileInfo, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			found[i] = info
		}
	}
	return found
}

func same(a, b []os.FileInfo) bool {
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) || a[i] != nil && changed(a[i], b[i]) {
			return false
		}
	}
	return true
}

func changed(a, b os.FileInfo) bool {
	return !os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime())
}
