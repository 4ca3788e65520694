package audit_test

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// countingThrottle counts tries by key, within a limit of audit.MaxRefusals.
type countingThrottle struct {
	tries map[string]uint64
	err   error
}

func (c *countingThrottle) Try(ctx context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	if c.err != nil || ctx.Err() != nil {
		return throttle.Verdict{}, errors.Join(c.err, ctx.Err())
	}
	c.tries[string(scope)+" "+key]++
	n := c.tries[string(scope)+" "+key]
	return throttle.Verdict{
		Allowed: n <= audit.MaxRefusals, Limit: audit.MaxRefusals, Remaining: audit.MaxRefusals - min(n, audit.MaxRefusals),
		ResetAt: time.Date(2026, time.November, 21, 13, 0, 0, 0, time.UTC),
	}, nil
}

func (*countingThrottle) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

// refusedSession is a session of a person at UNVERIFIED.
func refusedSession(user auth.UserID) auth.Session {
	return auth.Session{
		ID: "s", UserID: user, DeviceIdentity: "d", TrustLevel: auth.Unverified, IPAddress: netip.MustParseAddr("192.0.2.7"),
	}
}

// findRefusals returns the refusals in the log of a person, newest first.
func findRefusals(t *testing.T, trail *audit.Trail, user auth.UserID) []auth.Event {
	t.Helper()
	page, err := trail.Search(t.Context(), user, audit.Query{Type: auth.AccessRefused, Limit: auth.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return page.Events
}

// TestRefusalsAreRecorded checks which refusals leave an event (contract A-66), also for a caller who
// has gone.
func TestRefusalsAreRecorded(t *testing.T) {
	errForeign := fault.New(fault.Forbidden, "not yours").WithCode(auth.CodeAccessDenied)
	errLow := trust.Require(auth.Unverified, auth.FullTrust)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, c := range map[string]struct {
		record func(*audit.Refusals) error
		cause  error
		want   map[string]any // nil: no event
	}{
		"low trust": {
			func(r *audit.Refusals) error { return r.LowTrust(gone, refusedSession("anna"), "PUT /x/:id", errLow) }, errLow,
			map[string]any{"reason": "insufficient_trust", "operation": "PUT /x/:id", "requiredTrustLevel": "FULL_TRUST"},
		},
		"another person's device": {
			func(r *audit.Refusals) error {
				return r.NotOwner(gone, refusedSession("anna"), audit.Foreign{Action: "revoke", Device: "b"}, errForeign)
			}, errForeign, map[string]any{"reason": "access_denied", "action": "revoke", "targetDeviceId": "b"},
		},
		"another person's session": {
			func(r *audit.Refusals) error {
				return r.NotOwner(gone, refusedSession("anna"), audit.Foreign{Action: "sign_out", Session: "b"}, errForeign)
			}, errForeign, map[string]any{"reason": "access_denied", "action": "sign_out", "targetSessionId": "b"},
		},
		"no refusal of this kind": {
			func(r *audit.Refusals) error { return r.LowTrust(gone, refusedSession("anna"), "PUT /x", errForeign) }, errForeign, nil,
		},
		"no refusal of ownership": {
			func(r *audit.Refusals) error {
				return r.NotOwner(gone, refusedSession("anna"), audit.Foreign{}, errLow)
			}, errLow, nil,
		},
		"no error": {func(r *audit.Refusals) error { return r.LowTrust(gone, refusedSession("anna"), "GET /x", nil) }, nil, nil},
	} {
		trail, _ := newTrail()
		if err := c.record(audit.NewRefusals(trail, &countingThrottle{tries: map[string]uint64{}})); !errors.Is(err, c.cause) {
			t.Errorf("%s: %v, want the cause", name, err)
		}
		if err := c.record(nil); !errors.Is(err, c.cause) {
			t.Errorf("%s without a log: %v, want the cause", name, err)
		}
		events := findRefusals(t, trail, "anna")
		if c.want == nil {
			if len(events) != 0 {
				t.Errorf("%s: %+v, want no event", name, events)
			}
			continue
		}
		if len(events) != 1 || events[0].Success {
			t.Fatalf("%s: %+v, want one event without success", name, events)
		}
		c.want["trustLevel"], c.want["sessionId"], c.want["deviceIdentity"], c.want["ipAddress"] = "UNVERIFIED", "s", "d", "192.0.2.7"
		for field, want := range c.want {
			if got := events[0].Details[field]; got != want {
				t.Errorf("%s: %s is %v, want %v", name, field, got, want)
			}
		}
		if len(events[0].Details) != len(c.want) {
			t.Errorf("%s: the details are %v", name, events[0].Details)
		}
	}
}

// TestRefusalsAreBounded checks that each person has a count of their own, and that the last event
// says until when no more are recorded.
func TestRefusalsAreBounded(t *testing.T) {
	trail, _ := newTrail()
	refusals := audit.NewRefusals(trail, &countingThrottle{tries: map[string]uint64{}})
	errLow := trust.Require(auth.Unverified, auth.FullTrust)
	for i := range 3 * audit.MaxRefusals {
		if err := refusals.LowTrust(t.Context(), refusedSession("anna"), "GET /"+strconv.Itoa(i), errLow); !fault.Is(err, fault.Forbidden) {
			t.Fatalf("refusal %d: %v", i, err)
		}
	}
	if err := refusals.LowTrust(t.Context(), refusedSession("bert"), "GET /", errLow); !fault.Is(err, fault.Forbidden) {
		t.Error(err)
	}
	events := findRefusals(t, trail, "anna")
	if len(events) != audit.MaxRefusals || len(findRefusals(t, trail, "bert")) != 1 {
		t.Fatalf("%d events, want %d, and one of another person", len(events), audit.MaxRefusals)
	}
	said := map[any]int{}
	for i := range events {
		said[events[i].Details["unrecordedUntil"]]++
	}
	if said["2026-11-21T13:00:00Z"] != 1 || said[nil] != audit.MaxRefusals-1 {
		t.Errorf("the events say %v, want one of them the end of the window", said)
	}
}

// TestRefusalsThatCannotBeRecorded checks that a store that is away does not change the refusal.
func TestRefusalsThatCannotBeRecorded(t *testing.T) {
	trail, _ := newTrail()
	errLow := trust.Require(auth.Unverified, auth.FullTrust)
	for failure, want := range map[error]error{
		fault.New(fault.Unavailable, "away"): errLow,
		errors.New("broken"):                 nil, // its own error
	} {
		r := audit.NewRefusals(trail, &countingThrottle{err: failure})
		err := r.LowTrust(t.Context(), refusedSession("anna"), "GET /", errLow)
		if want == nil {
			want = failure
		}
		if !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", failure, err, want)
		}
	}
	if n := len(findRefusals(t, trail, "anna")); n != 0 {
		t.Errorf("%d events", n)
	}
}
