package lifecycle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

// events keeps what happens, in order.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) add(event string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

// newTestListener returns a listener that serves until it is shut down or fail sends an error.
func newTestListener(e *events, fail <-chan error) Listener {
	return &testListener{e, fail, make(chan struct{})}
}

type testListener struct {
	events *events
	fail   <-chan error
	closed chan struct{}
}

func (l *testListener) Addresses() logrus.Fields { return logrus.Fields{"api": "127.0.0.1:80"} }

func (l *testListener) Serve() error {
	select {
	case err := <-l.fail:
		return err
	case <-l.closed:
		return nil
	}
}

func (l *testListener) Shutdown(context.Context) error {
	l.events.add("shut down")
	close(l.closed)
	return nil
}

func newTestProcess(e *events, fail <-chan error) (*Process, *logtest.Hook) {
	log, hook := logtest.NewNullLogger()
	p := New(Config{Ready: logrus.Fields{"environment": "embedded"}, Drain: 5 * time.Second, Timeout: time.Second},
		logrus.NewEntry(log))
	_ = p.AddListener(newTestListener(e, fail), func() { e.add("cleaned up") }, nil)
	p.AddDrain(func() { e.add("drained") })
	p.AddBackground(func(ctx context.Context) {
		<-ctx.Done()
		e.add("background ended")
	})
	return p, hook
}

func TestRunStopsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e events
		p, hook := newTestProcess(&e, nil)
		ctx, stop := context.WithCancel(t.Context())
		began := time.Now()
		time.AfterFunc(time.Minute, stop)
		if err := p.Run(ctx); err != nil {
			t.Errorf("Run = %v", err)
		}
		p.Close()
		if want := []string{"drained", "shut down", "background ended", "cleaned up"}; !slices.Equal(e.list, want) {
			t.Errorf("the process did %v, want %v", e.list, want)
		}
		if took := time.Since(began); took != time.Minute+5*time.Second {
			t.Errorf("Run took %v, want the minute and the drain of 5 s", took)
		}
		ready := hook.AllEntries()[0]
		if ready.Message != "tollgate is ready" || ready.Data["environment"] != "embedded" ||
			ready.Data["api"] != "127.0.0.1:80" {
			t.Errorf("the first log line is %q with %v", ready.Message, ready.Data)
		}
	})
}

func TestRunReturnsErrorOfListenerWithoutDrain(t *testing.T) {
	broken := errors.New("broken")
	fail := make(chan error, 1)
	fail <- broken
	var e events
	p, _ := newTestProcess(&e, fail)
	if err := p.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run = %v, want %v", err, broken)
	}
	if want := []string{"shut down", "background ended"}; !slices.Equal(e.list, want) {
		t.Errorf("the process did %v, want %v", e.list, want)
	}
}

func TestRunReturnsErrorOfBackgroundWork(t *testing.T) {
	broken := errors.New("broken")
	var e events
	p, _ := newTestProcess(&e, nil)
	p.AddWork(func(context.Context) error { return broken })
	if err := p.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run = %v, want %v", err, broken)
	}
}
