package memory

import (
	"context"
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Count implements counter.Store.
func (m *Counters) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, mode counter.Mode) error {
	if len(hits) != len(results) {
		return fault.Newf(fault.Internal, "got %d hits but room for %d results", len(hits), len(results))
	}
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Unavailable, "counting was canceled", err)
	}
	if mode == counter.AllOrNone && len(hits) > 1 {
		m.countAllOrNone(hits, results)
		return nil
	}
	now := m.clock.Now()
	for i := range hits {
		d := m.hashKey(hits[i].Key)
		s := m.findShard(d)
		s.mu.Lock()
		results[i] = s.count(d, &hits[i], now)
		s.mu.Unlock()
	}
	return nil
}

// countAllOrNone counts hits that are decided together.
func (m *Counters) countAllOrNone(hits []counter.Hit, results []counter.Result) {
	digests := make([]digest, len(hits))
	var involved shardSet
	for i := range hits {
		digests[i] = m.hashKey(hits[i].Key)
		involved.add(digests[i].lo & m.mask)
	}
	now := m.clock.Now()
	m.lockShards(&involved)
	defer m.unlockShards(&involved)
	clear(results)
	looks := make([]counter.Result, len(hits))
	over := counter.FindOver(hits, results, func(i int, addend int64) counter.Result {
		looks[i] = m.findShard(digests[i]).look(digests[i], hits[i], now, addend)
		return looks[i]
	})
	last := lastOfBuckets(hits, len(over) == 0)
	for i := range hits {
		h, own := hits[i], over[hits[i].Key]
		if end := last[h.Key]; end.index == i+1 {
			h.Addend = end.sum
		} else if end.index > 0 {
			results[i] = looks[i]
			continue
		}
		if own && results[i] != (counter.Result{}) {
			continue // the verdict is there
		}
		if len(over) > 0 && !(own && h.Algorithm == ratelimit.FixedWindow) {
			h.Addend = 0
		}
		results[i] = m.findShard(digests[i]).count(digests[i], &h, now)
	}
}

// bucketEnd is the place after the last hit of a token bucket, and the sum of its hits.
type bucketEnd struct {
	index int
	sum   int64
}

// lastOfBuckets returns the ends of token buckets, if their hits are counted: all with the last, because
// that is how FindOver has looked at them. The delay of each by itself would be rounded up.
func lastOfBuckets(hits []counter.Hit, counted bool) map[string]bucketEnd {
	ends := map[string]bucketEnd{}
	for i := range hits {
		if h := &hits[i]; counted && h.Algorithm == ratelimit.TokenBucket {
			ends[h.Key] = bucketEnd{i + 1, ends[h.Key].sum + h.Addend}
		}
	}
	return ends
}

// look returns the result of a hit with an addend, and counts nothing.
func (s *shard) look(d digest, h counter.Hit, now time.Time, addend int64) (r counter.Result) {
	if h.Addend = addend; h.Algorithm == ratelimit.FixedWindow {
		r.Count = counter.AddTo(s.readCount(d, now.UnixNano()), addend)
	} else {
		_, r.Verdict = s.decide(d, &h, now)
	}
	return r
}

// admitState is the state of a sliding window or a token bucket.
type admitState struct {
	sliding ratelimit.Sliding
	full    int64
}

// decide returns the state of a counter after a hit, and the verdict. It changes nothing but a
// token bucket whose limit or burst was changed.
func (s *shard) decide(d digest, h *counter.Hit, now time.Time) (admitState, ratelimit.Verdict) {
	var st admitState
	c := s.findLiveCell(d, now.UnixNano())
	var v ratelimit.Verdict
	if h.Algorithm == ratelimit.SlidingWindow {
		if c != nil {
			st.sliding = c.sliding()
		}
		st.sliding, v = ratelimit.SlidingLimit{Limit: h.Limit, Window: h.Window}.Take(st.sliding, now, h.Addend)
		return st, v
	}
	b := ratelimit.Bucket{Limit: h.Limit, Window: h.Window, Burst: h.Burst}
	if c != nil {
		c.cutBucket(b, now)
		st.full = int64(c.countOf()) //nolint:gosec // a time
	}
	st.full, v = b.Take(st.full, now, h.Addend)
	return st, v
}

// count decides about a hit and stores the state after it.
func (s *shard) count(d digest, h *counter.Hit, now time.Time) counter.Result {
	at := now.UnixNano()
	if h.Algorithm == ratelimit.FixedWindow {
		return counter.Result{Count: s.addHit(d, h, at)}
	}
	st, v := s.decide(d, h, now)
	if h.Addend == 0 || !v.Admitted {
		if c := s.findLiveCell(d, at); c != nil && !v.Admitted {
			c.state |= overLimitBit
		}
		return counter.Result{Verdict: v}
	}
	if h.Algorithm == ratelimit.SlidingWindow {
		s.storeSliding(d, h, now, st.sliding)
	} else {
		s.storeBucket(d, h, now, st.full)
	}
	return counter.Result{Verdict: v}
}

// storeSliding stores a sliding window. Each window has a cell of its own, which has the count of
// the one before too and lives until the end of the next.
func (s *shard) storeSliding(d digest, h *counter.Hit, now time.Time, w ratelimit.Sliding) {
	c := s.findLiveCell(d, now.UnixNano())
	if c == nil && w.Current == 0 {
		return
	}
	if c == nil || c.sliding().Window != w.Window {
		c = s.createCell(d, h, now.UnixNano(), (w.Window+2)*int64(h.Window))
	}
	c.state, c.more = w.Current,
		w.Earlier<<32|uint64(uint32(w.Window)) //nolint:gosec // windows of a second fit in 32 bits until 2106
}

// sliding returns the state of a cell of a sliding window.
func (c *cell) sliding() ratelimit.Sliding {
	return ratelimit.Sliding{
		Window: int64(uint32(c.more)), Current: c.countOf(), Earlier: c.more >> 32,
	} //nolint:gosec // the lower half
}

// bucketMark identifies the limit and the burst under which the state of a token bucket was stored.
func bucketMark(b ratelimit.Bucket) uint64 { return b.Limit<<32 ^ b.Burst }

// cutBucket empties a token bucket that is more than empty since its limit or burst was changed.
// Without a change it never is, but the time of a call may be older than that of the call before.
func (c *cell) cutBucket(b ratelimit.Bucket, now time.Time) {
	if mark := bucketMark(b); c.more != mark {
		c.state = uint64(b.Cut(int64(c.countOf()), now)) //nolint:gosec // times
		c.more = mark
	}
}

// storeBucket stores when a token bucket is full. The expiry of a cell never changes, so a bucket
// that is used for long gets a new cell from time to time.
func (s *shard) storeBucket(d digest, h *counter.Hit, now time.Time, full int64) {
	at := now.UnixNano()
	c := s.findLiveCell(d, at)
	b := ratelimit.Bucket{Limit: h.Limit, Window: h.Window, Burst: h.Burst}
	until := b.FullAt(full).UnixNano()
	if c == nil && until <= at {
		return
	}
	if c == nil || c.expires < until {
		c = s.createCell(d, h, at, until+min(int64(h.Window), math.MaxInt64-until))
	}
	c.state, c.more = uint64(full), bucketMark(b) //nolint:gosec // a time
}
