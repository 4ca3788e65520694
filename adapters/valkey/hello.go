package valkey

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"hash"
	"net"
	"sync"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/core/auth"
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

// copyAuthenticator authenticates copies of sessions, so that an attacker who can write to the
// store can neither change a session nor make one (contract A-62). The tag covers the key in the
// store and the bytes of the copy, which contain the time of reading: a copy is good for one
// session, and only for sessioncache.MaxAge after it was read. It is safe for concurrent use.
type copyAuthenticator struct {
	hashes sync.Pool // of hash.Hash: a keyed hash that was used before costs no allocation
}

func newCopyAuthenticator(k auth.Key) *copyAuthenticator {
	return &copyAuthenticator{sync.Pool{New: func() any { return k.NewHash() }}}
}

// seal appends the tag to the bytes of a copy.
func (a *copyAuthenticator) seal(key string, content []byte) []byte {
	return a.sum(content, key, content)
}

// open returns the bytes of a copy without the tag, and false if the tag is not the one of the key
// and the bytes.
func (a *copyAuthenticator) open(key string, sealed []byte) (content []byte, ok bool) {
	if len(sealed) < sha256.Size {
		return nil, false
	}
	content, tag := sealed[:len(sealed)-sha256.Size], sealed[len(sealed)-sha256.Size:]
	var want [sha256.Size]byte
	return content, hmac.Equal(tag, a.sum(want[:0], key, content))
}

// sum appends the tag of a key and a content to b. The key has a fixed prefix and is followed by a
// byte that the ID of a session does not contain, so that no two pairs have the same text.
func (a *copyAuthenticator) sum(b []byte, key string, content []byte) []byte {
	h, _ := a.hashes.Get().(hash.Hash) // the pool has nothing else
	defer a.hashes.Put(h)
	h.Reset()
	_, _ = h.Write(append(append(make([]byte, 0, 64), key...), 0)) // a hash never fails to write
	_, _ = h.Write(content)
	return h.Sum(b)
}
