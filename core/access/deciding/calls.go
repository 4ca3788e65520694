package deciding

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
)

const (
	// countEvery is the time between two writes of the numbers of calls.
	countEvery = time.Minute
	// maxCounted is for how many servers one instance counts.
	maxCounted = 100_000
	// week is how many days Week looks at, with today.
	week = 7
)

// callCounter has the calls of a server that are not stored yet.
type callCounter struct{ calls, denied atomic.Int64 }

// note counts a decision; nil counts nothing.
func (c *callCounter) note(e access.Effect) {
	if c == nil {
		return
	}
	c.calls.Add(1)
	if e == access.Deny {
		c.denied.Add(1)
	}
}

// callCounters are the counters of the servers that were called, which stay: a decision goes on with the one that it
// has found once.
type callCounters struct {
	mu      sync.RWMutex
	by      map[string]*callCounter
	written time.Time // only Run uses it
}

// counterOf returns the counter of a server; nil for one that is not listed, whose name may be any text.
func (s *Service) counterOf(snapshot *access.Snapshot, server string) *callCounter {
	c := &s.counters
	c.mu.RLock()
	found := c.by[server]
	c.mu.RUnlock()
	if found != nil || !snapshot.Lists(server) {
		return found
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found = c.by[server]; found == nil && len(c.by) < maxCounted {
		if c.by == nil {
			c.by = map[string]*callCounter{}
		}
		found = &callCounter{}
		c.by[strings.Clone(server)] = found
	}
	return found
}

// storeCalls adds the calls since the last time to those that are stored of today. What cannot be stored waits: that
// the database is away, ReadFailed says.
func (s *Service) storeCalls(ctx context.Context, last bool) {
	c, now := &s.counters, s.ports.Clock.Now()
	if age := now.Sub(c.written); age >= 0 && age < countEvery && !last {
		return
	}
	c.written = now
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	for some := range slices.Chunk(c.take(), accessstore.MaxNames) {
		if err := s.ports.Servers.AddCalls(ctx, dayOf(now), some); err != nil {
			c.putBack(some)
		}
	}
}

// take returns the calls that are not stored, in the order in which all instances store them.
func (c *callCounters) take() (all []accessstore.Calls) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for server, n := range c.by {
		if one := (accessstore.Calls{Server: server, All: n.calls.Swap(0), Denied: n.denied.Swap(0)}); one.All+one.Denied > 0 {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b accessstore.Calls) int { return cmp.Compare(a.Server, b.Server) })
	return all
}

func (c *callCounters) putBack(some []accessstore.Calls) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, one := range some {
		c.by[one.Server].calls.Add(one.All)
		c.by[one.Server].denied.Add(one.Denied)
	}
}

// dayOf returns the number of the day of a time, in UTC.
func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// Week returns the calls of a server of today and the six days before, without those of the last minute.
func (s *Service) Week(ctx context.Context, server string) (accessstore.Calls, error) {
	return s.ports.Servers.CallsOf(ctx, server, dayOf(s.ports.Clock.Now())-week+1)
}
