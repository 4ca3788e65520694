package registryjson

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// limitError is the error of a response or list that exceeds a limit.
type limitError string

func (e limitError) Error() string { return string(e) }

func idleError(d time.Duration) error { return limitError(fmt.Sprintf("no data arrived for %s", d)) }

// statusError is the error for a response whose status is not 200. Its text does not contain the
// reason phrase of the response, which the server chooses.
type statusError int

func (e statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server responded with %d %s", int(e), http.StatusText(int(e))))
}

// redirectError is the error of a redirect that is not followed.
type redirectError string

func (e redirectError) Error() string { return string(e) }

// networkError is the error of a connection. Its text may contain what the server has sent.
type networkError struct{ err error }

func (e *networkError) Error() string { return e.err.Error() }
func (e *networkError) Unwrap() error { return e.err }

// isRefusedRedirect reports whether err comes from a redirect that is not followed. Another attempt
// would fail too.
func isRefusedRedirect(err error) bool {
	var redirect redirectError
	var refused *publicdial.RefusedError
	return errors.As(err, &redirect) || errors.As(err, &refused)
}

// spoolError is an error of the file that holds the records of a list.
type spoolError struct{ err error }

func (e *spoolError) Error() string {
	if errors.Is(e.err, syscall.ENOSPC) || errors.Is(e.err, syscall.EDQUOT) {
		return fmt.Sprintf("the folder for temporary files, %s, is full", os.TempDir())
	}
	return "a temporary file cannot be used: " + e.err.Error()
}

func (e *spoolError) Unwrap() error { return e.err }

// explain returns the reason for an error of a read as a sentence for operators. It contains
// nothing that the other registry has sent except single characters, and no secret.
func explain(err error) string {
	var (
		limit   limitError
		start   startError
		network *networkError
	)
	switch {
	case errors.As(err, &limit):
		return limit.Error()
	case errors.As(err, &start) && start == '<':
		return "the server responded with HTML or XML instead of JSON; check the URL"
	case errors.As(err, &network):
		return explainNetwork(network.err)
	}
	return err.Error()
}

// explainNetwork returns the reason for an error of a connection.
func explainNetwork(err error) string {
	var (
		redirect redirectError
		refused  *publicdial.RefusedError
		name     *net.DNSError
		timeout  net.Error
		op       *net.OpError
	)
	switch {
	case errors.As(err, &redirect):
		return redirect.Error()
	case errors.As(err, &refused):
		return fmt.Sprintf("redirects to %s, which is not a public address", refused.Address)
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "the proxy of HTTP_PROXY or HTTPS_PROXY cannot be reached"
	case errors.As(err, &name):
		return "the name of the host cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the server refuses the connection"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the connection was not made in time"
	case errors.As(err, &op) && op.Op == "dial":
		return "the server cannot be reached"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the server closed the connection"
	}
	return explainTLS(err)
}

// explainTLS returns the reason for an error of TLS or of another layer.
func explainTLS(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		plain     tls.RecordHeaderError
		verify    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &authority):
		return "the certificate of the server is signed by an unknown authority"
	case errors.As(err, &host):
		return "the certificate of the server is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate of the server has expired or is not valid yet"
	case errors.As(err, &verify):
		return "the certificate of the server is not valid"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &plain):
		return "the server does not use TLS; check whether the URL must begin with http://"
	}
	return "the connection failed, or the response is not valid HTTP"
}
