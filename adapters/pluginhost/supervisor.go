package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/adapters/pause"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
)

// State is where a plugin stands.
type State string

// The states. A plugin is idle until something asks for it.
const (
	Idle     State = "idle"     // nothing has asked for it
	Starting State = "starting" // the process is coming up
	Running  State = "running"  // it answers
	Failed   State = "failed"   // it was killed, ended or refused; the next try is due later
	Closed   State = "closed"   // the host is closed
)

// Status tells of one plugin.
type Status struct {
	Name      string
	Kind      string // "courier" or "ownership"
	Version   string // as the plugin names it; empty until it has run, or where it names none
	State     State
	PID       int    // of the running process; 0 for none
	Restarts  int    // how often it was started again after a failure
	LastError string // why it last failed; empty if it never did
}

// errClosed answers calls after the host was closed.
var errClosed = errors.New("plugin host is closed")

// supervisor keeps one plugin running.
type supervisor struct {
	spec    spec
	cfg     Config
	sockets string
	log     *logrus.Entry
	calls   callMeter
	begin   func() // starts run in the background, once; later calls do nothing

	settled chan struct{} // closed when the first start has succeeded or failed, or the host closes

	mu          sync.Mutex
	state       State
	current     *instance
	description *pluginclient.Description // of the last run, kept over restarts
	restarts    int
	lastErr     error
	retryAt     time.Time
}

// run starts the plugin over and over, until ctx ends.
func (s *supervisor) run(ctx context.Context) {
	defer s.close()
	delay := s.cfg.RestartDelayMin
	for ctx.Err() == nil {
		s.enter(Starting)
		begun := time.Now()
		err := s.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) >= s.cfg.RestartDelayMax {
			delay = s.cfg.RestartDelayMin
		}
		wait := delay/2 + rand.N(delay/2+1) // some spread, so that plugins that failed together do not start together
		s.failed(err, wait)
		if !pause.For(ctx, wait) {
			return
		}
		delay = min(2*delay, s.cfg.RestartDelayMax)
		s.restarted()
	}
}

// runOnce starts the plugin and returns why it is no longer running; the process is gone by then.
func (s *supervisor) runOnce(ctx context.Context) error {
	i, err := launch(ctx, s.spec, s.sockets, s.cfg.Around, s.log)
	if err != nil {
		return err
	}
	s.running(i)
	err = i.watch(ctx, s.cfg.HealthInterval, s.cfg.HealthTimeout)
	if err == nil {
		s.close()
		i.stop()
		return nil
	}
	s.lost(err)
	i.killProcess()
	return err
}

// use calls the plugin, bounded by the call deadline. The error is that of call, or why the plugin cannot be called.
func (s *supervisor) use(ctx context.Context, call func(context.Context, grpc.ClientConnInterface, pluginclient.Description) error) error {
	began := time.Now()
	err := s.bounded(ctx, call)
	s.calls.ended(ctx, began, err)
	return err
}

func (s *supervisor) bounded(ctx context.Context, call func(context.Context, grpc.ClientConnInterface, pluginclient.Description) error) error {
	began := time.Now()
	limited, cancel := context.WithDeadline(ctx, began.Add(s.spec.limits.call))
	defer cancel()
	i, err := s.acquire(limited)
	if err != nil {
		return err
	}
	timer := time.AfterFunc(s.cfg.HealthTimeout, i.doubt)
	defer timer.Stop()
	err = call(limited, i.conn, i.description)
	switch {
	case err == nil:
		i.count(false)
	case s.overran(ctx, began, err):
		i.count(true)
	}
	return err
}

// overran reports whether err is that of a call which took longer than the host allows. A deadline of the caller's own that
// ends sooner is no fault of the plugin. Whether the caller's context has ended does not show that: the plugin has the same
// deadline, and when it closes the call there, the host may read that before the caller's timer fires.
func (s *supervisor) overran(caller context.Context, began time.Time, err error) bool {
	due := began.Add(s.spec.limits.call)
	if earlier, bounded := caller.Deadline(); bounded && earlier.Before(due) {
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(due)
}

// down says that a plugin cannot be called now.
type down struct {
	name    string
	cause   error
	retryIn time.Duration // 0 = not known
}

func (d *down) Error() string { return fmt.Sprintf("plugin %s is down: %v", d.name, d.cause) }
func (d *down) Unwrap() error { return d.cause }

// acquire returns the running instance. It waits for a first start only: a plugin that has failed answers at once.
func (s *supervisor) acquire(ctx context.Context) (*instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, &down{name: s.spec.name, cause: err}
	}
	if err := s.settle(ctx); err != nil {
		return nil, &down{name: s.spec.name, cause: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current, nil
	}
	d := &down{name: s.spec.name, cause: s.lastErr}
	if s.state == Closed {
		d.cause = errClosed
	} else if wait := time.Until(s.retryAt); wait > 0 {
		d.retryIn = wait
	}
	return nil, d
}

// settle starts the plugin if nothing did before, and waits until it is known whether it runs.
func (s *supervisor) settle(ctx context.Context) error {
	s.begin()
	select {
	case <-s.settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// described returns what the plugin said of itself when it last ran; nil if it never did.
func (s *supervisor) described() *pluginclient.Description {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.description
}

func (s *supervisor) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{Name: s.spec.name, Kind: string(s.spec.kind), State: s.state, Restarts: s.restarts}
	if s.description != nil {
		status.Version = s.description.Version
	}
	if s.current != nil {
		status.PID = s.current.process.pid()
	}
	if s.lastErr != nil {
		status.LastError = shortened(s.lastErr.Error())
	}
	return status
}

func (s *supervisor) enter(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *supervisor) running(i *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.current, s.description = Running, i, &i.description
	s.settleLocked()
	s.log.WithFields(logrus.Fields{"version": i.description.Version, "pid": i.process.pid()}).Info("plugin runs")
}

// lost takes the instance away from callers, before its process is gone.
func (s *supervisor) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.current, s.lastErr = Failed, nil, err
}

// failed tells when the next start is due.
func (s *supervisor) failed(err error, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.current, s.lastErr, s.retryAt = Failed, nil, err, time.Now().Add(pause)
	s.settleLocked()
	s.log.WithField("retry_in", pause.String()).WithField("error", shortened(err.Error())).Warn("plugin failed")
}

func (s *supervisor) restarted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarts++
}

func (s *supervisor) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.current = Closed, nil
	s.settleLocked()
}

func (s *supervisor) settleLocked() {
	select {
	case <-s.settled:
	default:
		close(s.settled)
	}
}
