package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
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

func (s *security) addFlags(flags *flag.FlagSet) {
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
func (s *security) ineffectiveFlags() string {
	if !s.peerTLS && (s.peerCAFile != "" || s.peerCertFile != "" || s.peerKeyFile != "") {
		return "-grpc-server-ca-file, -grpc-cert-file and -grpc-key-file have no effect without -grpc-use-tls"
	}
	return ""
}

// credentials returns what a connection is made with.
func (s *security) loadCredentials() (credentials.TransportCredentials, error) {
	if s.peerTLS {
		return s.loadPeerCredentials()
	}
	if !s.tls && s.caFile == "" && s.certFile == "" && s.keyFile == "" && s.serverName == "" {
		return insecure.NewCredentials(), nil
	}
	roots := x509.NewCertPool()
	return s.newCredentials(roots, file{"-tls_cacert", s.caFile}, file{"-tls_cert", s.certFile}, file{"-tls_key", s.keyFile})
}

// peerCredentials returns what the flags of the Envoy rate limit service's client
// stand for: its authorities count besides the system's.
func (s *security) loadPeerCredentials() (credentials.TransportCredentials, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	return s.newCredentials(roots, file{"-grpc-server-ca-file", s.peerCAFile},
		file{"-grpc-cert-file", s.peerCertFile}, file{"-grpc-key-file", s.peerKeyFile})
}

// file is a file that a flag names; an empty path is none.
type file struct{ flag, path string }

// config returns credentials with the authorities of a file added to roots, which
// are used only where there is such a file, and with a client certificate.
func (s *security) newCredentials(roots *x509.CertPool, ca, cert, key file) (credentials.TransportCredentials, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.serverName}
	if ca.path != "" {
		content, err := os.ReadFile(ca.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ca.flag, err)
		}
		if c.RootCAs = roots; !roots.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s: no certificate in PEM form", ca.flag)
		}
	}
	if cert.path != "" || key.path != "" {
		own, err := tls.LoadX509KeyPair(cert.path, key.path)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", cert.flag, key.flag, err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return credentials.NewTLS(c), nil
}
