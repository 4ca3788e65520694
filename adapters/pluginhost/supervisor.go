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

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
)

// State is the state of a plugin.
type State string

// The states of a plugin.
const (
	Idle     State = "not used" // nothing has used it yet
	Starting State = "starting" // the process is starting
	Running  State = "running"  // it answers calls
	Failed   State = "failed"   // it was killed, has ended or could not start; the host tries again later
	Closed   State = "closed"   // the host is closed
)

// Status is the status of one plugin.
type Status struct {
	Name      string
	Kind      string // "courier" or "ownership"
	Version   string // as the plugin reports it; empty before its first run
	State     State
	PID       int    // of the running process, or 0
	Restarts  int    // the number of starts after a failure
	LastError string // the last failure; empty if it never failed
}

// errClosed is the error of calls after the host is closed.
var errClosed = errors.New("the plugin host is closed")

// supervisor starts one plugin and keeps it running.
type supervisor struct {
	spec      spec
	cfg       Config
	sockets   string
	log       *logrus.Entry
	calls     callMeter
	startOnce func() // starts keepRunning in the background; further calls do nothing

	settled chan struct{} // closed when the first start has succeeded or failed, or the host is closed

	mu          sync.Mutex
	state       State
	current     *instance
	description *pluginclient.Description // of the last run, kept during restarts
	restarts    int
	lastErr     error
	retryAt     time.Time
}

// keepRunning starts the plugin, and starts it again after each failure, until ctx ends.
func (s *supervisor) keepRunning(ctx context.Context) {
	defer s.markClosed()
	delay := s.cfg.RestartDelayMin
	for ctx.Err() == nil {
		s.setState(Starting)
		begun := time.Now()
		err := s.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) >= s.cfg.RestartDelayMax {
			delay = s.cfg.RestartDelayMin
		}
		// random, so that plugins that failed together do not start together
		untilRestart := delay/2 + rand.N(delay/2+1)
		s.recordFailure(err, untilRestart)
		if !pause.For(ctx, untilRestart) {
			return
		}
		delay = min(2*delay, s.cfg.RestartDelayMax)
		s.countRestart()
	}
}

// runOnce starts the plugin and returns the reason when it no longer runs. The process has then
// ended.
func (s *supervisor) runOnce(ctx context.Context) error {
	i, err := launchInstance(ctx, s.spec, s.sockets, s.cfg, s.log)
	if err != nil {
		return err
	}
	s.setRunning(i)
	err = i.watchHealth(ctx, s.cfg.HealthInterval, s.cfg.HealthTimeout)
	if err == nil {
		s.markClosed()
		i.stopGracefully()
		return nil
	}
	s.dropInstance(err)
	i.killProcess()
	return err
}

// callPlugin calls call with the running plugin and the call deadline, and records the result. It
// returns the error of call, or an error if the plugin cannot be called.
func (s *supervisor) callPlugin(
	ctx context.Context, call func(context.Context, grpc.ClientConnInterface, pluginclient.Description) error,
) error {
	began := time.Now()
	err := s.callWithDeadline(ctx, call)
	s.calls.recordCall(ctx, began, err)
	return err
}

func (s *supervisor) callWithDeadline(
	ctx context.Context, call func(context.Context, grpc.ClientConnInterface, pluginclient.Description) error,
) error {
	began := time.Now()
	limited, cancel := context.WithDeadline(ctx, began.Add(s.spec.limits.call))
	defer cancel()
	i, err := s.acquireInstance(limited)
	if err != nil {
		return err
	}
	timer := time.AfterFunc(s.cfg.HealthTimeout, i.requestCheck)
	defer timer.Stop()
	err = call(limited, i.conn, i.description)
	switch {
	case err == nil:
		i.recordOverrun(false)
	case s.overranDeadline(ctx, began, err):
		i.recordOverrun(true)
	}
	return err
}

// overranDeadline reports whether err is the error of a call that took longer than the host's
// limit. A call that ends at an earlier deadline of the caller does not count. overranDeadline
// compares the deadlines instead of checking the caller's context, because the plugin may close the
// call at the deadline before the timer of the context fires.
func (s *supervisor) overranDeadline(caller context.Context, began time.Time, err error) bool {
	due := began.Add(s.spec.limits.call)
	if earlier, bounded := caller.Deadline(); bounded && earlier.Before(due) {
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(due)
}

// downError is the error of a call to a plugin that cannot be called now.
type downError struct {
	name    string
	cause   error
	retryIn time.Duration // 0 if unknown
}

func (d *downError) Error() string { return fmt.Sprintf("plugin %s is down: %v", d.name, d.cause) }
func (d *downError) Unwrap() error { return d.cause }

// acquireInstance returns the running instance. It waits for the first start, but not for a
// restart: if the plugin has failed, it returns an error at once.
func (s *supervisor) acquireInstance(ctx context.Context) (*instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, &downError{name: s.spec.name, cause: err}
	}
	if err := s.awaitFirstStart(ctx); err != nil {
		return nil, &downError{name: s.spec.name, cause: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current, nil
	}
	d := &downError{name: s.spec.name, cause: s.lastErr}
	if s.state == Closed {
		d.cause = errClosed
	} else if left := time.Until(s.retryAt); left > 0 {
		d.retryIn = left
	}
	return nil, d
}

// awaitFirstStart starts the plugin if it was not started before, and waits until the first start
// has succeeded or failed.
func (s *supervisor) awaitFirstStart(ctx context.Context) error {
	s.startOnce()
	select {
	case <-s.settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lastDescription returns the description of the plugin from its last run, or nil if it has never
// run.
func (s *supervisor) lastDescription() *pluginclient.Description {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.description
}

// settingsError waits for the first start, and returns the error of it if a setting of the plugin is
// wrong. Any other failure may pass.
func (s *supervisor) settingsError(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.spec.limits.start)
	defer cancel()
	_ = s.awaitFirstStart(ctx) // a plugin that hangs fails in the background
	s.mu.Lock()
	defer s.mu.Unlock()
	var wrong pluginclient.SettingsError
	if errors.As(s.lastErr, &wrong) {
		return wrong
	}
	return nil
}

func (s *supervisor) currentStatus() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{Name: s.spec.name, Kind: string(s.spec.kind), State: s.state, Restarts: s.restarts}
	if s.description != nil {
		status.Version = s.description.Version
	}
	if s.current != nil {
		status.PID = s.current.process.processID()
	}
	if s.lastErr != nil {
		status.LastError = shortenText(s.lastErr.Error())
	}
	return status
}

func (s *supervisor) setState(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *supervisor) setRunning(i *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.current, s.description = Running, i, &i.description
	s.markSettled()
	s.log.WithFields(logrus.Fields{"version": i.description.Version, "pid": i.process.processID()}).Info("plugin runs")
}

// dropInstance removes the failed instance, so that no caller uses it while its process is killed.
func (s *supervisor) dropInstance(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.current, s.lastErr = Failed, nil, err
}

// recordFailure records a failure and the delay before the next start.
func (s *supervisor) recordFailure(err error, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.current, s.lastErr, s.retryAt = Failed, nil, err, time.Now().Add(pause)
	s.markSettled()
	s.log.WithField("retry_in", pause.String()).WithField("error", shortenText(err.Error())).Warn("plugin failed")
}

func (s *supervisor) countRestart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarts++
}

func (s *supervisor) markClosed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.current = Closed, nil
	s.markSettled()
}

func (s *supervisor) markSettled() {
	select {
	case <-s.settled:
	default:
		close(s.settled)
	}
}
