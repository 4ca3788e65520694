package valkey

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

var (
	//go:embed count.lua
	countSource string

	countScript = valkey.NewLuaScript(countSource)
)

// The greatest numbers of hits of one script, because the server does nothing else meanwhile: about
// 2 ms if it decides about each by itself, and about 10 ms if it decides about all together.
const (
	maxScriptHits = 100
	maxAtomic     = 500
)

// countByScript counts hits by one script, or by several if they have keys of several cluster slots
// or are many.
func (c *Client) countByScript(ctx context.Context, b batch, m counter.Mode) error {
	most := maxScriptHits
	if m == counter.AllOrNone {
		most = maxAtomic
	}
	if c.store.cluster.Load() == nil && len(b.hits) <= most {
		return c.runScript(ctx, b, m)
	}
	g := c.newGroups(b, groupHits(b.hits, most, c.slotOf), c.runScript)
	if len(g.indices) == 1 {
		return c.runScript(ctx, b, m)
	}
	ctx = c.store.deadlines.Bound(ctx)
	if m == counter.AllOrNone {
		return g.countAllOrNone(ctx)
	}
	return g.countEach(ctx, m)
}

// slotOf returns the slot of a key; 0 outside clusters.
func (c *Client) slotOf(key string) uint16 {
	if c.store.cluster.Load() == nil {
		return 0
	}
	return slotOf(key)
}

// runScript runs the script for hits of one slot.
func (c *Client) runScript(ctx context.Context, b batch, m counter.Mode) error {
	at := newRoute(c.store.findNode(b.hits[0].Key), b.hits)
	return c.store.call(ctx, at, func(ctx context.Context, client valkey.Client) error {
		numbers, err := b.runScript(ctx, client, m).ToArray()
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		if len(numbers) != 3*len(b.hits) {
			return fault.Newf(fault.Internal, "the script returned %d numbers for %d hits", len(numbers), len(b.hits))
		}
		return b.storeNumbers(numbers)
	})
}

// runScript runs the script with all keys, then the arguments of all hits, then the mode. One hit
// needs no memory for them.
func (b batch) runScript(ctx context.Context, client valkey.Client, m counter.Mode) valkey.ValkeyResult {
	var few [len(hitArguments{}) + 2]string
	all := slices.Grow(few[:0], (len(few)-1)*len(b.hits)+1)
	for i := range b.hits {
		all = append(all, b.hits[i].Key)
	}
	for i := range b.hits {
		one := newHitArguments(&b.hits[i])
		all = append(all, one[:]...)
	}
	all = append(all, strconv.Itoa(int(m)))
	return countScript.Exec(ctx, client, all[:len(b.hits)], all[len(b.hits):])
}

// hitArguments are the arguments of one hit: algorithm, addend, limit, window, burst and time to
// live.
type hitArguments [6]string

// newHitArguments returns the arguments of a hit. They are parts of one string.
func newHitArguments(h *counter.Hit) (args hitArguments) {
	var memory [128]byte
	var ends [len(args)]int
	text := memory[:0]
	for i, n := range [len(args)]int64{
		int64(h.Algorithm), h.Addend, toInt64(h.Limit), h.Window.Microseconds(), toInt64(h.Burst),
		counterTTL(h).Milliseconds(),
	} {
		text = strconv.AppendInt(text, n, 10)
		ends[i] = len(text)
	}
	all, from := string(text), 0
	for i, end := range ends {
		args[i], from = all[from:end], end
	}
	return args
}

// toInt64 returns a number, or the greatest one that fits.
func toInt64(n uint64) int64 { return int64(min(n, math.MaxInt64)) } //nolint:gosec // it fits

// storeNumbers writes the numbers of a script to the results.
func (b batch) storeNumbers(numbers []valkey.ValkeyMessage) error {
	for i := range b.hits {
		var of [3]int64
		for n := range of {
			var err error
			if of[n], err = numbers[3*i+n].AsInt64(); err != nil || of[n] < 0 {
				return fmt.Errorf("count: %w", errors.Join(errNoCount, err))
			}
		}
		if b.hits[i].Algorithm == ratelimit.FixedWindow {
			b.results[i] = counter.Result{Count: uint64(of[0])}
			continue
		}
		b.results[i] = counter.Result{Verdict: ratelimit.Verdict{
			Admitted: of[0] == 1, Remaining: uint64(of[1]), Reset: time.Duration(of[2]) * time.Microsecond,
		}}
	}
	return nil
}

// slotOf returns the cluster slot of a key: the CRC-16 (XMODEM) of its hash tag, which is the text
// between the first { and the next } if it is not empty, else of the whole key (Valkey cluster
// specification, "Key distribution model").
func slotOf(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		x := uint16(byte(crc>>8) ^ key[i])
		x ^= x >> 4
		crc = crc<<8 ^ x<<12 ^ x<<5 ^ x
	}
	return crc % clusterSlots
}
