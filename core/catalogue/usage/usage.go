// Package usage counts how often a client has called the open-data API today (contract M-4), by an
// address that represents it. It limits nothing.
package usage

import (
	"context"
	"encoding/hex"
	"net/netip"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

const day = 24 * time.Hour

// Counter counts calls by address and UTC day in the counter store, for all instances together.
type Counter struct {
	store  counter.Store
	clock  clock.Clock
	prefix string
}

// New returns a counter that uses the store. The prefix begins all its keys; it has at most 100
// characters that every store accepts in a key.
func New(store counter.Store, c clock.Clock, prefix string) *Counter {
	return &Counter{store: store, clock: c, prefix: prefix + "tollgate:usage:"}
}

// Count counts one call of the address and returns how many it has made today, including this one.
// It returns fault.Unavailable when the counter store fails.
func (c *Counter) Count(ctx context.Context, a netip.Addr) (uint64, error) {
	return c.addCalls(ctx, a, 1)
}

// Today returns how many calls the address has made today, without counting one.
func (c *Counter) Today(ctx context.Context, a netip.Addr) (uint64, error) {
	return c.addCalls(ctx, a, 0)
}

// addCalls adds calls of the address and returns how many it has made today.
func (c *Counter) addCalls(ctx context.Context, a netip.Addr, hits int64) (uint64, error) {
	today := c.clock.Now().Unix() / int64(day/time.Second)
	raw := a.As16()
	return counter.Add(ctx, c.store, counter.Hit{
		Key:    c.prefix + hex.EncodeToString(raw[:]) + ":" + strconv.FormatInt(today, 10),
		Addend: hits,
		Limit:  ^uint64(0),
		Window: day,
		TTL:    day + time.Hour,
	})
}
