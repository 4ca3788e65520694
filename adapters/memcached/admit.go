package memcached

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// errContended means that other instances changed a counter all the time until the deadline.
var errContended = errors.New("other instances change the counter all the time")

// decideAll decides about hits that are not of fixed windows: it reads the states, decides by the
// clock of this process, and stores the new states unless another instance has changed them
// meanwhile; then it starts again.
func (c *Client) decideAll(ctx context.Context, b batch) error {
	undecided := map[string]bool{}
	for i := range b.hits {
		undecided[b.hits[i].Key] = true
	}
	for len(undecided) > 0 {
		var stored map[string]bool
		err := b.countSelected(func(h *counter.Hit) bool { return undecided[h.Key] }, func(part batch) (err error) {
			stored, err = c.decideOnce(ctx, part)
			return err
		})
		if err != nil {
			return err
		}
		maps.DeleteFunc(undecided, func(key string, _ bool) bool { return stored[key] })
		if len(undecided) > 0 && ctx.Err() != nil {
			return storeUnavailable(errContended)
		}
	}
	return nil
}

// decideOnce reads the states, decides about all hits and stores the new states. It returns the
// keys whose states were stored, or did not change.
func (c *Client) decideOnce(ctx context.Context, b batch) (map[string]bool, error) {
	states, err := c.readStates(ctx, b.hits)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i := range b.hits {
		b.results[i].Verdict = states[b.hits[i].Key].take(&b.hits[i], now, b.hits[i].Addend)
	}
	return c.storeStates(ctx, states, now)
}

// admitState is the state of a sliding window or a token bucket, as it was read.
type admitState struct {
	hit     *counter.Hit
	sliding ratelimit.Sliding
	full    int64
	mark    uint32 // of the stored value; otherwise 0
	cas     uint64 // of the stored value; otherwise 0
	changed bool
}

// bucket returns the token bucket of a hit.
func bucket(h *counter.Hit) ratelimit.Bucket {
	return ratelimit.Bucket{Limit: h.Limit, Window: h.Window, Burst: h.Burst}
}

// bucketMark identifies the limit and the burst under which the state of a token bucket was stored
// (FNV-1a). It is never 0, which a state of a version without marks has.
func bucketMark(h *counter.Hit) uint32 {
	mark := uint32(2166136261)
	for _, n := range [...]uint64{h.Limit, h.Burst} {
		for ; n > 0; n >>= 8 {
			mark = (mark ^ uint32(n&0xff)) * 16777619 //nolint:gosec // a byte
		}
		mark *= 16777619
	}
	return max(mark, 1)
}

// cutBucket empties a token bucket that is more than empty since its limit or burst was changed.
// Without a change the clock of this process is behind that of the instance which stored the state.
func (s *admitState) cutBucket(now time.Time) {
	if s.hit.Algorithm != ratelimit.TokenBucket || s.mark == 0 || s.mark == bucketMark(s.hit) {
		return
	}
	if cut := bucket(s.hit).Cut(s.full, now); cut < s.full {
		s.full, s.changed = cut, true
	}
}

// take decides about hits and changes the state.
func (s *admitState) take(h *counter.Hit, now time.Time, hits int64) (v ratelimit.Verdict) {
	before := *s
	if h.Algorithm == ratelimit.SlidingWindow {
		s.sliding, v = ratelimit.SlidingLimit{Limit: h.Limit, Window: h.Window}.Take(s.sliding, now, hits)
	} else {
		s.full, v = bucket(h).Take(s.full, now, hits)
	}
	if hits == 0 || !v.Admitted {
		*s = before // also if only time has passed
		return v
	}
	s.changed = true
	return v
}

// look decides about hits and does not change the state.
func (s admitState) look(h *counter.Hit, now time.Time, hits int64) ratelimit.Verdict {
	return s.take(h, now, hits)
}

// key returns the key of the value.
func (s *admitState) key() string {
	if s.hit.Algorithm == ratelimit.SlidingWindow {
		return windowKey(s.hit.Key, s.sliding.Window)
	}
	return s.hit.Key
}

// command returns the command that stores the state.
func (s *admitState) command(now time.Time) setCommand {
	if s.hit.Algorithm == ratelimit.SlidingWindow {
		end := time.UnixMicro((s.sliding.Window + 2) * s.hit.Window.Microseconds())
		return setCommand{key: s.key(), value: s.sliding.Current, cas: s.cas, life: end.Sub(now) + ratelimit.ClockSkew}
	}
	life := bucket(s.hit).FullAt(s.full).Sub(now) + ratelimit.ClockSkew
	return setCommand{
		key: s.key(), value: uint64(s.full), cas: s.cas, mark: bucketMark(s.hit), life: life,
	} //nolint:gosec // a time
}

// windowKey returns the key of the count of one window. It is longer than counter.MaxKey, but not
// than memcached allows.
func windowKey(key string, window int64) string { return key + ":" + strconv.FormatInt(window, 10) }

// readStates reads the states of all keys that are not of fixed windows. A sliding window has a
// count for each window; that of the window before does not change any more, as far as the clocks
// of all instances agree.
func (c *Client) readStates(ctx context.Context, hits []counter.Hit) (map[string]*admitState, error) {
	states := map[string]*admitState{}
	var keys []string
	var into []func(response)
	now := time.Now()
	for i := range hits {
		h := &hits[i]
		if isFixed(h) || states[h.Key] != nil {
			continue
		}
		s := &admitState{hit: h}
		states[h.Key] = s
		if h.Algorithm == ratelimit.TokenBucket {
			keys, into = append(keys, h.Key),
				append(into, func(r response) {
					s.full, s.cas, s.mark = int64(r.count), r.cas, r.mark
				}) //nolint:gosec // a time
			continue
		}
		s.sliding.Window = now.UnixMicro() / h.Window.Microseconds()
		keys = append(keys, windowKey(h.Key, s.sliding.Window), windowKey(h.Key, s.sliding.Window-1))
		into = append(into, func(r response) { s.sliding.Current, s.cas = r.count, r.cas }, func(r response) {
			s.sliding.Earlier = r.count
		})
	}
	answers, err := c.exchange(ctx, keys, func(f *request, i int) {
		f.pipeline.commands = appendGetCAS(f.pipeline.commands, keys[i])
	})
	if err != nil {
		return nil, err
	}
	for i, r := range answers {
		if r.err == nil && !r.number && !r.missing {
			r.err = errNoCount
		}
		if r.err != nil {
			return nil, storeUnavailable(r.err)
		}
		into[i](r)
	}
	now = time.Now()
	for _, s := range states {
		s.cutBucket(now)
	}
	return states, nil
}

// storeStates stores the states that have changed, each unless another instance has changed it too.
func (c *Client) storeStates(
	ctx context.Context, states map[string]*admitState, now time.Time,
) (map[string]bool, error) {
	stored := map[string]bool{}
	var changed []*admitState
	var keys []string
	for key, s := range states {
		if s.changed {
			changed, keys = append(changed, s), append(keys, s.key())
		} else {
			stored[key] = true
		}
	}
	answers, err := c.exchange(ctx, keys, func(f *request, i int) {
		f.pipeline.commands = appendSet(f.pipeline.commands, changed[i].command(now), now)
	})
	if err != nil {
		return nil, err
	}
	for i, r := range answers {
		if r.err != nil {
			return nil, storeUnavailable(r.err)
		}
		if r.stored {
			stored[changed[i].hit.Key] = true
		}
	}
	return stored, nil
}
