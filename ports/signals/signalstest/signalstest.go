// Package signalstest has the contract tests of ports/signals. Every adapter of the port runs them
// on the same addresses. How an adapter reads its data is tested in the adapter.
package signalstest

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// Places are the locations that a geography must return.
type Places map[netip.Prefix]risk.Location

// Geography runs the suite. open returns a geography that knows the places and nothing else.
func Geography(t *testing.T, open func(t *testing.T, p Places) signals.Geography) {
	berlin := &risk.Coordinates{Latitude: 52.52, Longitude: 13.405}
	zero := &risk.Coordinates{} // a place in the sea, not a missing one
	g := open(t, Places{
		netip.MustParsePrefix("203.0.113.0/24"):   {State: risk.Known, Country: "DE", Coordinates: berlin},
		netip.MustParsePrefix("203.0.113.128/25"): {State: risk.Known, Country: "FR"},
		netip.MustParsePrefix("198.51.100.7/32"):  {State: risk.Known, Country: "JP", Coordinates: zero},
		netip.MustParsePrefix("2001:db8::/32"):    {State: risk.Known, Country: "BR", Coordinates: berlin},
	})
	cases := map[string]risk.Location{
		"203.0.113.1":        {State: risk.Known, Country: "DE", Coordinates: berlin},
		"::ffff:203.0.113.1": {State: risk.Known, Country: "DE", Coordinates: berlin},
		"203.0.113.200":      {State: risk.Known, Country: "FR"},
		"198.51.100.7":       {State: risk.Known, Country: "JP", Coordinates: zero},
		"198.51.100.8":       {State: risk.Unanswered},
		"2001:db8:9::1":      {State: risk.Known, Country: "BR", Coordinates: berlin},
		"2001:db9::1":        {State: risk.Unanswered},
		"fe80::1%eth0":       {State: risk.Unanswered},
		"10.0.0.1":           {State: risk.Unanswered},
	}
	for address, want := range cases {
		if got := g.Locate(context.Background(), netip.MustParseAddr(address)); !sameLocation(got, want) {
			t.Errorf("%s is at %+v, want %+v", address, got, want)
		}
	}
	if got := g.Locate(context.Background(), netip.Addr{}); got.State != risk.Unanswered {
		t.Errorf("no address at all: %+v, want no answer", got)
	}
	inParallel(func() {
		for address, want := range cases {
			if got := g.Locate(context.Background(), netip.MustParseAddr(address)); !sameLocation(got, want) {
				t.Errorf("in parallel, %s is at %+v, want %+v", address, got, want)
			}
		}
	})
}

func sameLocation(a, b risk.Location) bool {
	at := func(l risk.Location) risk.Coordinates {
		if l.Coordinates == nil {
			return risk.Coordinates{Latitude: 999}
		}
		return *l.Coordinates
	}
	return a.State == b.State && a.Country == b.Country && at(a) == at(b)
}

// Ratings are what a reputation is to know: the networks of each class.
type Ratings map[risk.AddressClass][]string

// Reputation runs the suite. open returns a reputation that knows the ratings and nothing else.
func Reputation(t *testing.T, open func(t *testing.T, r Ratings) signals.Reputation) {
	r := open(t, Ratings{
		risk.Listed:  {"203.0.113.0/24", "2001:db8::/32"},
		risk.Tor:     {"203.0.113.7", "198.51.100.7"},
		risk.Proxy:   {"198.51.100.0/25"},
		risk.Hosting: {"198.51.100.0/24", "2001:db9::1"},
	})
	cases := map[string]risk.AddressClass{
		"203.0.113.9":          risk.Listed,
		"203.0.113.7":          risk.Listed, // the worst class, not that of the narrowest network
		"::ffff:203.0.113.9":   risk.Listed,
		"198.51.100.7":         risk.Tor,
		"198.51.100.8":         risk.Proxy,
		"198.51.100.200":       risk.Hosting,
		"198.51.101.1":         risk.Clean,
		"2001:db8:ffff::1":     risk.Listed,
		"2001:db8:ffff::1%en0": risk.Listed,
		"2001:db9::1":          risk.Hosting,
		"2001:db9::2":          risk.Clean,
	}
	for address, want := range cases {
		if got := r.Rate(context.Background(), netip.MustParseAddr(address)); got != (risk.Reputation{
			State: risk.Known, Class: want,
		}) {
			t.Errorf("%s is %+v, want class %d", address, got, want)
		}
	}
	if got := r.Rate(context.Background(), netip.Addr{}); got.State != risk.Unanswered {
		t.Errorf("no address at all: %+v, want no answer", got)
	}
	inParallel(func() {
		for address, want := range cases {
			if got := r.Rate(context.Background(), netip.MustParseAddr(address)); got.Class != want {
				t.Errorf("in parallel, %s is %+v, want class %d", address, got, want)
			}
		}
	})
}

func inParallel(do func()) {
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(do)
	}
	wait.Wait()
}
