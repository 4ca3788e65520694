package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/adapters/clienttls"
)

// security is how the connection is protected.
type security struct {
	tls        bool
	caFile     string
	certFile   string
	keyFile    string
	serverName string

	// The flags of the client of the Envoy rate limit service. Without peerTLS the
	// others have no effect, as there.
	peerTLS                               bool
	peerCAFile, peerCertFile, peerKeyFile string
}

func (s *security) addTo(flags *flag.FlagSet) {
	flags.BoolVar(&s.tls, "tls", false, "speak TLS; implied by the other flags that begin with -tls")
	flags.StringVar(&s.caFile, "tls_cacert", "", "`file` of the authorities that the service's certificate is checked against; default: the system's")
	flags.StringVar(&s.certFile, "tls_cert", "", "`file` of the client certificate, for mutual TLS")
	flags.StringVar(&s.keyFile, "tls_key", "", "`file` of the client certificate's key")
	flags.StringVar(&s.serverName, "tls_server_name", "", "`name` that the service's certificate must bear; default: that of -dial_string")
	flags.BoolVar(&s.peerTLS, "grpc-use-tls", false, "speak TLS, as the client of the Envoy rate limit service does")
	flags.StringVar(&s.peerCAFile, "grpc-server-ca-file", "", "`file` of authorities that the service's certificate is checked against, besides the system's; with -grpc-use-tls")
	flags.StringVar(&s.peerCertFile, "grpc-cert-file", "", "`file` of the client certificate; with -grpc-use-tls")
	flags.StringVar(&s.peerKeyFile, "grpc-key-file", "", "`file` of the client certificate's key; with -grpc-use-tls")
}

// unused returns the flags that are given and have no effect, or nothing.
func (s *security) unused() string {
	if !s.peerTLS && (s.peerCAFile != "" || s.peerCertFile != "" || s.peerKeyFile != "") {
		return "-grpc-server-ca-file, -grpc-cert-file and -grpc-key-file have no effect without -grpc-use-tls"
	}
	return ""
}

// credentials returns what a connection is made with.
func (s *security) credentials() (credentials.TransportCredentials, error) {
	if s.peerTLS {
		return s.peerCredentials()
	}
	if !s.tls && s.caFile == "" && s.certFile == "" && s.keyFile == "" && s.serverName == "" {
		return insecure.NewCredentials(), nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.serverName}
	if s.caFile != "" {
		content, err := os.ReadFile(s.caFile)
		if err != nil {
			return nil, fmt.Errorf("-tls_cacert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(content) {
			return nil, errors.New("-tls_cacert: no certificate in PEM form")
		}
	}
	if s.certFile != "" || s.keyFile != "" {
		own, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
		if err != nil {
			return nil, fmt.Errorf("-tls_cert and -tls_key: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return credentials.NewTLS(c), nil
}

// peerCredentials returns what the flags of the Envoy rate limit service's client
// stand for.
func (s *security) peerCredentials() (credentials.TransportCredentials, error) {
	c, err := clienttls.Files{
		Cert: clienttls.File{Setting: "-grpc-cert-file", Path: s.peerCertFile},
		Key:  clienttls.File{Setting: "-grpc-key-file", Path: s.peerKeyFile},
		CA:   clienttls.File{Setting: "-grpc-server-ca-file", Path: s.peerCAFile},
	}.Config()
	if err != nil {
		return nil, err
	}
	c.ServerName = s.serverName
	return credentials.NewTLS(c), nil
}
