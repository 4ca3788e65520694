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
	// maxPending bounds what is kept of lines that the daemon has not taken yet, in bytes.
	maxPending = 64 << 10
	// maxLine is the room for a line of a stream, in bytes.
	maxLine = 8 << 10
	// writeTimeout bounds one write. A daemon that takes part of it gets the rest with the next flush.
	writeTimeout = time.Second
	// hungAfter is how long a daemon may take nothing at all before it gets a new connection.
	hungAfter = 30 * time.Second
	// firstRetry is how long to wait after a failed connection; it doubles up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// stream sends lines to a metrics daemon over a TCP connection that it keeps from flush to flush. While
// the daemon is away, hung or slow, it refuses lines, which are then counted on and come again: nothing
// waits for the daemon for long, and nothing piles up. Its methods are called one at a time.
type tcpStream struct {
	network, address string

	conn    net.Conn      // nil for none
	ended   chan struct{} // closed when the daemon has ended conn
	pending []byte        // whole lines that conn has not taken all of
	written int           // how much of the first pending line conn has taken
	taken   time.Time     // when conn last took something

	wait  time.Duration // before the next try to connect
	retry time.Time     // when that is
	err   error         // why the last try failed
}

// open returns a sender for one flush, or why there is no connection.
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

// last makes the next flush try to connect at once.
func (s *tcpStream) last() { s.retry = time.Time{} }

// close ends the connection.
func (s *tcpStream) close() {
	if s.conn != nil {
		s.closeConnection()
	}
}

// connect looks the daemon's name up anew each time: daemons move.
func (s *tcpStream) connectDaemon(ctx context.Context) error {
	if time.Now().Before(s.retry) {
		return s.err
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, s.network, s.address)
	if err != nil {
		s.wait = min(max(2*s.wait, firstRetry), lastRetry)
		spread := time.Duration(rand.Int64N(int64(s.wait / 4))) // #nosec G404 -- instances should not come all at once
		s.retry = time.Now().Add(s.wait - spread)
		s.err = fmt.Errorf("metrics daemon: %w", err)
		return s.err
	}
	ended := make(chan struct{})
	go func() { // the daemon sends nothing: a read ends when the connection does
		defer close(ended)
		_, _ = io.Copy(io.Discard, conn) // why it ended does not matter
	}()
	s.conn, s.ended, s.taken, s.wait = conn, ended, time.Now(), 0
	return nil
}

// disconnect ends the connection. A line of which it took a part is sent again on the next one.
func (s *tcpStream) closeConnection() {
	_ = s.conn.Close() // what it took is sent or lost
	<-s.ended
	s.conn, s.written = nil, 0
}

// write sends what is pending, or as much of it as the daemon takes.
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

// advance forgets the lines that were written whole.
func (s *tcpStream) dropSent(n int) {
	s.written += n
	whole := bytes.LastIndexByte(s.pending[:s.written], '\n') + 1
	s.pending = s.pending[:copy(s.pending, s.pending[whole:])]
	s.written -= whole
}

// batch is one flush.
type batch struct {
	stream *tcpStream
	err    error // ends the flush
}

// Send takes a line, or fails if there is no room for it and the daemon makes none.
func (b *batch) Send(line []byte) (int, error) {
	if b.err == nil && len(b.stream.pending)+len(line) >= maxPending {
		b.err = b.stream.writeUnsent()
	}
	if b.err == nil && len(b.stream.pending)+len(line) >= maxPending {
		b.err = errors.New("metrics daemon: too slow")
	}
	if b.err != nil {
		return 0, b.err
	}
	b.stream.pending = append(append(b.stream.pending, line...), '\n')
	return len(line), nil
}

// Close sends what is left and keeps the connection for the next flush.
func (b *batch) Close() error {
	if b.err == nil {
		b.err = b.stream.writeUnsent()
	}
	return b.err
}
