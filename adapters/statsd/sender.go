package statsd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/cactus/go-statsd-client/v5/statsd"
)

const (
	// maxPacket is the size of a packet that passes everywhere, in bytes: an
	// Ethernet frame less the headers of IP and UDP, with room for a tunnel.
	maxPacket = 1432
	// maxValue is the room for what stands behind a name besides tags.
	maxValue = len(":18446744073709551615|ms|@0.000001|#")
	// burst is how many packets are sent without a pause, so that they find
	// room in the daemon's buffer.
	burst = 32
	pause = time.Millisecond
	// dialTimeout bounds the look-up of the daemon's name.
	dialTimeout = 2 * time.Second
)

// packets sends to the metrics daemon.
type packets struct {
	conn net.Conn
	sent int
	err  error // the first failure
}

// dial returns a sender to an address, which is looked up anew each time:
// daemons move. It fills packets.
func dialUDP(ctx context.Context, address string) (statsd.Sender, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	// Nothing tells which of a name's addresses a daemon listens on, and most listen on that of IPv4.
	conn, err := dialer.DialContext(ctx, "udp4", address)
	if err != nil {
		conn, err = dialer.DialContext(ctx, "udp6", address)
	}
	if err != nil {
		return nil, fmt.Errorf("metrics daemon: %w", err)
	}
	// Full packets are sent at once and the last one at the end: no interval.
	sender, err := statsd.NewBufferedSenderWithSender(&packets{conn: conn}, time.Hour, maxPacket)
	if err != nil {
		_ = conn.Close() // nothing was sent
		return nil, fmt.Errorf("metrics daemon: %w", err)
	}
	return sender, nil
}

// Send sends a packet. That nobody listens is the answer to the packet before,
// and no failure: a daemon may come later.
func (p *packets) Send(packet []byte) (int, error) {
	if p.sent++; p.sent%burst == 0 {
		time.Sleep(pause)
	}
	n, err := p.conn.Write(packet)
	if errors.Is(err, syscall.ECONNREFUSED) {
		n, err = p.conn.Write(packet)
	}
	if err != nil && p.err == nil && !errors.Is(err, syscall.ECONNREFUSED) {
		p.err = err
	}
	return n, err
}

// Close ends the sending and returns the first failure.
func (p *packets) Close() error {
	return errors.Join(p.err, p.conn.Close())
}

// lines writes to a stream, a line for each statistic.
type lineWriter struct{ *bufio.Writer }

func newLineWriter(w io.Writer) lineWriter { return lineWriter{bufio.NewWriter(w)} }

// Send writes a line.
func (l lineWriter) Send(line []byte) (int, error) {
	n, err := l.Write(line)
	if err == nil {
		err = l.WriteByte('\n')
	}
	return n, err //nolint:wrapcheck // Close tells of it
}

// Close writes out what is left.
func (l lineWriter) Close() error {
	if err := l.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
