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
)

// security is how the connection is protected.
type security struct {
	tls        bool
	caFile     string
	certFile   string
	keyFile    string
	serverName string
}

func (s *security) addTo(flags *flag.FlagSet) {
	flags.BoolVar(&s.tls, "tls", false, "speak TLS; implied by the other flags that begin with -tls")
	flags.StringVar(&s.caFile, "tls_cacert", "", "`file` of the authorities that the service's certificate is checked against; default: the system's")
	flags.StringVar(&s.certFile, "tls_cert", "", "`file` of the client certificate, for mutual TLS")
	flags.StringVar(&s.keyFile, "tls_key", "", "`file` of the client certificate's key")
	flags.StringVar(&s.serverName, "tls_server_name", "", "`name` that the service's certificate must bear; default: that of -dial_string")
}

// credentials returns what a connection is made with.
func (s *security) credentials() (credentials.TransportCredentials, error) {
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
