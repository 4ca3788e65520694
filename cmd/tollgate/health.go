package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/healthprobe"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
)

// healthPatience is how long an answer may take when nobody says: looking at the
// dependencies takes at most two seconds.
const healthPatience = 5 * time.Second

// health is one run of the command, with what its flags say.
type health struct {
	url     string
	caFile  string
	timeout time.Duration
}

func newHealth(p process) *cobra.Command {
	var h health
	c := &cobra.Command{
		Use:   "health",
		Short: "Check whether a service is ready",
		Long: "Check whether the service on this machine is ready. The command is meant for\n" +
			"the health check of a container, which has no shell. It exits with 0 if the\n" +
			"service is ready, and with 1 if it is not, does not answer in time, or is\n" +
			"draining.\n\n" +
			"The address is that of HOST and PORT, over TLS if TLS_CERT is set; the command\n" +
			"does not check the certificate of the service on its own machine. --url checks\n" +
			"another address: with a path it checks that path, without one /ready. The rate\n" +
			"limit service alone has no API, and answers at its own address.",
		Example: "  tollgate health\n" +
			"  tollgate health --url https://tollgate.example.com --timeout 2s\n" +
			"  tollgate health --url http://localhost:8080/healthcheck",
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&h.url, "url", "", "address to check; default: the one of the settings")
	c.Flags().StringVar(&h.caFile, "ca-cert", "", "file of CA certificates for checking the certificate of --url; default: the system's")
	c.Flags().DurationVar(&h.timeout, "timeout", healthPatience, "how long the response may take")
	c.RunE = func(c *cobra.Command, _ []string) error {
		target, err := h.target(p)
		if err != nil {
			return err
		}
		if err := h.ask(c.Context(), target); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(p.stdout, target.URL.Redacted()+" is ready"); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	}
	return c
}

func (h health) ask(ctx context.Context, t healthprobe.Target) error {
	limited, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	err := healthprobe.Ask(limited, t)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s does not answer within %v", t.URL.Redacted(), h.timeout)
	}
	return err
}

func (h health) target(p process) (healthprobe.Target, error) {
	switch {
	case h.timeout <= 0:
		return healthprobe.Target{}, fmt.Errorf("--timeout: %v is not positive", h.timeout)
	case h.url != "":
		return h.other()
	case h.caFile != "":
		return healthprobe.Target{}, errors.New("--ca-cert is for the address of --url, which is missing")
	}
	s, err := readSettings(p)
	if err != nil {
		return healthprobe.Target{}, err
	}
	return own(s.REST)
}

// other is the service that the flags name.
func (h health) other() (healthprobe.Target, error) {
	u, err := tollgateclient.ParseURL(h.url, true) // nothing secret is sent
	if err != nil {
		return healthprobe.Target{}, fmt.Errorf("--url: %s", sentence(err))
	}
	if u.Path == "" {
		u.Path = "/ready"
	}
	t := healthprobe.Target{URL: u}
	if h.caFile != "" {
		content, err := os.ReadFile(h.caFile)
		if err != nil {
			return t, fmt.Errorf("--ca-cert: %w", err)
		}
		t.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !t.TLS.RootCAs.AppendCertsFromPEM(content) {
			return t, fmt.Errorf("--ca-cert: there is no certificate in PEM form in %s", h.caFile)
		}
	}
	return t, nil
}

// own is the service that has these settings, on this machine.
func own(c rest.Config) (healthprobe.Target, error) {
	if c.Port == 0 {
		return healthprobe.Target{}, errors.New("PORT is 0, so that only the service knows its port: name it by --url")
	}
	t := healthprobe.Target{URL: &url.URL{Scheme: "http", Path: "/ready"}}
	host := c.Host
	switch a, err := netip.ParseAddr(host); {
	case host == "", err == nil && a.IsUnspecified() && a.Is4():
		host = "127.0.0.1"
	case err == nil && a.IsUnspecified():
		host = "::1"
	}
	t.URL.Host = net.JoinHostPort(host, strconv.Itoa(c.Port))
	if c.TLS.Cert != "" {
		t.URL.Scheme = "https"
		// Its certificate is made out to the name that others know it by. Nobody is between us and it, and what is sent is no secret.
		t.TLS = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} // #nosec G402 -- see above
	}
	return t, nil
}
