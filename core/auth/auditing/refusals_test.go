package auditing_test

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

// countingThrottle counts tries by key, within a limit of auditing.MaxRefusals.
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
		Allowed: n <= auditing.MaxRefusals, Limit: auditing.MaxRefusals,
		Remaining: auditing.MaxRefusals - min(n, auditing.MaxRefusals),
		ResetAt:   time.Date(2026, time.November, 21, 13, 0, 0, 0, time.UTC),
	}, nil
}

func (*countingThrottle) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

// refusedSession is a session of a person at UNVERIFIED.
func refusedSession(user auth.UserID) auth.Session {
	return auth.Session{
		ID: "s", UserID: user, DeviceIdentity: "d", TrustLevel: auth.Unverified,
		IPAddress: netip.MustParseAddr("192.0.2.7"),
	}
}

// findRefusals returns the refusals in the log of a person, newest first.
func findRefusals(t *testing.T, trail *auditing.Trail, user auth.UserID) []audit.Event {
	t.Helper()
	page, err := trail.Search(t.Context(), user, auditing.Query{Category: audit.AccessRefused, Limit: auth.MaxPage})
	must.Succeed(t, err)
	return page.Events
}

// TestRefusalsAreRecorded checks which refusals leave an event (contract A-66), also for a caller
// who has gone.
func TestRefusalsAreRecorded(t *testing.T) {
	errForeign := fault.New(fault.Forbidden, "not yours").WithCode(auth.CodeAccessDenied)
	errLow := trust.Require(auth.Unverified, auth.FullTrust)
	gone, leave := context.WithCancel(t.Context())
	leave()
	lowTrust := func(operation string, err error) func(*auditing.Refusals) error {
		return func(r *auditing.Refusals) error { return r.LowTrust(gone, refusedSession("anna"), operation, err) }
	}
	notOwner := func(of auditing.Foreign, err error) func(*auditing.Refusals) error {
		return func(r *auditing.Refusals) error { return r.NotOwner(gone, refusedSession("anna"), of, err) }
	}
	for name, c := range map[string]struct {
		record func(*auditing.Refusals) error
		cause  error
		want   audit.Details // nil: no event
	}{
		"low trust": {
			lowTrust("PUT /x/:id", errLow), errLow,
			audit.Details{
				"reason": audit.Text("insufficient_trust"), "operation": audit.Text("PUT /x/:id"),
				"requiredTrustLevel": audit.Text("FULL_TRUST"),
			},
		},
		"another person's device": {
			notOwner(auditing.Foreign{Action: "revoke", Device: "b"}, errForeign), errForeign, audit.Details{
				"reason": audit.Text("access_denied"), "action": audit.Text("revoke"),
				"targetDeviceId": audit.Text("b"),
			},
		},
		"another person's session": {
			notOwner(auditing.Foreign{Action: "sign_out", Session: "b"}, errForeign), errForeign, audit.Details{
				"reason": audit.Text("access_denied"), "action": audit.Text("sign_out"),
				"targetSessionId": audit.Text("b"),
			},
		},
		"no refusal of this kind": {lowTrust("PUT /x", errForeign), errForeign, nil},
		"no refusal of ownership": {notOwner(auditing.Foreign{}, errLow), errLow, nil},
		"no error":                {lowTrust("GET /x", nil), nil, nil},
	} {
		trail, _ := newTrail()
		if err := c.record(auditing.NewRefusals(trail, &countingThrottle{tries: map[string]uint64{}})); !errors.Is(
			err, c.cause) {
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
		c.want["trustLevel"], c.want["sessionId"], c.want["deviceIdentity"], c.want["ipAddress"] = audit.Text(
			"UNVERIFIED"), audit.Text("s"), audit.Text("d"), audit.Text("192.0.2.7")
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
	refusals := auditing.NewRefusals(trail, &countingThrottle{tries: map[string]uint64{}})
	errLow := trust.Require(auth.Unverified, auth.FullTrust)
	for i := range 3 * auditing.MaxRefusals {
		if err := refusals.LowTrust(t.Context(), refusedSession("anna"), "GET /"+strconv.Itoa(i),
			errLow); !fault.Is(err, fault.Forbidden) {
			t.Fatalf("refusal %d: %v", i, err)
		}
	}
	if err := refusals.LowTrust(t.Context(), refusedSession("bert"), "GET /", errLow); !fault.Is(err, fault.Forbidden) {
		t.Error(err)
	}
	events := findRefusals(t, trail, "anna")
	if len(events) != auditing.MaxRefusals || len(findRefusals(t, trail, "bert")) != 1 {
		t.Fatalf("%d events, want %d, and one of another person", len(events), auditing.MaxRefusals)
	}
	said := map[string]int{}
	for i := range events {
		said[events[i].Details.Text("unrecordedUntil")]++
	}
	if said["2026-11-21T13:00:00Z"] != 1 || said[""] != auditing.MaxRefusals-1 {
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
		r := auditing.NewRefusals(trail, &countingThrottle{err: failure})
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
