package ratelimitapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
)

// followFiles returns the TLS configuration of the listener, which reloads changed files.
func (c TLSConfig) followFiles(log *logrus.Entry) (*tls.Config, error) {
	return tlsfiles.FollowFiles(log, c.loadFiles, c.Cert, c.Key, c.ClientCA)
}

func (c TLSConfig) loadFiles() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY: %w", err)
	}
	loaded := tlsfiles.ServerConfig(pair, "h2")
	if c.ClientCA != "" {
		err = c.requireClientCertificates(loaded)
	}
	return loaded, err
}

func (c TLSConfig) requireClientCertificates(to *tls.Config) error {
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return fmt.Errorf("GRPC_CLIENT_TLS_CACERT: %w", err)
	}
	to.ClientCAs = x509.NewCertPool()
	if !to.ClientCAs.AppendCertsFromPEM(pem) {
		return errors.New("GRPC_CLIENT_TLS_CACERT: the file contains no certificate")
	}
	to.ClientAuth = tls.RequireAndVerifyClientCert
	if c.ClientSAN != "" {
		to.VerifyConnection = func(s tls.ConnectionState) error {
			return s.PeerCertificates[0].VerifyHostname(c.ClientSAN)
		}
	}
	return nil
}
