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

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
)

// retryInterval is the greatest time between attempts to reach a store that does not answer. So a
// store is used again at most this long after it is back. The first attempts come sooner.
const retryInterval = 250 * time.Millisecond

// idleProbeInterval is the time between probes of a store that answers, if probeWhenIdle is on.
const idleProbeInterval = time.Second

// slotMoveDelay is how long a call waits before it is repeated while its slot moves to another
// node.
const slotMoveDelay = 5 * time.Millisecond

// maxCalls is the maximum number of concurrent calls to a node. Further calls wait until their
// deadline.
const maxCalls = 1024

// managedClient is a valkey-go client that may not be connected yet. Its goroutine connects it,
// replaces it if the server has become a replica, closes the breakers of nodes that answer again,
// and updates the list of cluster nodes.
type managedClient struct {
	newClient     func() (valkey.Client, error)
	deadlines     *deadline.Source // of calls
	dialTimeout   time.Duration    // of connecting, and of a probe, which may have to connect
	probeWhenIdle bool             // also probe the store while there are no calls, so that a failure is known
	log           *logrus.Entry

	current atomic.Pointer[valkey.Client] // nil until the first connection
	// all keys outside clusters; in a cluster, the keys whose node is unknown
	defaultNode     *node
	cluster         atomic.Pointer[clusterNodes] // nil if the store is not a cluster
	wake            chan struct{}                // wakes the goroutine: a breaker opened, or outdated was set
	outdated        atomic.Bool                  // the client must be replaced
	idleProbeFailed bool                         // the last probe of an idle store failed; only maintain uses it
	// before the next probe of nodes that do not answer; only maintain uses it
	probeDelay pause.Backoff
}

// openManagedClient starts a managedClient whose newClient, timeouts and log are set, and returns a
// function that closes it. It waits briefly for the first connection, but also works without one
// (contract L-40).
func openManagedClient(ctx context.Context, m *managedClient) func() {
	m.wake, m.defaultNode = make(chan struct{}, 1), newNode()
	background, cancel := context.WithCancel(context.Background())
	attempted := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() { m.maintain(background, attempted) })
	timer := time.NewTimer(2 * m.dialTimeout)
	defer timer.Stop()
	select {
	case <-attempted:
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {
		cancel()
		done.Wait()
		if client := m.current.Load(); client != nil {
			(*client).Close()
		}
	}
}

// maintain keeps the client connected until ctx ends. It closes attempted after the first attempt
// to connect.
func (m *managedClient) maintain(ctx context.Context, attempted chan<- struct{}) {
	err := m.connectAnew(ctx)
	close(attempted)
	if err != nil {
		m.log.WithError(err).Warn("cannot connect to the counter store; trying again until it succeeds")
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-m.wake:
			if m.outdated.Swap(false) {
				m.replaceClient(ctx)
			}
		case <-m.nextCheck():
			m.checkNodes(ctx)
		}
	}
}

// nextCheck returns a channel that fires when it is time for checkNodes: at once when a node has
// stopped answering and then ever later, periodically for a cluster or if probeWhenIdle is on,
// otherwise never.
func (m *managedClient) nextCheck() <-chan time.Time {
	some, _ := m.openBreakers()
	switch {
	case m.current.Load() == nil || m.idleProbeFailed:
		return time.After(retryInterval)
	case some:
		return time.After(m.probeDelay.Next(retryInterval))
	}
	m.probeDelay = pause.Backoff{}
	switch {
	case m.probeWhenIdle:
		return time.After(idleProbeInterval)
	case m.cluster.Load() != nil:
		return time.After(topologyRefresh)
	default:
		return nil
	}
}

// checkNodes connects if the client is not connected yet. Otherwise it probes the nodes that do not
// answer and, if probeWhenIdle is on, those that do.
func (m *managedClient) checkNodes(ctx context.Context) {
	if m.current.Load() != nil {
		m.loadClusterNodes(ctx)
		m.probeFailedNodes(ctx)
		m.probeIdleStore(ctx)
		return
	}
	if err := m.connectAnew(ctx); err == nil {
		m.log.Info("the counter store is connected")
	}
}

// replaceClient connects again and then waits, so that it does not loop while the only server is a
// replica.
func (m *managedClient) replaceClient(ctx context.Context) {
	if err := m.connectAnew(ctx); err != nil {
		m.log.WithError(err).Warn("the counter store is read-only, and no other server was found")
	}
	pause.For(ctx, retryInterval)
}

// connectAnew connects a new client and closes the one that it replaces.
func (m *managedClient) connectAnew(ctx context.Context) error {
	client, err := m.newClient()
	if err != nil {
		return err
	}
	if before := m.current.Swap(&client); before != nil {
		(*before).Close()
	}
	m.loadClusterNodes(ctx)
	return nil
}

var (
	errNotConnected = errors.New("the client is not connected yet")
	errBreakerOpen  = errors.New("the calls before were not answered; calls fail at once until the store answers again")
)

// route describes where a call goes, and whether it may be repeated.
type route struct {
	node           *node
	key            string
	noRetry        bool // do not repeat the call if it may have been executed
	noPartialRetry bool // nor if a part of it may have been
}

// newRoute returns the route of hits on one node. A call that subtracts hits must not be executed
// twice, because then more requests than the limit would get through.
func newRoute(n *node, hits []counter.Hit) route {
	p := route{node: n, key: hits[0].Key}
	for i := range hits {
		p.noRetry = p.noRetry || hits[i].Addend < 0
	}
	p.noPartialRetry = p.noRetry && len(hits) > 1
	return p
}

// call runs fn within the timeout. It repeats fn if the connection breaks or a cluster slot is
// moving, unless the route forbids it. All keys that fn uses must be on the node of the route.
// Errors have the kind fault.Unavailable.
func (m *managedClient) call(ctx context.Context, at route, fn func(context.Context, valkey.Client) error) error {
	if err := ctx.Err(); err != nil {
		return storeUnavailable(err)
	}
	if m.current.Load() == nil {
		return storeUnavailable(errNotConnected)
	}
	if at.node.breaker.isOpen() {
		return storeUnavailable(errBreakerOpen)
	}
	ctx = m.deadlines.Call(ctx, time.Now())
	err := m.callWithRetries(ctx, at, fn)
	if err == nil {
		at.node.breaker.recordAnswer()
		return nil
	}
	m.recordFailure(ctx, at, err)
	return storeUnavailable(err)
}

// callWithRetries waits until the node has room for a call, and runs fn. A server that restarts
// breaks all connections at once, and each attempt may meet another of them, so there are up to
// maxConnections attempts after lost connections.
func (m *managedClient) callWithRetries(
	ctx context.Context, at route, fn func(context.Context, valkey.Client) error,
) error {
	if err := at.node.acquire(ctx); err != nil {
		return err
	}
	defer at.node.release()
	if at.node.breaker.isOpen() {
		return errBreakerOpen
	}
	err := fn(ctx, *m.current.Load())
	for lostConnections := 0; err != nil && ctx.Err() == nil; {
		switch {
		case isConnectionLost(err) && !at.noRetry && lostConnections < maxConnections:
			lostConnections++
		case isEndOfOtherCall(err) && !at.noPartialRetry && lostConnections < maxConnections:
			lostConnections++
		case isSlotMoving(err) && !at.noPartialRetry: // a command with this error was not executed
			pause.For(ctx, slotMoveDelay)
		default:
			return err
		}
		err = fn(ctx, *m.current.Load())
	}
	return err
}

// recordFailure updates the state of the node after a failed call. An error reply is an answer. A
// call that ended early, because its caller gave up or others of the same decision came before,
// says nothing about the node.
func (m *managedClient) recordFailure(ctx context.Context, at route, err error) {
	if reply, ok := serverError(err); ok {
		at.node.breaker.recordAnswer()
		if isReadOnly(reply) {
			m.outdated.Store(true)
			m.wakeUp()
		}
		return
	}
	if ctx.Err() != nil && !deadline.HasWhole(ctx) {
		return
	}
	key := strings.Clone(at.key) // the caller may reuse the memory of at.key
	at.node.failedKey.Store(&key)
	if at.node.breaker.recordNoAnswer() {
		m.log.WithError(err).Warn("the counter store does not answer; calls fail at once until it answers again")
		m.wakeUp()
	}
}

// wakeUp makes maintain check the nodes now.
func (m *managedClient) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default: // a check is already due
	}
}

// serverError returns the error reply of the server, if err is one.
func serverError(err error) (*valkey.ValkeyError, bool) {
	var reply *valkey.ValkeyError
	ok := errors.As(err, &reply)
	return reply, ok
}

// isConnectionLost reports whether the connection broke, for example because a server restarted. A
// timeout does not count, because the call then has no time left.
func isConnectionLost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, valkey.ErrClosing)
}

// isEndOfOtherCall reports whether a call that has not ended itself got the error of a context.
// Calls share the making of a connection: when the caller that began it gives up, the client
// returns that caller's error to all who waited for it. Their commands were not sent.
func isEndOfOtherCall(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isSlotMoving reports whether a cluster slot is moving from one node to another. For a moment the
// nodes then disagree about who serves it.
func isSlotMoving(err error) bool {
	reply, ok := serverError(err)
	if !ok {
		return false
	}
	_, moved := reply.IsMoved()
	_, ask := reply.IsAsk()
	return moved || ask || reply.IsTryAgain()
}

func storeUnavailable(err error) error {
	return fault.Wrap(fault.Unavailable, "the counter store does not answer", err)
}

var _ sessioncache.Cache = SessionDropper{}

// SessionDropper is the session cache of an operator command. It keeps no copies, and connects to
// the server only to drop the copies of ended sessions. Without a URL it does nothing: the copies
// of other processes expire within sessioncache.MaxAge.
type SessionDropper struct {
	config Config
	clock  clock.Clock
	log    *logrus.Entry
}

// NewSessionDropper returns a SessionDropper for the server of c.
func NewSessionDropper(c Config, k clock.Clock, log *logrus.Entry) SessionDropper {
	return SessionDropper{c, k, log}
}

// Get returns nothing.
func (SessionDropper) Get(context.Context, auth.SessionID) (auth.Session, bool) {
	return auth.Session{}, false
}

// Put does nothing.
func (SessionDropper) Put(context.Context, auth.Session, time.Time) {}

// Drop drops the copies of sessions. An error is logged.
func (d SessionDropper) Drop(ctx context.Context, ids ...auth.SessionID) {
	if d.config.URL == "" || len(ids) == 0 {
		return
	}
	cache, end, err := OpenSessions(ctx, d.config, auth.Key{}, d.clock, d.log) // it reads and writes no copies
	if err != nil {
		d.log.WithError(err).
			Warn("cached copies of the ended sessions could not be removed; they expire within a second")
		return
	}
	defer end()
	cache.Drop(ctx, ids...)
}
