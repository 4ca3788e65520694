package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/sirupsen/logrus"
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
