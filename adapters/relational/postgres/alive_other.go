//go:build !unix

package postgres

import "net"

// alive cannot look at the connection here: the first statement on one that
// the server has closed fails.
func alive(net.Conn) error { return nil }
