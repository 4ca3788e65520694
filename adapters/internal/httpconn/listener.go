// Package httpconn has what the HTTP listeners share below the requests: accepting connections
// within a bound, refusing ambiguous requests, and reading the trace of a request from its header.
package httpconn

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// How long a listener waits after a failed accept: the time doubles from the first wait to the
// longest one.
const (
	firstWait   = 5 * time.Millisecond
	longestWait = time.Second
)

// logGap is the shortest time between two log lines about failed accepts.
const logGap = time.Minute

// refusalTime bounds how long the listener tries to send a refusal. The few bytes always fit into
// an empty socket, so this is only a safeguard.
const refusalTime = time.Second

// TooManyConnections is the HTTP response for refused connections.
const TooManyConnections = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n" +
	"Content-Type: application/json\r\nContent-Length: 32\r\n\r\n" + `{"error":"too many connections"}`

// ListenerOptions configure a listener.
type ListenerOptions struct {
	// Name is the listener's name in metrics and logs.
	Name string
	// Max is how many connections may be open at once; further ones are closed at once. 0 means no
	// bound.
	Max int
	// PerClient is how many of them one client may have open; of further ones, the oldest idle
	// connection of the client is closed, or the new one is refused if all are busy. 0 means no
	// bound. The server must report the states of connections to SetState.
	PerClient int
	// ClientOf returns the addresses that count as one client with an address. It returns false for
	// addresses without the bound of PerClient. It is required with PerClient.
	ClientOf func(netip.Addr) (netip.Prefix, bool)
	// Refusal is sent on a refused connection before it is closed; empty for nothing.
	Refusal string
	// Refused counts refused connections. It is optional: without it, the listener registers a
	// metric of its own.
	Refused prometheus.Counter
	// Metrics is where the metrics are registered; nil for nowhere.
	Metrics prometheus.Registerer
	Log     *logrus.Entry
}

// Listener accepts connections. Its Accept is called by one goroutine.
type Listener struct {
	net.Listener
	options ListenerOptions
	open    atomic.Int64
	idles   atomic.Int64 // how often a connection became idle
	refused prometheus.Counter
	failed  prometheus.Counter
	ended   chan struct{} // closed by the first Close
	end     sync.Once
	clients clients

	// Only Accept uses these.
	wait     time.Duration
	loggedAt time.Time
	unlogged int // failures since the last log line
}

// NewListener returns a listener that accepts the connections of l.
func NewListener(l net.Listener, o ListenerOptions) *Listener {
	a := &Listener{Listener: l, options: o, refused: o.Refused, ended: make(chan struct{})}
	labels := prometheus.Labels{"listener": o.Name}
	a.failed = prometheus.NewCounter(prometheus.CounterOpts{
		Name:        "tollgate_listener_accept_errors_total",
		Help:        "Attempts to accept a connection that failed and were made again.",
		ConstLabels: labels,
	})
	collectors := []prometheus.Collector{a.failed}
	if a.refused == nil {
		a.refused = prometheus.NewCounter(prometheus.CounterOpts{
			Name:        "tollgate_listener_connections_refused_total",
			Help:        "Connections that were closed at once because the listener's limit was reached.",
			ConstLabels: labels,
		})
		collectors = append(collectors, a.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "tollgate_listener_connections",
			Help:        "Connections that are open.",
			ConstLabels: labels,
		}, func() float64 { return float64(a.open.Load()) }))
	}
	if o.Metrics != nil {
		o.Metrics.MustRegister(collectors...)
	}
	return a
}

// Accept returns the next connection within the bound. It returns an error only when the listener
// was closed or can never accept again.
func (a *Listener) Accept() (net.Conn, error) {
	for {
		c, err := a.Listener.Accept()
		switch {
		case err != nil && !IsTemporary(err):
			return nil, err
		case err != nil:
			a.recordFailure(err)
			a.waitBeforeRetry()
		default:
			a.wait = 0
			if bounded := a.admitConn(c); bounded != nil {
				return bounded, nil
			}
			a.refuseConn(c)
		}
	}
}

// admitConn returns a connection within the bounds, or nil.
func (a *Listener) admitConn(c net.Conn) *boundedConn {
	b := &boundedConn{Conn: c, listener: a}
	b.idle.Store(a.idles.Add(1))
	if a.options.PerClient > 0 {
		if client, ok := a.options.ClientOf(peerAddress(c)); ok {
			b.client = client
		}
	}
	if !a.clients.add(b, a.options.PerClient) {
		return nil
	}
	if a.open.Add(1) <= int64(a.options.Max) || a.options.Max == 0 {
		return b
	}
	a.open.Add(-1)
	a.clients.remove(b)
	return nil
}

// Close closes the listener; connections stay open.
func (a *Listener) Close() error {
	a.end.Do(func() { close(a.ended) })
	return a.Listener.Close()
}

// recordFailure counts a failed accept, and logs it unless the last line is younger than logGap.
func (a *Listener) recordFailure(err error) {
	a.failed.Inc()
	a.unlogged++
	if now := time.Now(); a.options.Log != nil && (a.loggedAt.IsZero() || now.Sub(a.loggedAt) >= logGap) {
		a.options.Log.WithError(err).WithFields(logrus.Fields{"listener": a.options.Name, "failures": a.unlogged}).
			Error("connections cannot be accepted; trying again until they can")
		a.loggedAt, a.unlogged = now, 0
	}
}

// waitBeforeRetry waits before the next attempt, until Close at the latest.
func (a *Listener) waitBeforeRetry() {
	a.wait = min(max(2*a.wait, firstWait), longestWait)
	timer := time.NewTimer(a.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.ended:
	}
}

func (a *Listener) refuseConn(c net.Conn) {
	a.refused.Inc()
	if a.options.Refusal != "" && c.SetWriteDeadline(time.Now().Add(refusalTime)) == nil {
		_, _ = io.WriteString(c, a.options.Refusal) // the client may have gone
	}
	_ = c.Close() // the connection was not used
}

// IsTemporary reports whether accepting may succeed later although err was returned now. accept(2)
// also returns errors of the network and of the connection itself, which differ by system, so all
// errors of the system count except those that say that this is no listening socket.
func IsTemporary(err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	var number syscall.Errno
	if !errors.As(err, &number) {
		var timeout net.Error
		return errors.As(err, &timeout) && timeout.Timeout()
	}
	switch number {
	case syscall.EBADF, syscall.EFAULT, syscall.EINVAL, syscall.ENOTSOCK:
		return false
	default:
		return true
	}
}

// Timeouts are how long a client may take. 0 means no bound.
type Timeouts struct {
	Request  time.Duration // to send a request
	Response time.Duration // to receive a response
	Idle     time.Duration // until its next request
}

// deadline is the deadline of one direction of a connection. Its zero value is none. To set it for
// each request would cost as much as to find the response.
type deadline struct {
	at    time.Time
	begun bool // what is received or sent now
}

// begin begins the time of what is received or sent next, unless it has begun. It leaves a deadline
// that is at most a 64th of the time too early.
func (d *deadline) begin(timeout time.Duration, set func(time.Time) error) error {
	if timeout == 0 || d.begun {
		return nil
	}
	d.begun = true
	next := time.Now().Add(timeout)
	if later := next.Sub(d.at); later >= 0 && later <= timeout/64 {
		return nil
	}
	d.at = next
	return set(next)
}
