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
)

// faulty is a listener that fails before it accepts.
type faulty struct {
	net.Listener
	failures []error
}

func (f *faulty) Accept() (net.Conn, error) {
	if len(f.failures) == 0 {
		return f.Listener.Accept()
	}
	err := f.failures[0]
	f.failures = f.failures[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAcceptGoesOn expects a connection after every error that passes, one log line for all of them, and a count.
func TestAcceptGoesOn(t *testing.T) {
	failures := []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPROTO, syscall.ECONNABORTED, syscall.ENETDOWN,
	}
	var lines bytes.Buffer
	log := logrus.New()
	log.SetOutput(&lines)
	inner, metrics := listen(t), prometheus.NewRegistry()
	l := httpconn.NewListener(&faulty{inner, failures}, httpconn.ListenerOptions{Name: "test", Metrics: metrics, Log: logrus.NewEntry(log)})
	dial(t, inner)
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(lines.String(), "\n"); n != 1 || !strings.Contains(lines.String(), "too many open files") {
		t.Errorf("logged %q, want one line", lines.String())
	}
	if got := samples(t, metrics)["tollgate_listener_accept_errors_total"]; got != float64(len(failures)) {
		t.Errorf("%v failures are counted, want %d", got, len(failures))
	}
}

// TestAcceptEnds expects an end after Close, also while the listener waits after a failure, and after errors that never pass.
func TestAcceptEnds(t *testing.T) {
	many := make([]error, 1000)
	for i := range many {
		many[i] = syscall.EMFILE
	}
	closing := httpconn.NewListener(&faulty{listen(t), many}, httpconn.ListenerOptions{Name: "test"})
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
	select {
	case err := <-done:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed listener: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a closed listener goes on")
	}
	for _, never := range []error{syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK} {
		l := httpconn.NewListener(&faulty{listen(t), []error{never}}, httpconn.ListenerOptions{Name: "test"})
		if _, err := l.Accept(); !errors.Is(err, never) {
			t.Errorf("%v: got %v", never, err)
		}
	}
}

// TestAcceptBound expects connections beyond the bound to be refused and counted, and others to be accepted once there is room.
func TestAcceptBound(t *testing.T) {
	metrics := prometheus.NewRegistry()
	inner := listen(t)
	l := httpconn.NewListener(inner, httpconn.ListenerOptions{Name: "test", Max: 1, Refusal: httpconn.TooManyConnections, Metrics: metrics})
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
	dial(t, inner)
	first := <-accepted
	for range 3 {
		answer, err := io.ReadAll(dial(t, inner))
		if err != nil || string(answer) != httpconn.TooManyConnections {
			t.Errorf("refused with %q, %v", answer, err)
		}
	}
	_ = first.Close()
	_ = first.Close() // makes room only once
	dial(t, inner)
	<-accepted
	if answer, err := io.ReadAll(dial(t, inner)); err != nil || string(answer) != httpconn.TooManyConnections {
		t.Errorf("refused with %q, %v", answer, err)
	}
	got := samples(t, metrics)
	if open, refused := got["tollgate_listener_connections"], got["tollgate_listener_connections_refused_total"]; open != 1 || refused != 4 {
		t.Errorf("%v connections are open and %v were refused, want 1 and 4", open, refused)
	}
}

// samples returns the values of metrics by their names.
func samples(t *testing.T, metrics *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, sample := range family.GetMetric() {
			all[family.GetName()] += sample.GetCounter().GetValue() + sample.GetGauge().GetValue()
		}
	}
	return all
}
