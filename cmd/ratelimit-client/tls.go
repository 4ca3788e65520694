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

// security contains the TLS flags.
type security struct {
	tls        bool
	caFile     string
	certFile   string
	keyFile    string
	serverName string

	// The flags of the client of the Envoy rate limit service. As there, the others have no effect
	// without peerTLS.
	peerTLS                               bool
	peerCAFile, peerCertFile, peerKeyFile string
}

func (s *security) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&s.tls, "tls", false, "use TLS; implied by the other flags that begin with -tls")
	flags.StringVar(&s.caFile, "tls_cacert", "",
		"`file` of CA certificates that sign the service's certificate; default: those of the system")
	flags.StringVar(&s.certFile, "tls_cert", "", "`file` of the client certificate, for mutual TLS")
	flags.StringVar(&s.keyFile, "tls_key", "", "`file` of the client certificate's key")
	flags.StringVar(&s.serverName, "tls_server_name", "",
		"`name` that the service's certificate must contain; default: the host of -dial_string")
	flags.BoolVar(&s.peerTLS, "grpc-use-tls", false, "use TLS, as the client of the Envoy rate limit service does")
	flags.StringVar(&s.peerCAFile, "grpc-server-ca-file", "",
		"`file` of CA certificates that sign the service's certificate, in addition to those of the system; with -grpc-use-tls")
	flags.StringVar(&s.peerCertFile, "grpc-cert-file", "", "`file` of the client certificate; with -grpc-use-tls")
	flags.StringVar(&s.peerKeyFile, "grpc-key-file", "", "`file` of the client certificate's key; with -grpc-use-tls")
}

// ineffectiveFlags returns a warning if flags have no effect; otherwise it returns an empty text.
func (s *security) ineffectiveFlags() string {
	if !s.peerTLS && (s.peerCAFile != "" || s.peerCertFile != "" || s.peerKeyFile != "") {
		return "-grpc-server-ca-file, -grpc-cert-file and -grpc-key-file have no effect without -grpc-use-tls"
	}
	return ""
}

// loadCredentials returns the transport credentials for the flags.
func (s *security) loadCredentials() (credentials.TransportCredentials, error) {
	if s.peerTLS {
		return s.loadPeerCredentials()
	}
	if !s.tls && s.caFile == "" && s.certFile == "" && s.keyFile == "" && s.serverName == "" {
		return insecure.NewCredentials(), nil
	}
	roots := x509.NewCertPool()
	return s.newCredentials(roots, file{"-tls_cacert", s.caFile}, file{"-tls_cert", s.certFile}, file{
		"-tls_key", s.keyFile,
	})
}

// loadPeerCredentials returns the transport credentials for the flags of the Envoy rate limit
// service's client, whose CA certificates are trusted in addition to those of the system.
func (s *security) loadPeerCredentials() (credentials.TransportCredentials, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	return s.newCredentials(roots, file{"-grpc-server-ca-file", s.peerCAFile},
		file{"-grpc-cert-file", s.peerCertFile}, file{"-grpc-key-file", s.peerKeyFile})
}

// file is the value of a flag for a file; an empty path means that the flag is not set.
type file struct{ flag, path string }

// newCredentials returns credentials with a client certificate. If there is a CA file, they trust
// its certificates and roots; otherwise they trust the certificates of the system.
func (s *security) newCredentials(roots *x509.CertPool, ca, cert, key file) (credentials.TransportCredentials, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.serverName}
	if ca.path != "" {
		content, err := os.ReadFile(ca.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ca.flag, err)
		}
		if c.RootCAs = roots; !roots.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s: the file contains no certificate in PEM form", ca.flag)
		}
	}
	if cert.path != "" || key.path != "" {
		certificate, err := tls.LoadX509KeyPair(cert.path, key.path)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", cert.flag, key.flag, err)
		}
		c.Certificates = []tls.Certificate{certificate}
	}
	return credentials.NewTLS(c), nil
}
