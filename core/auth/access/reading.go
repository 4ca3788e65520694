package access

import (
	"sync"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// sessionReads knows which sessions are being read. Its zero value knows of none; it is safe for concurrent use.
type sessionReads struct {
	mu      sync.Mutex
	running map[auth.SessionID]chan struct{}
}

// beginRead takes note that a session is read from now until end is called. Where somebody else does that already it returns what is
// closed when they end, and nothing to call.
func (r *sessionReads) beginRead(id auth.SessionID) (end func(), other <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ended, ok := r.running[id]; ok {
		return nil, ended
	}
	if r.running == nil {
		r.running = map[auth.SessionID]chan struct{}{}
	}
	ended := make(chan struct{})
	r.running[id] = ended
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, id)
		close(ended)
	}, nil
}
