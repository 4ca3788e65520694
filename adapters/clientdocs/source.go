package clientdocs

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/flight"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/recent"
)

const (
	renewEvery = 30 * time.Second // time between two readings because of unknown keys
	maxKept    = 4 << 20          // bytes of a generation of copies
	copySize   = 1 << 10          // bytes that a copy counts besides its text
)

// source reads what is at addresses, and keeps it as its headers say. Errors are not kept. It is safe for
// concurrent use.
type source[V any] struct {
	*fetcher

	most   int // bytes of a text
	parse  func(address string, text []byte) (V, error)
	flight flight.Group[*kept[V]]
	copies recent.Memory[string, *kept[V]]
	bounds recent.Bounds // of copies
}

// kept is what was at an address.
type kept[V any] struct {
	value  V
	readAt time.Time
	life   time.Duration
	// tried is when it was read last, with success or not. Only the flight of the address uses it.
	tried time.Time
}

func (s *source[V]) setUp(f *fetcher, most int, parse func(address string, text []byte) (V, error)) {
	s.fetcher, s.most, s.parse, s.bounds = f, most, parse, recent.Bounds{Size: maxKept, Age: mostLife}
	s.flight.Deadline = f.deadline
}

// get returns what is at an address, or a copy that is still good. If renew is set, it is read again,
// unless that was done within renewEvery. It returns fault.Unavailable if the context ends; the other
// errors are those of fetch and parse.
func (s *source[V]) get(ctx context.Context, address string, renew bool) (*kept[V], error) {
	if found, ok := s.copies.Get(address); ok && !renew && isWithin(found.life, found.readAt, s.clock.Now()) {
		return found, nil
	}
	got, err := s.flight.Join(ctx, address, func(ctx context.Context) (*kept[V], error) {
		return s.read(ctx, address, renew)
	})
	if _, classified := fault.As(err); err != nil && !classified {
		err = fault.Wrap(fault.Unavailable, "the caller did not wait", err)
	}
	return got, err
}

func (s *source[V]) read(ctx context.Context, address string, renew bool) (*kept[V], error) {
	now := s.clock.Now()
	found, ok := s.copies.Get(address)
	if ok && isWithin(found.life, found.readAt, now) && (!renew || isWithin(renewEvery, found.tried, now)) {
		return found, nil // another caller has just read it
	}
	if ok {
		found.tried = now
	}
	text, life, err := s.fetch(ctx, address, s.most)
	if fault.Is(err, fault.Exhausted) && ok && !renew && isWithin(mostLife, found.readAt, now) {
		return found, nil // others ask for what is not there, and must not lock out who was here
	}
	if err != nil {
		return nil, err
	}
	value, err := s.parse(address, text)
	if err != nil {
		return nil, err
	}
	got := &kept[V]{value: value, readAt: now, life: life, tried: now}
	s.copies.Put(address, got, len(text)+copySize, now, s.bounds)
	return got, nil
}

// isWithin reports whether less than d has passed since at. It is false if the clock was set back before at.
func isWithin(d time.Duration, at, now time.Time) bool {
	passed := now.Sub(at)
	return passed >= 0 && passed < d
}
