// Package lifecycle runs the listeners and the background work of a process, and stops them in
// order. It knows neither what the listeners serve nor what the background work does.
package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
)

// Config says how a process reports its start and how long its shutdown takes.
type Config struct {
	Ready   logrus.Fields // fields of the log line about the start, next to the addresses of the listeners
	Drain   time.Duration // how long listeners still answer after health turns unhealthy
	Timeout time.Duration // how long calls in progress may take to finish after that
}

// Listener is a listener that has its address already, or a pair of listeners that start and stop
// together.
type Listener interface {
	// Addresses returns the addresses by name, for the log.
	Addresses() logrus.Fields
	// Serve returns when the listener is shut down or fails.
	Serve() error
	// Shutdown closes the listener and waits for the calls in progress.
	Shutdown(ctx context.Context) error
}

// Process holds the parts of a process. Its zero value is not valid. The parts are added before
// Run.
type Process struct {
	config     Config
	log        *logrus.Entry
	listeners  []Listener
	background []func(context.Context) error
	drains     []func()
	cleanups   []func()
}

// New returns a process without parts.
func New(c Config, log *logrus.Entry) *Process { return &Process{config: c, log: log} }

// AddListener adds a listener that was opened, or returns the error of that. cleanup gives its
// address up, and is called by Close.
func (p *Process) AddListener(l Listener, cleanup func(), err error) error {
	if err == nil {
		p.listeners, p.cleanups = append(p.listeners, l), append(p.cleanups, cleanup)
	}
	return err
}

// AddWork adds work that runs until its context ends. An error of it ends the process.
func (p *Process) AddWork(work func(context.Context) error) {
	p.background = append(p.background, work)
}

// AddBackground adds work that never fails.
func (p *Process) AddBackground(all ...func(context.Context)) {
	for _, run := range all {
		p.AddWork(func(ctx context.Context) error { run(ctx); return nil })
	}
}

// AddDrain adds a function that turns the health of a listener unhealthy.
func (p *Process) AddDrain(drain func()) { p.drains = append(p.drains, drain) }

// Announce adds a field to the log line about the start.
func (p *Process) Announce(name, value string) { p.config.Ready[name] = value }

// Close gives up the addresses of the listeners, the last one first.
func (p *Process) Close() {
	for _, cleanup := range slices.Backward(p.cleanups) {
		cleanup()
	}
}

// Run serves until the context ends or a part fails. When the context ends, health turns unhealthy,
// everything is still answered for Config.Drain, then the listeners close and the calls in progress
// finish, within Config.Timeout (contract O-18).
func (p *Process) Run(ctx context.Context) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	failed := make(chan error, len(p.listeners)+len(p.background))
	finished := p.start(working, failed)
	p.logReady()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		p.drain(failed)
	}
	err = errors.Join(err, p.shutdown())
	stop()
	for range p.background {
		<-finished
	}
	return err
}

// start starts all parts. Each piece of background work sends to the returned channel when it ends.
func (p *Process) start(ctx context.Context, failed chan<- error) (finished <-chan struct{}) {
	ended := make(chan struct{}, len(p.background))
	for _, work := range p.background {
		go func() {
			if err := work(ctx); err != nil {
				failed <- err
			}
			ended <- struct{}{}
		}()
	}
	for _, l := range p.listeners {
		go func() {
			if err := l.Serve(); err != nil {
				failed <- err
			}
		}()
	}
	return ended
}

func (p *Process) logReady() {
	line := p.log.WithFields(p.config.Ready)
	for _, l := range p.listeners {
		line = line.WithFields(l.Addresses())
	}
	line.Info("tollgate is ready")
}

// drain turns health unhealthy and waits for Config.Drain, or until a part fails.
func (p *Process) drain(failed <-chan error) {
	p.log.WithField("drain", p.config.Drain.String()).Info("shutting down")
	for _, drain := range p.drains {
		drain()
	}
	select {
	case err := <-failed:
		p.log.WithError(err).Error("a listener failed while draining")
	case <-time.After(p.config.Drain):
	}
}

// shutdown closes all listeners at once and waits for the calls in progress.
func (p *Process) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.config.Timeout)
	defer cancel()
	ended := make(chan error, len(p.listeners))
	for _, l := range p.listeners {
		go func() { ended <- l.Shutdown(ctx) }()
	}
	var errs []error
	for range p.listeners {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}
