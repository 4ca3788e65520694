package xds

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
)

// transportCredentials returns the security of connections. It loads the files once to report
// errors in them.
func (c TLSConfig) transportCredentials() (credentials.TransportCredentials, error) {
	if !c.Enabled {
		return insecure.NewCredentials(), nil
	}
	loaded, err := c.loadConfig()
	if err != nil {
		return nil, err
	}
	return reloadingCredentials{TransportCredentials: credentials.NewTLS(loaded), config: c}, nil
}

// reloadingCredentials are TLS credentials that load their files for each connection.
type reloadingCredentials struct {
	credentials.TransportCredentials
	config TLSConfig
}

// ClientHandshake implements credentials.TransportCredentials.
func (f reloadingCredentials) ClientHandshake(
	ctx context.Context, authority string, conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	loaded, err := f.config.loadConfig()
	if err != nil {
		return nil, nil, err
	}
	//nolint:wrapcheck // gRPC recognizes temporary errors by their type
	return credentials.NewTLS(loaded).ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (f reloadingCredentials) Clone() credentials.TransportCredentials {
	return reloadingCredentials{TransportCredentials: f.TransportCredentials.Clone(), config: f.config}
}

func (c TLSConfig) loadConfig() (*tls.Config, error) {
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
