package postgres

import (
	"database/sql/driver"
	"net"

	"github.com/tollgate-dev/tollgate/adapters/internal/socket"
)

// checkIdle returns driver.ErrBadConn if the server has closed an idle connection, for example
// because it was restarted. The first statement on it would fail. It does not wait and reads
// nothing from the stream. Data that the server sent without a request also means that it ended the
// connection.
func checkIdle(conn net.Conn) error {
	switch socket.Peek(conn) {
	case socket.Data, socket.Closed:
		return driver.ErrBadConn
	}
	return nil
}
