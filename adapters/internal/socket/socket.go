// Package socket looks at the state of connections without reading from them. It is not for data.
package socket

import (
	"net"
	"syscall"
)

// State is what the other side of a connection has done.
type State uint8

// The states of a connection.
const (
	Unknown State = iota // the connection has no socket
	Quiet                // it has sent nothing that was not read
	Data                 // it has sent something that was not read
	Closed               // it has closed or reset the connection
)

// maxLayers is how many connections around the socket are opened, for example that of TLS.
const maxLayers = 8

// Peek returns the state of a connection. It does not wait and takes nothing from the stream.
func Peek(conn net.Conn) State {
	for range maxLayers {
		outer, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = outer.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return Unknown
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return Closed
	}
	state := Unknown
	if err := raw.Control(func(fd uintptr) { state = peekDescriptor(fd) }); err != nil {
		return Closed
	}
	return state
}
