package ratelimitapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// identity is the listener's TLS identity. It follows its files: each handshake
// looks whether they have changed, which costs little beside a handshake and
// misses no change on any file system.
type identity struct {
	config TLSConfig
	log    *logrus.Entry

	mutex  sync.Mutex
	stamp  stamp
	loaded *tls.Config
}

// stamp tells versions of the files apart.
type stamp [3]struct {
	size    int64
	changed time.Time
}

// openIdentity reads the files for the first time.
func openIdentity(c TLSConfig, log *logrus.Entry) (*identity, error) {
	i := &identity{config: c, log: log, stamp: c.stamp()}
	var err error
	i.loaded, err = c.load()
	return i, err
}

// tls returns a configuration that gives each connection the present identity.
func (i *identity) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return i.present(), nil
		},
	}
}

// present returns the identity of the files as they are, or, while they do not
// fit together, as they last did.
func (i *identity) present() *tls.Config {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	now := i.config.stamp()
	if now == i.stamp {
		return i.loaded
	}
	i.stamp = now
	fresh, err := i.config.load()
	if err != nil {
		i.log.WithError(err).Error("the changed TLS files are not taken; the ones before stay in use")
		return i.loaded
	}
	i.log.Info("the changed TLS files are in use")
	i.loaded = fresh
	return fresh
}

func (c TLSConfig) stamp() stamp {
	var s stamp
	for i, path := range []string{c.Cert, c.Key, c.ClientCA} {
		if info, err := os.Stat(path); err == nil {
			s[i].size, s[i].changed = info.Size(), info.ModTime()
		}
	}
	return s
}

func (c TLSConfig) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY: %w", err)
	}
	loaded := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{"h2"},
	}
	if c.ClientCA != "" {
		err = c.requireClients(loaded)
	}
	return loaded, err
}

func (c TLSConfig) requireClients(to *tls.Config) error {
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return fmt.Errorf("GRPC_CLIENT_TLS_CACERT: %w", err)
	}
	to.ClientCAs = x509.NewCertPool()
	if !to.ClientCAs.AppendCertsFromPEM(pem) {
		return errors.New("GRPC_CLIENT_TLS_CACERT: the file has no certificate")
	}
	to.ClientAuth = tls.RequireAndVerifyClientCert
	if c.ClientSAN != "" {
		to.VerifyConnection = func(s tls.ConnectionState) error {
			return s.PeerCertificates[0].VerifyHostname(c.ClientSAN)
		}
	}
	return nil
}
