package valkey

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"

	"github.com/valkey-io/valkey-go"
)

// withoutHello changes the options so that the client sends neither HELLO nor CLIENT. It then uses
// RESP2, without client-side caching. Proxies do not know these commands: Envoy refuses them,
// others close the connection.
func withoutHello(o valkey.ClientOption) valkey.ClientOption {
	connect := o.DialCtxFn
	o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		c, err := connect(ctx, address, d, t)
		if err != nil {
			return nil, err
		}
		return &noHelloConn{Conn: c}, nil
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

var (
	// helloCommand is what valkey-go sends first on a RESP2 connection. noHelloConn sends
	// pingCommand instead, because valkey-go needs nothing from the response.
	helloCommand = []byte("*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n")
	pingCommand  = []byte("*1\r\n$4\r\nPING\r\n")
)

// noHelloConn is a connection that sends PING instead of HELLO.
type noHelloConn struct {
	net.Conn
	started bool // used only by the goroutine that writes
}

// Write implements net.Conn. The first call contains the commands that start the connection.
func (c *noHelloConn) Write(p []byte) (int, error) {
	if c.started {
		return c.Conn.Write(p)
	}
	c.started = true
	if _, err := c.Conn.Write(bytes.Replace(p, helloCommand, pingCommand, 1)); err != nil {
		return 0, err
	}
	return len(p), nil
}
