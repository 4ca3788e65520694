package httpconn_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// failingListener returns errors before it accepts connections.
type failingListener struct {
	net.Listener
	failures []error
}

func (f *failingListener) Accept() (net.Conn, error) {
	if len(f.failures) == 0 {
		return f.Listener.Accept()
	}
	err := f.failures[0]
	f.failures = f.failures[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

func newListener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dialListener(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must.Succeed(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

// TestAcceptRetries checks that Accept returns a connection after temporary errors, logs one line
// for all of them, and counts each error.
func TestAcceptRetries(t *testing.T) {
	failures := []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPROTO, syscall.ECONNABORTED,
		syscall.ENETDOWN,
	}
	var lines bytes.Buffer
	log := logrus.New()
	log.SetOutput(&lines)
	inner, metrics := newListener(t), prometheus.NewRegistry()
	l := httpconn.NewListener(&failingListener{inner, failures}, httpconn.ListenerOptions{
		Name: "test", Metrics: metrics, Log: logrus.NewEntry(log),
	})
	dialListener(t, inner)
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(lines.String(), "\n"); n != 1 || !strings.Contains(lines.String(), "too many open files") {
		t.Errorf("logged %q, want one line", lines.String())
	}
	if got := sumSamples(t, metrics)["tollgate_listener_accept_errors_total"]; got != float64(len(failures)) {
		t.Errorf("%v failures were counted, want %d", got, len(failures))
	}
}

// TestAcceptEnds checks that Accept returns an error after Close, even while it waits after a
// failure, and after a permanent error.
func TestAcceptEnds(t *testing.T) {
	many := make([]error, 1000)
	for i := range many {
		many[i] = syscall.EMFILE
	}
	closing := httpconn.NewListener(&failingListener{newListener(t), many}, httpconn.ListenerOptions{Name: "test"})
	time.AfterFunc(50*time.Millisecond, func() { _ = closing.Close() })
	done := make(chan error, 1)
	go func() {
		for {
			if _, err := closing.Accept(); err != nil {
				done <- err
				return
			}
		}
	}()
	if err := await.Receive(t, "the end of Accept", done); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed listener: %v", err)
	}
	for _, permanent := range []error{syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK} {
		l := httpconn.NewListener(&failingListener{newListener(t), []error{permanent}}, httpconn.ListenerOptions{
			Name: "test",
		})
		if _, err := l.Accept(); !errors.Is(err, permanent) {
			t.Errorf("%v: got %v", permanent, err)
		}
	}
}

// TestAcceptBound checks that connections beyond the bound are refused and counted, and that
// connections are accepted again after another connection is closed.
func TestAcceptBound(t *testing.T) {
	metrics := prometheus.NewRegistry()
	inner := newListener(t)
	l := httpconn.NewListener(inner, httpconn.ListenerOptions{
		Name: "test", Max: 1, Refusal: httpconn.TooManyConnections, Metrics: metrics,
	})
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dialListener(t, inner)
	first := <-accepted
	for range 3 {
		received, err := io.ReadAll(dialListener(t, inner))
		if err != nil || string(received) != httpconn.TooManyConnections {
			t.Errorf("the refused client got %q, %v", received, err)
		}
	}
	_ = first.Close()
	_ = first.Close() // the second Close must not make room again
	dialListener(t, inner)
	<-accepted
	if received, err := io.ReadAll(dialListener(t, inner)); err != nil ||
		string(received) != httpconn.TooManyConnections {
		t.Errorf("the refused client got %q, %v", received, err)
	}
	got := sumSamples(t, metrics)
	if open, refused := got["tollgate_listener_connections"],
		got["tollgate_listener_connections_refused_total"]; open != 1 || refused != 4 {
		t.Errorf("%v connections are open and %v were refused, want 1 and 4", open, refused)
	}
}

// sumSamples returns the sums of all samples of metrics, by name.
func sumSamples(t *testing.T, metrics *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	must.Succeed(t, err)
	all := map[string]float64{}
	for _, family := range families {
		for _, sample := range family.GetMetric() {
			all[family.GetName()] += sample.GetCounter().GetValue() + sample.GetGauge().GetValue()
		}
	}
	return all
}
