package valkey

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"

	"github.com/valkey-io/valkey-go"
)

// withoutHello returns the options of a client that sends neither HELLO nor CLIENT, and so speaks RESP2 and has no client side
// caching. Proxies know neither command: Envoy's refuses them, others close the connection.
func withoutHello(o valkey.ClientOption) valkey.ClientOption {
	connect := o.DialCtxFn
	if connect == nil {
		connect = dialTCP
	}
	o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		c, err := connect(ctx, address, d, t)
		if err != nil {
			return nil, err
		}
		return &plainConn{Conn: c}, nil
	}
	o.AlwaysRESP2, o.DisableCache, o.ClientSetInfo = true, true, valkey.DisableClientSetInfo
	return o
}

func dialTCP(ctx context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
	if t != nil {
		return (&tls.Dialer{NetDialer: d, Config: t}).DialContext(ctx, "tcp", address)
	}
	return d.DialContext(ctx, "tcp", address)
}

// What valkey-go sends at the beginning of every connection that speaks RESP2, and what is sent instead. It reads nothing from the
// answer that it needs.
var (
	helloCommand = []byte("*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n")
	pingCommand  = []byte("*1\r\n$4\r\nPING\r\n")
)

// plainConn is a connection on which PING is sent in the place of HELLO.
type plainConn struct {
	net.Conn
	begun bool // only the goroutine that writes uses it
}

// Write sends p. The first call has the commands that begin the connection.
func (c *plainConn) Write(p []byte) (int, error) {
	if c.begun {
		return c.Conn.Write(p)
	}
	c.begun = true
	if _, err := c.Conn.Write(bytes.Replace(p, helloCommand, pingCommand, 1)); err != nil {
		return 0, err
	}
	return len(p), nil
}
