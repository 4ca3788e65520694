package memcached

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

var _ counter.Admitter = (*Client)(nil)

// errContended means that other instances changed a counter all the time until the deadline.
var errContended = errors.New("other instances change the counter all the time")

// Admit implements counter.Admitter: it reads the states, decides by the clock of this process, and stores
// the new states unless another instance has changed them meanwhile; then it starts again. In this process
// one call at a time decides about a key, and then one about all hits that have come meanwhile.
func (c *Client) Admit(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	a, err := c.newAdmission(hits, results)
	if err != nil || len(hits) == 0 {
		return err
	}
	return a.admitEach(c.deadlines.Bound(ctx))
}

// AdmitAll implements counter.Admitter. It is not atomic, like AddUnlessOver: it asks first, and gives hits
// back if a counter was changed meanwhile.
func (c *Client) AdmitAll(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	a, err := c.newAdmission(hits, results)
	if err != nil || len(hits) == 0 {
		return err
	}
	ctx = c.deadlines.Bound(ctx)
	over, err := a.refused(ctx)
	if err != nil {
		return err
	}
	deadline.NextStep(ctx)
	if len(over) > 0 {
		return a.countFixed(ctx, func(h counter.Hit) bool { return over[h.Key] })
	}
	if err := a.admitEach(ctx); err != nil {
		return err
	}
	return a.giveBackIfRefused(ctx)
}

// admission is hits to decide about.
type admission struct {
	client  *Client
	hits    []counter.Hit
	results []counter.Admitted
}

func (c *Client) newAdmission(hits []counter.Hit, results []counter.Admitted) (*admission, error) {
	if len(hits) != len(results) {
		return nil, fault.Newf(fault.Internal, "got %d hits but room for %d results", len(hits), len(results))
	}
	return &admission{c, hits, results}, validateHits(hits, make([]uint64, len(hits)))
}

// admitEach decides about each hit by itself.
func (a *admission) admitEach(ctx context.Context) error {
	if err := a.countFixed(ctx, func(counter.Hit) bool { return true }); err != nil {
		return err
	}
	return a.client.admissions.run(ctx, a)
}

// countFixed counts those hits of fixed windows that are wanted.
func (a *admission) countFixed(ctx context.Context, wanted func(counter.Hit) bool) error {
	var fixed batch
	var indices []int
	for i, h := range a.hits {
		if h.Algorithm == ratelimit.FixedWindow && wanted(h) {
			fixed.hits, indices = append(fixed.hits, h), append(indices, i)
		}
	}
	fixed.after = make([]uint64, len(indices))
	if err := a.client.addBatch(ctx, fixed); err != nil {
		return err
	}
	for i, at := range indices {
		a.results[at].Count = fixed.after[i]
	}
	return nil
}

// refused looks at all counters without counting, writes what it finds to the results, and returns the
// keys whose hits together would be refused or go over a limit.
func (a *admission) refused(ctx context.Context) (map[string]bool, error) {
	looks := &admission{a.client, slices.Clone(a.hits), a.results}
	for i := range looks.hits {
		looks.hits[i].Addend = 0
	}
	if err := looks.countFixed(ctx, func(counter.Hit) bool { return true }); err != nil {
		return nil, err
	}
	states, err := looks.read(ctx)
	if err != nil {
		return nil, err
	}
	over, sums, now := map[string]bool{}, map[string]int64{}, time.Now()
	for i := range a.hits {
		h := &a.hits[i]
		sums[h.Key] += h.Addend
		if h.Algorithm == ratelimit.FixedWindow {
			if addToCount(a.results[i].Count, sums[h.Key]) > h.Limit {
				over[h.Key] = true
			}
			continue
		}
		s := *states[h.Key]
		if v := s.take(h, now, sums[h.Key]); !v.Admitted {
			over[h.Key], a.results[i].Verdict = true, v
		} else {
			look := *states[h.Key]
			a.results[i].Verdict = look.take(h, now, 0)
		}
	}
	_, err = a.client.store(ctx, states, now) // those that are cut
	return over, err
}

// giveBackIfRefused gives the hits back that were admitted, if another one of the call was not.
func (a *admission) giveBackIfRefused(ctx context.Context) error {
	if !slices.ContainsFunc(a.hits, func(h counter.Hit) bool { return a.isRefused(h.Key) }) {
		return nil
	}
	back := &admission{client: a.client}
	for i, h := range a.hits {
		if h.Algorithm != ratelimit.FixedWindow && a.results[i].Verdict.Admitted && h.Addend > 0 {
			h.Addend = -h.Addend
			back.hits = append(back.hits, h)
		}
	}
	back.results = make([]counter.Admitted, len(back.hits))
	if len(back.hits) == 0 {
		return nil
	}
	return a.client.undo(ctx, back.admitEach)
}

func (a *admission) isRefused(key string) bool {
	for i, h := range a.hits {
		if h.Key == key && h.Algorithm != ratelimit.FixedWindow && !a.results[i].Verdict.Admitted {
			return true
		}
	}
	return false
}

// decideAll decides about the hits, none of which is of a fixed window.
func (a *admission) decideAll(ctx context.Context) error {
	undecided := map[string]bool{}
	for _, h := range a.hits {
		undecided[h.Key] = true
	}
	for len(undecided) > 0 {
		round := &admission{client: a.client}
		var indices []int
		for i, h := range a.hits {
			if undecided[h.Key] {
				round.hits, indices = append(round.hits, h), append(indices, i)
			}
		}
		round.results = make([]counter.Admitted, len(indices))
		stored, err := round.decide(ctx)
		if err != nil {
			return err
		}
		for i, at := range indices {
			if stored[a.hits[at].Key] {
				a.results[at] = round.results[i]
				delete(undecided, a.hits[at].Key)
			}
		}
		if len(undecided) > 0 && ctx.Err() != nil {
			return storeUnavailable(errContended)
		}
	}
	return nil
}

// decide reads the states, decides about all hits and stores the new states. It returns the keys whose
// states were stored, or did not change.
func (a *admission) decide(ctx context.Context) (map[string]bool, error) {
	states, err := a.read(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i := range a.hits {
		a.results[i].Verdict = states[a.hits[i].Key].take(&a.hits[i], now, a.hits[i].Addend)
	}
	return a.client.store(ctx, states, now)
}

// admitState is the state of a sliding window or a token bucket, as it was read.
type admitState struct {
	hit     *counter.Hit
	sliding ratelimit.Sliding
	full    int64
	mark    uint32 // of the stored value; 0 if there is none
	cas     uint64 // of the stored value; 0 if there is none
	changed bool
}

// bucket returns the token bucket of a hit.
func bucket(h *counter.Hit) ratelimit.Bucket {
	return ratelimit.Bucket{Limit: h.Limit, Window: h.Window, Burst: h.Burst}
}

// bucketMark identifies the limit and the burst under which the state of a token bucket was stored (FNV-1a).
// It is never 0, which a state of a version without marks has.
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

// cutBucket empties a token bucket that is more than empty since its limit or burst was changed. Without a
// change the clock of this process is behind that of the instance which stored the state.
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
	return setCommand{key: s.key(), value: uint64(s.full), cas: s.cas, mark: bucketMark(s.hit), life: life} //nolint:gosec // a time
}

// windowKey returns the key of the count of one window. It is longer than counter.MaxKey, but not than
// memcached allows.
func windowKey(key string, window int64) string { return key + ":" + strconv.FormatInt(window, 10) }

// read reads the states of all keys. A sliding window has a count for each window; that of the window
// before does not change any more, as far as the clocks of all instances agree.
func (a *admission) read(ctx context.Context) (map[string]*admitState, error) {
	states := map[string]*admitState{}
	var keys []string
	var into []func(response)
	now := time.Now()
	for i := range a.hits {
		h := &a.hits[i]
		if h.Algorithm == ratelimit.FixedWindow || states[h.Key] != nil {
			continue
		}
		s := &admitState{hit: h}
		states[h.Key] = s
		if h.Algorithm == ratelimit.TokenBucket {
			keys, into = append(keys, h.Key), append(into, func(r response) { s.full, s.cas, s.mark = int64(r.count), r.cas, r.mark }) //nolint:gosec // a time
			continue
		}
		s.sliding.Window = now.UnixMicro() / h.Window.Microseconds()
		keys = append(keys, windowKey(h.Key, s.sliding.Window), windowKey(h.Key, s.sliding.Window-1))
		into = append(into, func(r response) { s.sliding.Current, s.cas = r.count, r.cas }, func(r response) { s.sliding.Earlier = r.count })
	}
	answers, err := a.client.exchange(ctx, keys, func(out []byte, i int) []byte { return appendGetCAS(out, keys[i]) })
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

// store stores the states that have changed, each unless another instance has changed it too.
func (c *Client) store(ctx context.Context, states map[string]*admitState, now time.Time) (map[string]bool, error) {
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
	answers, err := c.exchange(ctx, keys, func(out []byte, i int) []byte {
		return appendSet(out, changed[i].command(now), now)
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

// exchange sends one command for each key to its node, and returns the responses.
func (c *Client) exchange(ctx context.Context, keys []string, appendTo func(out []byte, i int) []byte) ([]response, error) {
	if err := ctx.Err(); err != nil {
		return nil, storeUnavailable(err)
	}
	places := map[*node][]int{}
	for i, key := range keys {
		n, err := c.ring.findNode(key)
		if err != nil {
			return nil, storeUnavailable(err)
		}
		places[n] = append(places[n], i)
	}
	requests := make(map[*node]request, len(places))
	for n, indices := range places {
		k := c.getPipeline()
		k.reset(len(indices))
		for _, i := range indices {
			k.commands = appendTo(k.commands, i)
		}
		f := request{node: n, pipeline: k}
		f.sendPipeline(ctx)
		requests[n] = f
	}
	answers := make([]response, len(keys))
	var failure error
	for n, f := range requests {
		abandoned := c.awaitResponses(ctx, &f)
		if f.err != nil {
			failure = storeUnavailable(f.err)
		} else {
			for at, i := range places[n] {
				answers[i] = f.pipeline.responses[at]
			}
		}
		if !abandoned {
			c.putPipeline(f.pipeline)
		}
	}
	return answers, failure
}
