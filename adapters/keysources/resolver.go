package keysources

import (
	"context"
	"errors"
	"net"
	"time"
)

// attemptTimeout is the time limit of one DNS question over UDP. It is shorter than the deadlines,
// so that one lost packet or one broken server of several does not make a lookup fail.
const attemptTimeout = 2 * time.Second

// newResolver returns a resolver that calls the DNS server, or the servers of the system if server
// is empty. It makes another attempt if there is no answer within the time limit.
func newResolver(server string, attempt time.Duration) *net.Resolver {
	dialer := new(net.Dialer)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if server != "" {
			address = server
		}
		conn, err := dialer.DialContext(ctx, network, address)
		if datagrams, ok := conn.(*net.UDPConn); ok && err == nil {
			return &attemptConn{UDPConn: datagrams, timeout: attempt}, nil
		}
		return conn, err
	}}
}

// attemptConn is a connection whose deadlines are at most a timeout away. It embeds *net.UDPConn,
// because a resolver uses the format of UDP only on a [net.PacketConn].
type attemptConn struct {
	*net.UDPConn
	timeout time.Duration
}

// SetDeadline implements [net.Conn].
func (c *attemptConn) SetDeadline(t time.Time) error {
	if soonest := time.Now().Add(c.timeout); t.IsZero() || soonest.Before(t) {
		t = soonest
	}
	return c.UDPConn.SetDeadline(t)
}

// isNotFound reports whether a DNS server has answered that the name or its records do not exist.
func isNotFound(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound
}

// isTimeout reports whether an answer did not arrive in time, or the caller stopped waiting for it.
func isTimeout(err error) bool {
	var e net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.As(err, &e) && e.Timeout()
}

// absoluteName returns the name with a dot at its end, so that a resolver does not try it below the
// search domains of the system.
func absoluteName(host string) string { return host + "." }
