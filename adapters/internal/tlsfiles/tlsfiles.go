// Package tlsfiles makes TLS configurations from files: that of a listener, which follows changes
// of its files, and that of connections to other servers.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/each"
)

// ClientFile is a file and the setting that names it.
type ClientFile struct {
	Setting string
	Path    string // empty if the setting is not set
}

// ClientFiles are the TLS files of a connection that the service opens.
type ClientFiles struct {
	// Cert and Key are the client certificate, if any.
	Cert, Key ClientFile
	// CA holds certificate authorities in PEM, which are trusted in addition to those of the
	// system.
	CA ClientFile
	// AnyHost accepts a valid certificate for any server name.
	AnyHost bool
}

// Config reads the files. An error begins with the name of the setting.
func (f ClientFiles) Config() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Cert.Path != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert.Path, f.Key.Path)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", f.Cert.Setting, f.Key.Setting, err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	if f.CA.Path != "" {
		pem, err := os.ReadFile(f.CA.Path) // #nosec G304 -- the operator names the file
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.CA.Setting, err)
		}
		t.RootCAs = systemAuthorities()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in %s", f.CA.Setting, f.CA.Path)
		}
	}
	if f.AnyHost {
		t.InsecureSkipVerify = true // AnyHost requires it; VerifyConnection checks the chain
		t.VerifyConnection = verifyChain(t.RootCAs)
	}
	return t, nil
}

// systemAuthorities returns a copy of the authorities of the system; empty if the system has no
// files with authorities.
func systemAuthorities() *x509.CertPool {
	if system, err := x509.SystemCertPool(); err == nil {
		return system
	}
	return x509.NewCertPool()
}

// Follow reads the files, and returns a function that reads them again for each new connection, so
// that changed files are used without a restart. If it cannot read them, it logs the error once and
// returns the last good configuration.
func (f ClientFiles) Follow(log *logrus.Entry) (current func() *tls.Config, err error) {
	last, err := f.Config()
	if err != nil {
		return nil, err
	}
	var mutex sync.Mutex
	failing := false
	return func() *tls.Config {
		mutex.Lock()
		defer mutex.Unlock()
		fresh, err := f.Config()
		if err == nil {
			last = fresh
		} else if !failing {
			log.WithError(err).Error("the TLS files cannot be used; the previous ones stay in use until they can")
		}
		failing = err != nil
		return last
	}, nil
}

// verifyChain returns a function that verifies the certificate of a server without its host name.
func verifyChain(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the server sent no certificate")
		}
		intermediates := x509.NewCertPool()
		for _, certificate := range s.PeerCertificates[1:] {
			intermediates.AddCert(certificate)
		}
		if _, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: intermediates,
		}); err != nil {
			return fmt.Errorf("verify the certificate of the server: %w", err)
		}
		return nil
	}
}

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

func statesOf(paths []string) []files.State {
	found := each.Map(paths, files.StateOf)
	return found
}

// ShowExpiry registers the metric of when the certificates of a configuration of [FollowFiles]
// expire, in Unix seconds. It checks the files like a handshake does, so that a renewed certificate
// shows before the next connection. Each listener needs its own name.
func ShowExpiry(r prometheus.Registerer, listener string, of *tls.Config) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "tollgate_certificate_expiry_timestamp_seconds",
		Help:        "When the certificate of a listener expires, in Unix seconds; of several, the first to expire.",
		ConstLabels: prometheus.Labels{"listener": listener},
	}, func() float64 { return float64(firstExpiry(of).Unix()) }))
}

// firstExpiry returns when the first of the certificates expires. A listener has at least one.
func firstExpiry(of *tls.Config) time.Time {
	present, err := of.GetConfigForClient(nil)
	if err != nil { // FollowFiles returns no error
		return time.Time{}
	}
	var first time.Time
	for _, c := range present.Certificates {
		if first.IsZero() || c.Leaf.NotAfter.Before(first) {
			first = c.Leaf.NotAfter
		}
	}
	return first
}
