package access

import (
	"sync"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// reading knows which sessions are being read. Its zero value knows of none; it is safe for concurrent use.
type reading struct {
	mu    sync.Mutex
	ended map[auth.SessionID]chan struct{}
}

// begin takes note that a session is read from now until end is called. Where somebody else does that already it returns what is
// closed when they end, and nothing to call.
func (r *reading) begin(id auth.SessionID) (end func(), other <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ended, ok := r.ended[id]; ok {
		return nil, ended
	}
	if r.ended == nil {
		r.ended = map[auth.SessionID]chan struct{}{}
	}
	ended := make(chan struct{})
	r.ended[id] = ended
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.ended, id)
		close(ended)
	}, nil
}
