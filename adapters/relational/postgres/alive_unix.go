//go:build unix

package postgres

import (
	"crypto/tls"
	"database/sql/driver"
	"net"
	"syscall"
)

// checkIdle reports whether a connection that was idle still stands: a server that
// was restarted meanwhile has closed it, and said so, and the first statement
// on it would fail. It looks without waiting and takes nothing from the
// stream. What the server sends unasked is a farewell, too.
func checkIdle(conn net.Conn) error {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return driver.ErrBadConn
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var next [1]byte
		_, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR
		return true
	})
	if err != nil || !quiet {
		return driver.ErrBadConn
	}
	return nil
}
