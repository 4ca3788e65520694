package service

import (
	"cmp"
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
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// defaultHealthTimeout is the default of --timeout. The service checks its dependencies within two
// seconds.
const defaultHealthTimeout = 5 * time.Second

// healthCheck contains the flags of one run of the command.
type healthCheck struct {
	url     string
	caFile  string
	timeout time.Duration
}

func newHealth(p cli.Process) *cobra.Command {
	var h healthCheck
	c := &cobra.Command{
		Use:   "health",
		Short: "Check whether a service is ready",
		Long: "Check whether the service on this machine is ready. Use the command as the\n" +
			"health check of a container, whose image has no shell. It exits with 0 if the\n" +
			"service is ready, and with 1 if it is not ready, is draining, or does not answer\n" +
			"in time.\n\n" +
			"By default the command calls the address in HOST and PORT, over TLS if TLS_CERT\n" +
			"is set; it does not check the certificate of a service on its own machine. With\n" +
			"--url it calls another address, at the path of the URL, or at /ready if the URL\n" +
			"has no path. The rate limit service alone has no API: use --url with the address\n" +
			"of its HTTP listener, as in the last example.",
		Example: "  tollgate health\n" +
			"  tollgate health --url https://tollgate.example.com --timeout 2s\n" +
			"  tollgate health --url http://localhost:8080/healthcheck",
	}
	c.Flags().StringVar(&h.url, "url", "", "address to check; default: the address in the settings")
	c.Flags().StringVar(&h.caFile, "ca-cert", "",
		"file of CA certificates that sign the certificate of --url; default: those of the system")
	c.Flags().DurationVar(&h.timeout, "timeout", defaultHealthTimeout, "maximum time until the response")
	c.RunE = func(c *cobra.Command, _ []string) error {
		target, err := h.chooseTarget(p)
		if err != nil {
			return err
		}
		if err := h.probe(c.Context(), target); err != nil {
			return err
		}
		return cli.PrintLine(p.Stdout, target.URL.Redacted()+" is ready")
	}
	return c
}

func (h healthCheck) probe(ctx context.Context, t healthprobe.Target) error {
	limited, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	err := healthprobe.Check(limited, t)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s does not answer within %v", t.URL.Redacted(), h.timeout)
	}
	return err
}

func (h healthCheck) chooseTarget(p cli.Process) (healthprobe.Target, error) {
	switch {
	case h.timeout <= 0:
		return healthprobe.Target{}, fmt.Errorf("--timeout: %v is not positive", h.timeout)
	case h.url != "":
		return h.flagTarget()
	case h.caFile != "":
		return healthprobe.Target{}, errors.New("--ca-cert needs --url")
	}
	s, err := settings.Read(p.Environ)
	if err != nil {
		return healthprobe.Target{}, err
	}
	return localTarget(s.REST)
}

// flagTarget returns the service at the address of --url.
func (h healthCheck) flagTarget() (healthprobe.Target, error) {
	u, err := tollgateclient.ParseURL(h.url, true) // the request contains no secret
	if err != nil {
		return healthprobe.Target{}, fmt.Errorf("--url: %s", cli.ErrorSentence(err))
	}
	u.Path = cmp.Or(u.Path, "/ready")
	t := healthprobe.Target{URL: u}
	if h.caFile != "" {
		content, err := os.ReadFile(h.caFile)
		if err != nil {
			return t, fmt.Errorf("--ca-cert: %w", err)
		}
		t.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !t.TLS.RootCAs.AppendCertsFromPEM(content) {
			return t, fmt.Errorf("--ca-cert: %s contains no certificate in PEM form", h.caFile)
		}
	}
	return t, nil
}

// localTarget returns the service on this machine that runs with the settings.
func localTarget(c rest.Config) (healthprobe.Target, error) {
	if c.Port == 0 {
		return healthprobe.Target{}, errors.New(
			"PORT is 0, so the port of the service is not known: give its address with --url")
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
		// The certificate is for the public name of the service. The connection stays on this
		// machine and carries no secret.
		t.TLS = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} // #nosec G402 -- see above
	}
	return t, nil
}
