package statsd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/cactus/go-statsd-client/v5/statsd"
)

const (
	// maxPending is the maximum number of bytes that wait to be written.
	maxPending = 64 << 10
	// maxLine is the maximum length of a line in bytes.
	maxLine = 8 << 10
	// writeTimeout is the maximum time of a write. The rest of a partial write follows at the next
	// flush.
	writeTimeout = time.Second
	// hungAfter is how long a daemon may read nothing before the connection is replaced.
	hungAfter = 30 * time.Second
	// firstRetry is the time before the second attempt to connect; it doubles up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// tcpStream sends lines to a metrics daemon over a TCP connection that it keeps between flushes.
// While the daemon is unreachable or slow, Send refuses lines, and the sink sends their counts
// later. So no flush waits long for the daemon, and memory is limited. Its methods are not called
// concurrently.
type tcpStream struct {
	network, address string

	conn    net.Conn      // nil if not connected
	ended   chan struct{} // closed when the daemon has ended conn
	pending []byte        // lines that are not written completely
	written int           // written bytes of the first pending line
	taken   time.Time     // time of the last successful write

	wait  time.Duration // before the next attempt to connect
	retry time.Time     // time of the next attempt
	err   error         // of the last attempt
}

// open returns a sender for one flush, or the error of the last attempt to connect.
func (s *tcpStream) open(ctx context.Context) (statsd.Sender, error) {
	if s.conn != nil {
		select {
		case <-s.ended:
			s.closeConnection()
		default:
		}
	}
	if s.conn == nil {
		if err := s.connectDaemon(ctx); err != nil {
			return nil, err
		}
	}
	return &batch{stream: s}, nil
}

// last makes the next flush connect at once.
func (s *tcpStream) last() { s.retry = time.Time{} }

// close closes the connection.
func (s *tcpStream) close() {
	if s.conn != nil {
		s.closeConnection()
	}
}

// connectDaemon connects to the daemon. It looks up the name each time, because the daemon may
// move.
func (s *tcpStream) connectDaemon(ctx context.Context) error {
	if time.Now().Before(s.retry) {
		return s.err
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, s.network, s.address)
	if err != nil {
		s.wait = min(max(2*s.wait, firstRetry), lastRetry)
		// #nosec G404 -- so that not all instances connect at the same time
		spread := time.Duration(rand.Int64N(int64(s.wait / 4)))
		s.retry = time.Now().Add(s.wait - spread)
		s.err = fmt.Errorf("metrics daemon: %w", err)
		return s.err
	}
	ended := make(chan struct{})
	go func() { // the daemon sends nothing, so a read ends with the connection
		defer close(ended)
		_, _ = io.Copy(io.Discard, conn) // the error does not matter
	}()
	s.conn, s.ended, s.taken, s.wait = conn, ended, time.Now(), 0
	return nil
}

// closeConnection closes the connection. A partially written line is sent again on the next
// connection.
func (s *tcpStream) closeConnection() {
	_ = s.conn.Close() // written data is sent or lost
	<-s.ended
	s.conn, s.written = nil, 0
}

// writeUnsent writes the pending lines, or as much of them as the daemon reads.
func (s *tcpStream) writeUnsent() error {
	if len(s.pending) == s.written {
		return nil
	}
	if s.conn == nil {
		return errors.New("metrics daemon: no connection")
	}
	now := time.Now()
	if err := s.conn.SetWriteDeadline(now.Add(writeTimeout)); err != nil {
		s.closeConnection()
		return fmt.Errorf("metrics daemon: %w", err)
	}
	n, err := s.conn.Write(s.pending[s.written:])
	s.dropSent(n)
	if n > 0 {
		s.taken = time.Now()
	}
	if err == nil {
		return nil
	}
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(s.taken) > hungAfter {
		s.closeConnection()
	}
	return fmt.Errorf("metrics daemon: %w", err)
}

// dropSent removes the completely written lines.
func (s *tcpStream) dropSent(n int) {
	s.written += n
	whole := bytes.LastIndexByte(s.pending[:s.written], '\n') + 1
	s.pending = s.pending[:copy(s.pending, s.pending[whole:])]
	s.written -= whole
}

// batch is one flush.
type batch struct {
	stream *tcpStream
	err    error // makes the rest of the flush fail
}

// Send adds a line. It returns an error if there is no room and the daemon does not read.
func (b *batch) Send(line []byte) (int, error) {
	if b.err == nil && len(b.stream.pending)+len(line) >= maxPending {
		b.err = b.stream.writeUnsent()
	}
	if b.err == nil && len(b.stream.pending)+len(line) >= maxPending {
		b.err = errors.New("metrics daemon: it does not read the statistics fast enough")
	}
	if b.err != nil {
		return 0, b.err
	}
	b.stream.pending = append(append(b.stream.pending, line...), '\n')
	return len(line), nil
}

// Close writes the rest, and keeps the connection for the next flush.
func (b *batch) Close() error {
	if b.err == nil {
		b.err = b.stream.writeUnsent()
	}
	return b.err
}
