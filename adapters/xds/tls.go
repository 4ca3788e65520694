package xds

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
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
	t, err := tlsfiles.ClientFiles{
		Cert: tlsfiles.ClientFile{Setting: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", Path: c.Cert},
		Key:  tlsfiles.ClientFile{Setting: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", Path: c.Key},
		CA:   tlsfiles.ClientFile{Setting: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", Path: c.CACert},
	}.Config()
	if err != nil {
		return nil, err
	}
	t.ServerName = c.SAN
	return t, nil
}
