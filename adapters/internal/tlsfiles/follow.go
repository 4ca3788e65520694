package tlsfiles

import (
	"crypto/tls"
	"slices"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
)

// FollowFiles returns a configuration that calls load again when one of the files has changed, so
// that a renewed certificate is used without a restart. Each handshake checks the files, which is
// cheap compared with the handshake and works on every file system; a symbolic link with a new
// target is a change. If load fails for changed files, the error is logged once per change and the
// last good configuration stays in use.
//
// FollowFiles returns the error of the first load. Calls of load do not overlap.
func FollowFiles(log *logrus.Entry, load func() (*tls.Config, error), paths ...string) (*tls.Config, error) {
	f := &follower{log: log, load: load, paths: paths, seen: statesOf(paths)}
	var err error
	if f.loaded, err = load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return f.currentConfig(), nil
		},
	}, nil
}

// ServerConfig returns the configuration of a listener with a certificate: TLS 1.2 and later,
// without the suites of TLS 1.2 that have no authenticated encryption or no forward secrecy (RFC
// 9325, 4.2).
func ServerConfig(pair tls.Certificate, protocol string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{protocol},
	}
}

type follower struct {
	log   *logrus.Entry
	load  func() (*tls.Config, error)
	paths []string

	mutex   sync.Mutex
	seen    []files.State
	loaded  *tls.Config
	failing bool // reading the files failed for a reason that may pass, which was logged
}

// currentConfig returns the configuration of the current files, or the last good one if they do not
// load.
func (f *follower) currentConfig() *tls.Config {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := statesOf(f.paths)
	if slices.EqualFunc(now, f.seen, files.State.Equal) {
		return f.loaded
	}
	fresh, err := f.load()
	if files.IsTemporary(err) { // the next handshake tries again
		if !f.failing {
			f.log.WithError(err).
				Error("the changed TLS files cannot be read now; the previous ones stay in use until they can")
		}
		f.failing = true
		return f.loaded
	}
	f.seen, f.failing = now, false
	if err != nil {
		f.log.WithError(err).Error("the changed TLS files are invalid; the previous ones stay in use")
		return f.loaded
	}
	f.log.Info("the changed TLS files are in use")
	f.loaded = fresh
	return fresh
}

// statesOf returns the states of files.
func statesOf(paths []string) []files.State {
	found := make([]files.State, len(paths))
	for i, path := range paths {
		found[i] = files.StateOf(path)
	}
	return found
}
