package signin

import (
	"context"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// maxQueuedLogins is the number of logins that may be in the queue of one subject at once.
const maxQueuedLogins = 256

// loginQueues runs the logins of one subject one after the other in this process. Otherwise many
// guesses at one account could fill the queue of the password hasher and take all database
// connections. It also lets guesses that follow a lock be refused without a hash. The number of
// guesses is limited by package locking, not here.
type loginQueues struct {
	mu     sync.Mutex
	queues map[auth.LockoutKey]*loginQueue
}

// loginQueue holds the logins of one subject.
type loginQueue struct {
	turn   chan struct{} // holds one element while no login is running
	logins int           // running and waiting
}

func newLoginQueues() *loginQueues { return &loginQueues{queues: map[auth.LockoutKey]*loginQueue{}} }

// waitTurn returns when it is the turn of this login. The caller must call leave when the login is
// done. The error is fault.Unavailable if too many logins wait, and the error of the context if the
// context ends first.
func (q *loginQueues) waitTurn(ctx context.Context, key auth.LockoutKey) (leave func(), err error) {
	queue, err := q.addLogin(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-queue.turn:
		return func() { queue.turn <- struct{}{}; q.removeLogin(key, queue) }, nil
	case <-ctx.Done():
		q.removeLogin(key, queue)
		return nil, ctx.Err()
	}
}

func (q *loginQueues) addLogin(key auth.LockoutKey) (*loginQueue, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.queues[key]
	if queue == nil {
		queue = &loginQueue{turn: make(chan struct{}, 1)}
		queue.turn <- struct{}{}
		q.queues[key] = queue
	}
	if queue.logins >= maxQueuedLogins {
		return nil, fault.New(fault.Unavailable, "too many sign-ins to this account at once, try again").
			After(time.Second)
	}
	queue.logins++
	return queue, nil
}

func (q *loginQueues) removeLogin(key auth.LockoutKey, queue *loginQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue.logins--
	if queue.logins == 0 {
		delete(q.queues, key)
	}
}
