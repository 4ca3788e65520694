// Package certfiles keeps the TLS configuration of a listener in step with the
// files that it is made of, so that a renewed certificate counts without a
// restart. What the files are and what is made of them is the listener's
// business.
package certfiles

import (
	"crypto/tls"
	"slices"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/boundedfile"
	"github.com/tollgate-dev/tollgate/adapters/filewatch"
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

	mutex   sync.Mutex
	seen    []filewatch.State
	loaded  *tls.Config
	failing bool // reading the files failed for a reason that may pass, which was logged
}

// present returns what the files as they are say, or, while they do not load,
// what they last said.
func (f *follower) present() *tls.Config {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := look(f.files)
	if slices.EqualFunc(now, f.seen, filewatch.State.Same) {
		return f.loaded
	}
	fresh, err := f.load()
	if boundedfile.Temporary(err) { // the next handshake tries again
		if !f.failing {
			f.log.WithError(err).Error("the changed TLS files cannot be read now; the ones before stay in use until they can")
		}
		f.failing = true
		return f.loaded
	}
	f.seen, f.failing = now, false
	if err != nil {
		f.log.WithError(err).Error("the changed TLS files are not taken; the ones before stay in use")
		return f.loaded
	}
	f.log.Info("the changed TLS files are in use")
	f.loaded = fresh
	return fresh
}

// look returns the states of files.
func look(paths []string) []filewatch.State {
	found := make([]filewatch.State, len(paths))
	for i, path := range paths {
		found[i] = filewatch.Look(path)
	}
	return found
}
