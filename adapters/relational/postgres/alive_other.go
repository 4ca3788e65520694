//go:build !unix

package postgres

import "net"

// checkIdle returns nil: this platform cannot look at the connection. The first statement on a
// connection that the server has closed fails.
func checkIdle(net.Conn) error { return nil }
