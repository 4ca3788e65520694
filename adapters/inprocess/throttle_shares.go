package inprocess

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	shareShardCount = 16
	// sharesPerShard bounds the memory of a ShareThrottle: 65,536 keys of at most counter.MaxKey
	// bytes each.
	sharesPerShard = 4096
)

// ShareThrottle counts the tries of one scope in shares: it reserves several tries of a key with
// one call to the counter store, and admits them without further calls. ratelimit.ShareSize returns
// how many. A reserved try counts as used in the store, so all instances together never admit more
// than the limit. An instance may refuse a try early, while others have reserved tries that they
// have not admitted. Other scopes are counted by the exact throttle. It is safe for concurrent use.
//
// Once the limit of a key is used up, tries of this key are refused until the window ends, without
// the store. A verdict's Remaining is what this instance knows: it includes the tries of other
// instances up to its own last call to the store.
//
// Shares of the last window are dropped when the next one begins. If too many keys have shares in
// one window, further keys are counted by the exact throttle.
type ShareThrottle struct {
	exact  *Throttle
	scope  throttle.Scope
	limit  Limit
	seed   maphash.Seed
	shards [shareShardCount]shareShard
}

// shareShard is a part of the keys, protected by one lock.
type shareShard struct {
	mu     sync.Mutex
	window ratelimit.Window
	keys   map[string]*share
}

// share is what this instance has reserved of the limit of one key in one window.
type share struct {
	left     uint64 // reserved tries that are not admitted yet
	used     uint64 // admitted tries
	refused  uint64 // tries refused without a share, which can be given back
	counted  uint64 // the store's count after the last reservation, at most the limit
	full     bool   // the store has no more tries in this window
	unsure   bool   // the last reservation failed
	waiting  uint64 // tries that wait for the reservation
	reserved *reservation
}

// reservation is a call to the store that is in progress. The fields other than done are set when
// done is closed.
type reservation struct {
	done     chan struct{}
	err      error
	canceled bool // the context of its caller ended, so the waiting tries call the store again
}

// NewShareThrottle returns a throttle that counts one scope in shares, and all others with exact.
func NewShareThrottle(exact *Throttle, scope throttle.Scope) *ShareThrottle {
	return &ShareThrottle{exact: exact, scope: scope, limit: exact.limits[scope], seed: maphash.MakeSeed()}
}

// Try implements throttle.Throttle. If the store fails, it fails the tries that wait for this call,
// and the next try calls the store again. A try whose context ends while it waits is not counted.
func (s *ShareThrottle) Try(ctx context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	if scope != s.scope || s.limit.Requests == 0 || len(key) > counter.MaxKey {
		return s.exact.Try(ctx, scope, key)
	}
	window := ratelimit.WindowAt(s.exact.clock.Now(), s.limit.Window)
	v := throttle.Verdict{Limit: s.limit.Requests, Remaining: s.limit.Requests, ResetAt: window.End()}
	shard := s.shardOf(key)
	shard.mu.Lock()
	sh := shard.findShare(key, window)
	if sh == nil {
		shard.mu.Unlock()
		return s.exact.Try(ctx, scope, key)
	}
	defer shard.mu.Unlock()
	for !sh.decide(&v) {
		var err error
		if sh.reserved == nil {
			err = s.reserve(ctx, shard, sh, tries{key: key, window: window})
		} else {
			err = sh.wait(ctx, shard)
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

// GiveBack implements throttle.Throttle. It returns the try to this instance's share, if the
// instance still has one of that window.
func (s *ShareThrottle) GiveBack(ctx context.Context, scope throttle.Scope, key string, v throttle.Verdict) error {
	if scope == s.scope && s.shardOf(key).giveBack(key, v) {
		return nil
	}
	return s.exact.GiveBack(ctx, scope, key, v)
}

func (s *ShareThrottle) shardOf(key string) *shareShard {
	return &s.shards[maphash.String(s.seed, key)%shareShardCount]
}

// tries are those of one key in one window.
type tries struct {
	key    string
	window ratelimit.Window
}

// reserve reserves a share with one call to the store, and enough for the tries that already wait.
// The caller must hold the lock of the shard, which is released during the call.
func (s *ShareThrottle) reserve(ctx context.Context, shard *shareShard, sh *share, of tries) error {
	size := max(sh.nextSize(s.limit.Requests), sh.waiting+1)
	r := &reservation{done: make(chan struct{})}
	sh.reserved = r
	shard.mu.Unlock()
	after, err := addHit(ctx, s.exact.store, s.exact.newHit(s.scope, of.key, of.window, int64(size)))
	shard.mu.Lock()
	sh.reserved, sh.unsure = nil, err != nil
	if err == nil {
		sh.addReserved(size, after, s.limit.Requests)
	}
	r.err, r.canceled = err, ctx.Err() != nil
	close(r.done)
	return err
}

// wait waits for the reservation in progress. The caller must hold the lock of the shard, which is
// released meanwhile.
func (sh *share) wait(ctx context.Context, shard *shareShard) error {
	r := sh.reserved
	sh.waiting++
	shard.mu.Unlock()
	defer func() {
		shard.mu.Lock()
		sh.waiting--
	}()
	select {
	case <-r.done:
		if r.canceled {
			return nil
		}
		return r.err
	case <-ctx.Done():
		return fault.Wrap(fault.Unavailable, "the try was not counted in time", ctx.Err())
	}
}

// decide admits a try from the share or refuses it, and reports whether it could without the store.
func (sh *share) decide(v *throttle.Verdict) bool {
	switch {
	case sh.left > 0:
		sh.left--
		sh.used++
		v.Allowed, v.Remaining = true, min(v.Limit, v.Limit-sh.counted+sh.left)
	case sh.full:
		sh.refused++
		v.Remaining = 0
	default:
		return false
	}
	return true
}

// nextSize returns the size of the next share. After a failed call, which may have reserved a share
// that is now lost, it is one, so that a store that fails often does not use up the limit.
func (sh *share) nextSize(limit uint64) uint64 {
	if sh.unsure {
		return 1
	}
	return ratelimit.ShareSize(limit, sh.counted, sh.used)
}

// addReserved adds what the store has granted of a share: the part of it that is within the limit.
// after is the store's count with the share.
func (sh *share) addReserved(size, after, limit uint64) {
	before := after - min(size, after)
	granted := min(size, limit-min(before, limit))
	sh.left += granted
	sh.counted, sh.full = min(after, limit), granted < size
}

// findShare returns the share of a key in a window, and creates it if there is room. It returns nil
// if there is no room, or if the window is earlier than the current one because the clock was set
// back.
func (p *shareShard) findShare(key string, w ratelimit.Window) *share {
	if p.keys == nil || w.Start > p.window.Start {
		p.window, p.keys = w, make(map[string]*share)
	}
	if w != p.window {
		return nil
	}
	sh := p.keys[key]
	if sh == nil && len(p.keys) < sharesPerShard {
		sh = new(share)
		p.keys[strings.Clone(key)] = sh
	}
	return sh
}

// giveBack returns a try to its share. It reports whether the share of the try's window exists; if
// so, no more tries are given back than were counted.
func (p *shareShard) giveBack(key string, v throttle.Verdict) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	sh := p.keys[key]
	if sh == nil || !v.ResetAt.Equal(p.window.End()) {
		return false
	}
	switch {
	case sh.refused > 0:
		sh.refused--
	case sh.used > 0:
		sh.used--
		sh.left++
	}
	return true
}
