package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// credentials returns how connections are secured, after a first look at the
// files.
func (c TLSConfig) credentials() (credentials.TransportCredentials, error) {
	if !c.Enabled {
		return insecure.NewCredentials(), nil
	}
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	return following{TransportCredentials: credentials.NewTLS(loaded), config: c}, nil
}

// following are TLS credentials that read their files for each connection.
type following struct {
	credentials.TransportCredentials
	config TLSConfig
}

// ClientHandshake implements credentials.TransportCredentials.
func (f following) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	loaded, err := f.config.load()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(loaded).ClientHandshake(ctx, authority, conn) //nolint:wrapcheck // gRPC tells temporary failures by their type
}

// Clone implements credentials.TransportCredentials.
func (f following) Clone() credentials.TransportCredentials {
	return following{TransportCredentials: f.TransportCredentials.Clone(), config: f.config}
}

func (c TLSConfig) load() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.SAN}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	if c.CACert == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.CACert)
	if err != nil {
		return nil, fmt.Errorf("CONFIG_GRPC_XDS_SERVER_TLS_CACERT: %w", err)
	}
	t.RootCAs = x509.NewCertPool()
	if !t.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CONFIG_GRPC_XDS_SERVER_TLS_CACERT: no certificate in %s", c.CACert)
	}
	return t, nil
}
