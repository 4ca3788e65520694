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
	// maxPacket is the size in bytes of a packet that needs no fragmentation: an Ethernet frame
	// without the IP and UDP headers, and with room for a tunnel.
	maxPacket = 1432
	// maxValue is the room for the part of a line after the name, without tags.
	maxValue = len(":18446744073709551615|ms|@0.000001|#")
	// burst is the number of packets that are sent without a pause, so that the buffer of the
	// daemon can hold them.
	burst = 32
	pause = time.Millisecond
	// dialTimeout is the maximum time for looking up the name of the daemon.
	dialTimeout = 2 * time.Second
)

// packets sends packets to the metrics daemon.
type packets struct {
	conn net.Conn
	sent int
	err  error // the first failure
}

// dialUDP returns a sender to an address. It looks up the name each time, because the daemon may
// move. It fills packets before it sends them.
func dialUDP(ctx context.Context, address string) (statsd.Sender, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	// The address on which the daemon listens is unknown; most listen on IPv4.
	conn, err := dialer.DialContext(ctx, "udp4", address)
	if err != nil {
		conn, err = dialer.DialContext(ctx, "udp6", address)
	}
	if err != nil {
		return nil, fmt.Errorf("metrics daemon: %w", err)
	}
	// Full packets are sent at once, and the last one on Close, so no interval is needed.
	sender, err := statsd.NewBufferedSenderWithSender(&packets{conn: conn}, time.Hour, maxPacket)
	if err != nil {
		_ = conn.Close() // nothing was sent
		return nil, fmt.Errorf("metrics daemon: %w", err)
	}
	return sender, nil
}

// Send sends a packet. A "connection refused" refers to an earlier packet and is not a failure,
// because the daemon may start later.
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

// Close closes the socket and returns the first error.
func (p *packets) Close() error {
	return errors.Join(p.err, p.conn.Close())
}

// lineWriter writes one line for each statistic.
type lineWriter struct{ *bufio.Writer }

func newLineWriter(w io.Writer) lineWriter { return lineWriter{bufio.NewWriter(w)} }

// Send writes a line.
func (l lineWriter) Send(line []byte) (int, error) {
	n, err := l.Write(line)
	if err == nil {
		err = l.WriteByte('\n')
	}
	return n, err //nolint:wrapcheck // Close wraps the same error
}

// Close writes the buffered lines.
func (l lineWriter) Close() error {
	if err := l.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
