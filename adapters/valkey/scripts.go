package valkey

import (
	"context"
	"fmt"
	"strconv"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// giveBackSource takes hits from a counter that is there, down to zero, and leaves its expiry alone.
const giveBackSource = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count < 0 then
  redis.call('SET', KEYS[1], '0', 'KEEPTTL')
  count = 0
end
return count`

// addUnlessOverSource counts all hits, or only those of counters that the call would bring over a limit. A hit is a key
// and three arguments: addend, limit, life in milliseconds. Limits and counts are exact up to 2^53, as numbers of Lua are.
const addUnlessOverSource = `
local stood, running, over, any = {}, {}, {}, false
for i, key in ipairs(KEYS) do
  if not running[key] then
    stood[key] = redis.call('GET', key)
    running[key] = tonumber(stood[key] or '0')
  end
  running[key] = math.max(running[key] + tonumber(ARGV[3*i-2]), 0)
  if running[key] > tonumber(ARGV[3*i-1]) then
    over[key] = true
    any = true
  end
end
local after, made = {}, {}
for i, key in ipairs(KEYS) do
  local addend = tonumber(ARGV[3*i-2])
  local there = stood[key] or made[key]
  if any and not over[key] then
    after[i] = tonumber(stood[key] or '0')
  elseif addend > 0 or (addend < 0 and there) then
    after[i] = redis.call('INCRBY', key, ARGV[3*i-2])
    if after[i] < 0 then
      redis.call('SET', key, '0', 'KEEPTTL')
      after[i] = 0
    end
    if not there then
      redis.call('PEXPIRE', key, ARGV[3*i])
      made[key] = true
    end
  else
    after[i] = tonumber(redis.call('GET', key) or '0')
  end
end
return after`

// AddUnlessOver implements ports/counter: one script for all hits, which the package documentation qualifies for clusters.
// Hits of one key stand and fall together: when one of them would bring the counter over its limit, all are counted.
func (c *Client) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	if err := checkLength(hits, after); err != nil {
		return err
	}
	if len(hits) == 0 {
		return nil
	}
	if c.link.cluster.Load() == nil {
		return c.conditionallyAt(ctx, c.link.whole, hits, after)
	}
	groups := c.bySlot(hits)
	if len(groups) == 1 {
		return c.conditionallyAt(ctx, c.link.nodeOf(hits[0].Key), hits, after)
	}
	return c.acrossSlots(ctx, groups, batch{hits: hits, after: after})
}

// conditionallyAt runs the script for hits of one slot, or of a store that is no cluster.
func (c *Client) conditionallyAt(ctx context.Context, n *node, hits []counter.Hit, after []uint64) error {
	return c.link.do(ctx, placeOf(n, hits), func(ctx context.Context, client valkey.Client) error {
		return c.conditionally(ctx, client, hits, after)
	})
}

// conditionally runs the script; all keys are in one place.
func (c *Client) conditionally(ctx context.Context, client valkey.Client, hits []counter.Hit, after []uint64) error {
	keys, args := make([]string, len(hits)), make([]string, 0, 3*len(hits))
	for i := range hits {
		h := &hits[i]
		keys[i] = h.Key
		args = append(args, strconv.FormatInt(h.Addend, 10), strconv.FormatUint(h.Limit, 10), strconv.FormatInt(life(h).Milliseconds(), 10))
	}
	counts, err := c.script.Exec(ctx, client, keys, args).AsIntSlice()
	if err != nil {
		return fmt.Errorf("count unless over: %w", err)
	}
	if len(counts) != len(hits) {
		return fault.Newf(fault.Internal, "", "%d counts answered for %d hits", len(counts), len(hits))
	}
	for i, n := range counts {
		after[i] = uint64(max(n, 0))
	}
	return nil
}

// bySlot parts hits, by their indices, as a cluster's slots do.
func (c *Client) bySlot(hits []counter.Hit) map[uint16][]int {
	client := *c.link.client.Load()
	groups := make(map[uint16][]int)
	for i := range hits {
		command := client.B().Get().Key(hits[i].Key).Build()
		groups[command.Slot()] = append(groups[command.Slot()], i)
	}
	return groups
}

// acrossSlots is AddUnlessOver for several slots; the package documentation tells what it cannot promise.
func (c *Client) acrossSlots(ctx context.Context, groups map[uint16][]int, b batch) error {
	over, err := lookAhead(ctx, c, b)
	if err != nil {
		return err
	}
	if len(over) > 0 {
		return addOnly(ctx, c, over, b)
	}
	return parted(groups, b, func(_ uint16, hits []counter.Hit, after []uint64) error {
		return c.conditionallyAt(ctx, c.link.nodeOf(hits[0].Key), hits, after)
	})
}

// lookAhead reads all counters into b.after, and returns the keys that the batch would bring over a limit.
func lookAhead(ctx context.Context, s counter.Store, b batch) (map[string]bool, error) {
	looks := make([]counter.Hit, len(b.hits))
	for i := range b.hits {
		looks[i] = b.hits[i]
		looks[i].Addend = 0
	}
	if err := s.Add(ctx, looks, b.after); err != nil {
		return nil, err
	}
	return overLimit(b.hits, b.after), nil
}

// overLimit returns the keys that hits would bring over a limit, from the counts as they stand.
func overLimit(hits []counter.Hit, stand []uint64) map[string]bool {
	over, running := make(map[string]bool), make(map[string]uint64, len(hits))
	for i := range hits {
		h := &hits[i]
		count, earlier := running[h.Key]
		if !earlier {
			count = stand[i]
		}
		running[h.Key] = sum(count, h.Addend)
		if running[h.Key] > h.Limit {
			over[h.Key] = true
		}
	}
	return over
}

// addOnly counts the hits of some keys; for the others b.after stays.
func addOnly(ctx context.Context, s counter.Store, keys map[string]bool, b batch) error {
	var indices []int
	for i := range b.hits {
		if keys[b.hits[i].Key] {
			indices = append(indices, i)
		}
	}
	after := make([]uint64, len(indices))
	if err := s.Add(ctx, pick(b.hits, indices), after); err != nil {
		return err
	}
	for i, at := range indices {
		b.after[at] = after[i]
	}
	return nil
}

func pick(hits []counter.Hit, indices []int) []counter.Hit {
	picked := make([]counter.Hit, len(indices))
	for i, at := range indices {
		picked[i] = hits[at]
	}
	return picked
}

// sum adds an addend to a count and never goes below zero.
func sum(count uint64, addend int64) uint64 {
	if addend >= 0 {
		return count + uint64(addend)
	}
	if back := uint64(-(addend + 1)) + 1; back < count { // the smallest number has no positive twin
		return count - back
	}
	return 0
}
