//go:build unix

package postgres

import (
	"crypto/tls"
	"database/sql/driver"
	"net"
	"syscall"
)

// checkIdle returns driver.ErrBadConn if the server has closed an idle connection, for example
// because it was restarted. The first statement on it would fail. It does not wait and reads
// nothing from the stream. Data that the server sent without a request also means that it ended the
// connection.
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
