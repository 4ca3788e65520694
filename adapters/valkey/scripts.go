package valkey

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// giveBackSource subtracts hits from an existing counter, down to zero, and keeps its expiry.
const giveBackSource = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count < 0 then
  redis.call('SET', KEYS[1], '0', 'KEEPTTL')
  count = 0
end
return count`

// addUnlessOverSource counts all hits, or, if the call would bring any counter over its limit, only
// the hits of those counters. A hit is a key and three arguments: addend, limit, and time to live
// in milliseconds. Limits and counts are exact up to 2^53, the limit of Lua numbers.
const addUnlessOverSource = `
local before, running, over, any = {}, {}, {}, false
for i, key in ipairs(KEYS) do
  if not running[key] then
    before[key] = redis.call('GET', key)
    running[key] = tonumber(before[key] or '0')
  end
  running[key] = math.max(running[key] + tonumber(ARGV[3*i-2]), 0)
  if running[key] > tonumber(ARGV[3*i-1]) then
    over[key] = true
    any = true
  end
end
local after, created = {}, {}
for i, key in ipairs(KEYS) do
  local addend = tonumber(ARGV[3*i-2])
  local exists = before[key] or created[key]
  if any and not over[key] then
    after[i] = tonumber(before[key] or '0')
  elseif addend > 0 or (addend < 0 and exists) then
    after[i] = redis.call('INCRBY', key, ARGV[3*i-2])
    if after[i] < 0 then
      redis.call('SET', key, '0', 'KEEPTTL')
      after[i] = 0
    end
    if not exists then
      redis.call('PEXPIRE', key, ARGV[3*i])
      created[key] = true
    end
  else
    after[i] = tonumber(redis.call('GET', key) or '0')
  end
end
return after`

// maxAtomic is the greatest number of hits that one script counts together, because the server does
// nothing else meanwhile: about 10 ms.
const maxAtomic = 500

// AddUnlessOver implements counter.Store with one script for all hits; the package documentation
// describes the limits of this in clusters and for very many hits. Hits of the same key belong together:
// if one of them would bring the counter over its limit, all are counted.
func (c *Client) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := checkLength(hits, after); err != nil {
		return err
	}
	switch {
	case len(hits) == 0:
		return nil
	case len(hits) > maxAtomic:
		return c.addUnlessOverInSteps(ctx, batch{hits: hits, after: after}, func(ctx context.Context) error {
			return c.Add(ctx, hits, after)
		})
	case c.store.cluster.Load() == nil:
		return c.addUnlessOverOnNode(ctx, c.store.defaultNode, hits, after)
	}
	groups := c.groupBySlot(hits)
	if len(groups) == 1 {
		return c.addUnlessOverOnNode(ctx, c.store.findNode(hits[0].Key), hits, after)
	}
	b := batch{hits: hits, after: after}
	return c.addUnlessOverInSteps(ctx, b, func(ctx context.Context) error {
		return callEachGroup(groups, b, func(_ uint16, hits []counter.Hit, after []uint64) error {
			return c.addUnlessOverOnNode(ctx, c.store.findNode(hits[0].Key), hits, after)
		})
	})
}

// addUnlessOverOnNode runs the script on a node. All hits must be in one slot, unless the store is
// not a cluster.
func (c *Client) addUnlessOverOnNode(ctx context.Context, n *node, hits []counter.Hit, after []uint64) error {
	return c.store.call(ctx, newRoute(n, hits), func(ctx context.Context, client valkey.Client) error {
		return c.runAddUnlessOver(ctx, client, hits, after)
	})
}

// runAddUnlessOver runs the script for keys of one slot.
func (c *Client) runAddUnlessOver(ctx context.Context, client valkey.Client, hits []counter.Hit, after []uint64) error {
	keys, args := make([]string, len(hits)), make([]string, 0, 3*len(hits))
	for i := range hits {
		h := &hits[i]
		keys[i] = h.Key
		args = append(args, strconv.FormatInt(h.Addend, 10), strconv.FormatUint(h.Limit, 10), strconv.FormatInt(counterTTL(h).Milliseconds(), 10))
	}
	counts, err := c.script.Exec(ctx, client, keys, args).ToArray()
	if err != nil {
		return fmt.Errorf("count unless over the limit: %w", err)
	}
	if len(counts) != len(hits) {
		return fault.Newf(fault.Internal, "the script returned %d counts for %d hits", len(counts), len(hits))
	}
	for i := range counts {
		n, err := counts[i].AsInt64()
		if err != nil || n < 0 {
			return errors.Join(errNoCount, err)
		}
		after[i] = uint64(n)
	}
	return nil
}

// groupBySlot returns the indices of the hits of each cluster slot.
func (c *Client) groupBySlot(hits []counter.Hit) map[uint16][]int {
	groups := make(map[uint16][]int)
	for i := range hits {
		slot := slotOf(hits[i].Key)
		groups[slot] = append(groups[slot], i)
	}
	return groups
}

// addUnlessOverInSteps is AddUnlessOver where one script cannot count all hits: it reads all counters,
// and countAll counts the hits if none would go over its limit. The package documentation describes what
// it does not guarantee.
func (c *Client) addUnlessOverInSteps(ctx context.Context, b batch, countAll func(context.Context) error) error {
	ctx = c.store.deadlines.Bound(ctx)
	over, err := readKeysOverLimit(ctx, c, b)
	if err != nil {
		return err
	}
	if len(over) > 0 {
		return addHitsOfKeys(ctx, c, over, b)
	}
	return countAll(ctx)
}

// readKeysOverLimit is the first of several steps: it reads all counters into b.after, and returns the
// keys that the batch would bring over a limit.
func readKeysOverLimit(ctx context.Context, s counter.Store, b batch) (map[string]bool, error) {
	looks := make([]counter.Hit, len(b.hits))
	for i := range b.hits {
		looks[i] = b.hits[i]
		looks[i].Addend = 0
	}
	if err := s.Add(ctx, looks, b.after); err != nil {
		return nil, err
	}
	deadline.NextStep(ctx)
	return findKeysOverLimit(b.hits, b.after), nil
}

// findKeysOverLimit returns the keys that the hits would bring over a limit, starting from the
// counts before.
func findKeysOverLimit(hits []counter.Hit, before []uint64) map[string]bool {
	over, running := make(map[string]bool), make(map[string]uint64, len(hits))
	for i := range hits {
		h := &hits[i]
		count, earlier := running[h.Key]
		if !earlier {
			count = before[i]
		}
		running[h.Key] = addToCount(count, h.Addend)
		if running[h.Key] > h.Limit {
			over[h.Key] = true
		}
	}
	return over
}

// addHitsOfKeys counts the hits of the given keys. For all other keys b.after stays as it is.
func addHitsOfKeys(ctx context.Context, s counter.Store, keys map[string]bool, b batch) error {
	var indices []int
	for i := range b.hits {
		if keys[b.hits[i].Key] {
			indices = append(indices, i)
		}
	}
	after := make([]uint64, len(indices))
	if err := s.Add(ctx, selectHits(b.hits, indices), after); err != nil {
		return err
	}
	for i, at := range indices {
		b.after[at] = after[i]
	}
	return nil
}

func selectHits(hits []counter.Hit, indices []int) []counter.Hit {
	picked := make([]counter.Hit, len(indices))
	for i, at := range indices {
		picked[i] = hits[at]
	}
	return picked
}

// addToCount returns count plus addend, at least zero.
func addToCount(count uint64, addend int64) uint64 {
	if addend >= 0 {
		return count + uint64(addend)
	}
	if decrement := uint64(-(addend + 1)) + 1; decrement < count { // -math.MinInt64 overflows
		return count - decrement
	}
	return 0
}
