package access

import (
	"sync"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// sessionReads records which sessions are being read. Its zero value is ready to use. It is safe
// for concurrent use.
type sessionReads struct {
	mu      sync.Mutex
	running map[auth.SessionID]chan struct{}
}

// beginRead records that a session is being read until end is called. If another goroutine is
// already reading the session, end is nil and other is closed when that read ends.
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
