package valkey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// retryGap is how long the link waits between attempts to reach a store that is away. It is the greatest time that
// passes between the store's return and its use.
const retryGap = 250 * time.Millisecond

// maxCalls bounds the calls that are with the store at a time; further ones wait their turn within their deadline.
const maxCalls = 1024

// link is a client that need not be connected yet. One goroutine of its own makes the client, makes it anew when the
// server behind it turned into a replica, and closes the breaker once the store answers again.
type link struct {
	connect func() (valkey.Client, error)
	timeout time.Duration // of a call
	dial    time.Duration // of connecting, and of asking whether the store is back, which may have to connect
	log     *logrus.Entry

	client  atomic.Pointer[valkey.Client] // nil until the first connection
	breaker breaker
	turns   chan struct{} // one for each call that is with the store
	attend  chan struct{} // asks for attention: the breaker opened, or the client must be made anew
	stale   atomic.Bool   // the client must be made anew
}

// openLink starts a link of which connect, timeout, dial and log are set, and returns what ends it. It waits for a first
// connection a little, and the link is as good without one (decisions 3.3).
func openLink(ctx context.Context, l *link) func() {
	l.attend, l.turns = make(chan struct{}, 1), make(chan struct{}, maxCalls)
	life, end := context.WithCancel(context.Background())
	tried := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() { l.run(life, tried) })
	patience := time.NewTimer(2 * l.dial)
	defer patience.Stop()
	select {
	case <-tried:
	case <-patience.C:
	case <-ctx.Done():
	}
	return func() {
		end()
		done.Wait()
		if client := l.client.Load(); client != nil {
			(*client).Close()
		}
	}
}

// run keeps the link until life ends. It closes tried after the first attempt to connect.
func (l *link) run(life context.Context, tried chan<- struct{}) {
	err := l.renew()
	close(tried)
	if err != nil {
		l.log.WithError(err).Warn("the store is away; trying until it is there")
	}
	for {
		if l.client.Load() == nil || l.breaker.refuses() {
			if !l.await(life) {
				return
			}
			continue
		}
		select {
		case <-life.Done():
			return
		case <-l.attend:
			if l.stale.Swap(false) && !l.replace(life) {
				return
			}
		}
	}
}

// await pauses, then tries the store once. It is false when life ended.
func (l *link) await(life context.Context) bool {
	if !pause(life, retryGap) {
		return false
	}
	if l.client.Load() == nil {
		if err := l.renew(); err != nil {
			return true
		}
		l.log.Info("the store is there")
		return true
	}
	ctx, cancel := context.WithTimeout(life, l.dial)
	defer cancel()
	client := *l.client.Load()
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); err == nil && l.breaker.reset() {
		l.log.Info("the store answers again")
	}
	return true
}

// replace makes the client anew, and waits a moment, so that a server that stays a replica is not asked all the time. It
// is false when life ended.
func (l *link) replace(life context.Context) bool {
	if err := l.renew(); err != nil {
		l.log.WithError(err).Warn("the store takes no writes and no other is there")
	}
	return pause(life, retryGap)
}

// renew makes a client and puts it in the place of the one before.
func (l *link) renew() error {
	client, err := l.connect()
	if err != nil {
		return err
	}
	if before := l.client.Swap(&client); before != nil {
		(*before).Close()
	}
	return nil
}

func pause(life context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-life.Done():
		return false
	case <-timer.C:
		return true
	}
}

var (
	errNotConnected = errors.New("not connected yet")
	errOpen         = errors.New("it did not answer the calls before; waiting for it to come back")
)

// do calls the store by fn, within the deadline, and again when the connection was lost under the call. Its errors
// are fault.Unavailable.
func (l *link) do(ctx context.Context, fn func(context.Context, valkey.Client) error) error {
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	if l.client.Load() == nil {
		return unavailable(errNotConnected)
	}
	if l.breaker.refuses() {
		return unavailable(errOpen)
	}
	bounded, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	err := l.call(bounded, fn)
	if err == nil {
		l.breaker.answered()
		return nil
	}
	l.judge(ctx, err)
	return unavailable(err)
}

// call waits for its turn and calls the store. A server that restarts breaks all connections at once, and each call that
// fails finds one of them.
func (l *link) call(ctx context.Context, fn func(context.Context, valkey.Client) error) error {
	select {
	case l.turns <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for calls before: %w", ctx.Err())
	}
	defer func() { <-l.turns }()
	if l.breaker.refuses() {
		return errOpen
	}
	err := fn(ctx, *l.client.Load())
	for n := 0; n < maxConnections && err != nil && lost(err) && ctx.Err() == nil; n++ {
		err = fn(ctx, *l.client.Load())
	}
	return err
}

// judge draws the conclusions of a failed call. A caller that gave up tells nothing about the store.
func (l *link) judge(ctx context.Context, err error) {
	if reply, ok := replied(err); ok {
		l.breaker.answered()
		if readOnly(reply) {
			l.stale.Store(true)
			l.notify()
		}
		return
	}
	if ctx.Err() == nil && l.breaker.silent() {
		l.log.WithError(err).Warn("the store does not answer; not waiting for it until it does")
		l.notify()
	}
}

func (l *link) notify() {
	select {
	case l.attend <- struct{}{}:
	default: // it has been asked already
	}
}

// replied returns the error that the store itself answered.
func replied(err error) (*valkey.ValkeyError, bool) {
	var reply *valkey.ValkeyError
	ok := errors.As(err, &reply)
	return reply, ok
}

// lost tells of a connection that broke, as it does when a server restarts or fails over. A call that timed out is not
// among them: it has no time left.
func lost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, valkey.ErrClosing)
}

func unavailable(err error) error {
	return fault.Wrap(fault.Unavailable, "", "the counter store does not answer", err)
}
