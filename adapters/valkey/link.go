package valkey

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/internal/wait"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// retryGap is how long the link waits between attempts to reach a store that is away. It is the greatest time that
// passes between the store's return and its use.
const retryGap = 250 * time.Millisecond

// watchGap is how long a watched link waits between its own questions to a store that answers.
const watchGap = time.Second

// moveGap is how long a call waits for a slot on its way before it asks again.
const moveGap = 5 * time.Millisecond

// maxCalls bounds the calls that are with a node at a time; further ones wait their turn within their deadline.
const maxCalls = 1024

// link is a client that need not be connected yet. One goroutine of its own makes the client, makes it anew when the
// server behind it turned into a replica, closes breakers once what they guard answers again, and keeps the map of a
// cluster's nodes.
type link struct {
	connect func() (valkey.Client, error)
	timeout time.Duration // of a call
	dial    time.Duration // of connecting, and of asking whether the store is back, which may have to connect
	watched bool          // ask the store also while no caller does, so that its absence is known
	log     *logrus.Entry

	client  atomic.Pointer[valkey.Client] // nil until the first connection
	whole   *node                         // the store, where it is no cluster; keys that no node is known for, where it is
	cluster atomic.Pointer[cluster]       // nil where it is none
	attend  chan struct{}                 // asks for attention: a breaker opened, or the client must be made anew
	stale   atomic.Bool                   // the client must be made anew
	missed  bool                          // the last question of a watched link was not answered; of run alone
}

// openLink starts a link whose connect, timeout, dial and log are set, and returns a function that
// ends it. It waits briefly for a first connection; the link works without one (contract L-40).
func openLink(ctx context.Context, l *link) func() {
	l.attend, l.whole = make(chan struct{}, 1), newNode()
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
	err := l.renew(life)
	close(tried)
	if err != nil {
		l.log.WithError(err).Warn("the store cannot be reached; trying again until it can")
	}
	for life.Err() == nil {
		select {
		case <-life.Done():
		case <-l.attend:
			if l.stale.Swap(false) {
				l.replace(life)
			}
		case <-l.tick():
			l.look(life)
		}
	}
}

// tick fires when it is time for a look: soon while something is away, now and then at a watched store and at a cluster,
// else never.
func (l *link) tick() <-chan time.Time {
	some, _ := l.away()
	switch {
	case l.client.Load() == nil || some || l.missed:
		return time.After(retryGap)
	case l.watched:
		return time.After(watchGap)
	case l.cluster.Load() != nil:
		return time.After(topologyRefresh)
	default:
		return nil
	}
}

// look tries what is away, and, where it is watched, what is thought to be there.
func (l *link) look(life context.Context) {
	if l.client.Load() != nil {
		l.learn(life)
		l.probe(life)
		l.watch(life)
		return
	}
	if err := l.renew(life); err == nil {
		l.log.Info("the store is connected")
	}
}

// replace makes the client anew, and waits a moment, so that a server that stays a replica is not asked all the time.
func (l *link) replace(life context.Context) {
	if err := l.renew(life); err != nil {
		l.log.WithError(err).Warn("the store is read-only and there is no other server")
	}
	wait.For(life, retryGap)
}

// renew makes a client and puts it in the place of the one before.
func (l *link) renew(life context.Context) error {
	client, err := l.connect()
	if err != nil {
		return err
	}
	if before := l.client.Swap(&client); before != nil {
		(*before).Close()
	}
	l.learn(life)
	return nil
}

var (
	errNotConnected = errors.New("not connected yet")
	errOpen         = errors.New("it did not answer the calls before; waiting for it to come back")
)

// place is where a call goes: the node, and one of the keys.
type place struct {
	node *node
	key  string
	once bool // the call must not be made again when it may have been carried out
	part bool // nor when a part of it may have been
}

// placeOf is where hits of one node go. What gives hits back must not be carried
// out twice, or more would get through than the limit.
func placeOf(n *node, hits []counter.Hit) place {
	p := place{node: n, key: hits[0].Key}
	for i := range hits {
		p.once = p.once || hits[i].Addend < 0
	}
	p.part = p.once && len(hits) > 1
	return p
}

// do calls the store by fn, within the deadline, and again when the connection was lost under the call or a cluster is
// being rearranged, unless the call must not be carried out twice. All keys of the call lie on one node. Its errors are fault.Unavailable.
func (l *link) do(ctx context.Context, at place, fn func(context.Context, valkey.Client) error) error {
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	if l.client.Load() == nil {
		return unavailable(errNotConnected)
	}
	if at.node.breaker.refuses() {
		return unavailable(errOpen)
	}
	bounded, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	err := l.call(bounded, at, fn)
	if err == nil {
		at.node.breaker.answered()
		return nil
	}
	l.judge(ctx, at, err)
	return unavailable(err)
}

// call waits for its turn and calls the store. A server that restarts breaks all connections at once, and each call that
// fails finds one of them.
func (l *link) call(ctx context.Context, at place, fn func(context.Context, valkey.Client) error) error {
	if err := at.node.take(ctx); err != nil {
		return err
	}
	defer at.node.giveBack()
	if at.node.breaker.refuses() {
		return errOpen
	}
	err := fn(ctx, *l.client.Load())
	for found := 0; err != nil && ctx.Err() == nil; {
		switch {
		case lost(err) && !at.once && found < maxConnections:
			found++
		case moving(err) && !at.part: // a single command that is told so was not carried out
			wait.For(ctx, moveGap)
		default:
			return err
		}
		err = fn(ctx, *l.client.Load())
	}
	return err
}

// judge draws the conclusions of a failed call. A caller that gave up tells nothing about the store.
func (l *link) judge(ctx context.Context, at place, err error) {
	if reply, ok := replied(err); ok {
		at.node.breaker.answered()
		if readOnly(reply) {
			l.stale.Store(true)
			l.notify()
		}
		return
	}
	if ctx.Err() != nil {
		return
	}
	key := strings.Clone(at.key) // for the probe, which may outlive the caller's memory
	at.node.wanted.Store(&key)
	if at.node.breaker.silent() {
		l.log.WithError(err).Warn("the store does not answer; calls do not wait for it until it does")
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

// moving tells of a slot on its way from one node to another, which the nodes do not tell alike for a moment.
func moving(err error) bool {
	reply, ok := replied(err)
	if !ok {
		return false
	}
	_, moved := reply.IsMoved()
	_, ask := reply.IsAsk()
	return moved || ask || reply.IsTryAgain()
}

func unavailable(err error) error {
	return fault.Wrap(fault.Unavailable, "", "the counter store does not answer", err)
}
