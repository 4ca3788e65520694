package prometheus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publish"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

func coded(kind fault.Kind, code fault.Code) error { return fault.New(kind, code, "no") }

var errDefect = errors.New("a defect")

func TestLoginOutcomes(t *testing.T) {
	s := NewSignIn(nil, prometheus.NewRegistry())
	for wanted, err := range map[string]error{
		"succeeded":           nil,
		"invalid_credentials": coded(fault.Unauthenticated, auth.CodeInvalidCredentials),
		"invalid_mfa":         coded(fault.Unauthenticated, auth.CodeInvalidMFA),
		"account_locked":      coded(fault.Forbidden, auth.CodeAccountLocked),
		"unavailable":         errors.Join(coded(fault.Unavailable, ""), errDefect),
		"failed":              errDefect,
	} {
		got := loginOutcome(signin.Result{}, err)
		if _, known := s.logins[got]; got != wanted || !known {
			t.Errorf("%v is %s (known: %v), want %s", err, got, known, wanted)
		}
	}
	if got := loginOutcome(signin.Result{MFARequired: true}, nil); got != "mfa_required" {
		t.Errorf("a login that waits is %s", got)
	}
}

func TestRefreshOutcomes(t *testing.T) {
	s := NewSignIn(nil, prometheus.NewRegistry())
	for wanted, err := range map[string]error{
		"refreshed":   nil,
		"replayed":    coded(fault.Forbidden, auth.CodeAccessDenied),
		"expired":     coded(fault.Unauthenticated, auth.CodeTokenExpired),
		"invalid":     coded(fault.Unauthenticated, auth.CodeInvalidToken),
		"unavailable": coded(fault.Unavailable, ""),
		"failed":      errDefect,
	} {
		got := refreshOutcome(err)
		if _, known := s.refreshes[got]; got != wanted || !known {
			t.Errorf("%v is %s (known: %v), want %s", err, got, known, wanted)
		}
	}
}

// TestPublications uses a publisher whose writes are off, so that it refuses every call by itself.
func TestPublications(t *testing.T) {
	registry := prometheus.NewRegistry()
	p := NewPublisher(publish.New(publish.Config{WritesOff: true}, publish.Ports{}), registry)
	ctx := t.Context()
	for name, change := range map[string]func() error{
		"publish": func() error { _, err := p.Publish(ctx, publish.Request{}); return err },
		"replace": func() error { _, err := p.Replace(ctx, publish.Request{}, publish.Target{}); return err },
		"delete":  func() error { _, err := p.Delete(ctx, publish.Request{}, publish.Target{}); return err },
	} {
		if err := change(); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	want(t, registry, map[string]float64{
		"tollgate_publications_total publish unsupported": 1,
		"tollgate_publications_total replace unsupported": 1,
		"tollgate_publications_total delete unsupported":  1,
	})
}

func TestPublicationOutcomes(t *testing.T) {
	p := NewPublisher(nil, prometheus.NewRegistry())
	for wanted, err := range map[string]error{
		"done":            nil,
		"invalid":         coded(fault.Invalid, ""),
		"unauthenticated": coded(fault.Unauthenticated, ""),
		"forbidden":       coded(fault.Forbidden, ""),
		"not_found":       coded(fault.NotFound, ""),
		"conflict":        coded(fault.Conflict, ""),
		"unsupported":     coded(fault.Unsupported, ""),
		"unavailable":     coded(fault.Unavailable, ""),
		"failed":          errDefect,
	} {
		got := publicationOutcome(err)
		for _, operation := range []string{"publish", "replace", "delete", "status"} {
			if _, known := p.outcomes[operation][got]; got != wanted || !known {
				t.Errorf("%s: %v is %s (known: %v), want %s", operation, err, got, known, wanted)
			}
		}
	}
}

// registries answers claims by their identifier.
type registries map[string]error

func (r registries) Check(_ context.Context, c ownership.Claim) error { return r[c.Identifier] }

func (registries) Types() []string { return []string{"conda", "npm"} }

func TestPackageChecks(t *testing.T) {
	registry := prometheus.NewRegistry()
	o := NewOwnership(registries{
		"stolen": coded(fault.Invalid, ownership.CodeNotOwned), "odd": coded(fault.Unsupported, ""),
		"away": coded(fault.Unavailable, ""), "broken": errDefect,
	}, registry)
	for _, claim := range []struct{ registryType, identifier string }{
		{"npm", "mine"}, {"npm", "mine"}, {"npm", "stolen"}, {"pypi", "away"}, {"oci", "broken"}, {"conda", "mine"},
		{"odd", "odd"}, {"made up", "odd"},
	} {
		err := o.Check(t.Context(), ownership.Claim{RegistryType: claim.registryType, Identifier: claim.identifier})
		if (err == nil) != (claim.identifier == "mine") {
			t.Errorf("%v: %v", claim, err)
		}
	}
	want(t, registry, map[string]float64{
		"tollgate_package_checks_total owned npm":         2,
		"tollgate_package_checks_total refused npm":       1,
		"tollgate_package_checks_total unavailable pypi":  1,
		"tollgate_package_checks_total failed oci":        1,
		"tollgate_package_checks_total owned conda":       1,
		"tollgate_package_checks_total unsupported other": 2,
	})
}

func TestSessionChecks(t *testing.T) {
	registry, clock := prometheus.NewRegistry(), system.Clock{}
	c := NewSessionCache(memory.NewSessions(clock, memory.Config{MaxSessions: 10}), registry)
	c.Get(t.Context(), "a")
	c.Put(t.Context(), auth.Session{ID: "a", ExpiresAt: clock.Now().Add(time.Hour)}, clock.Now())
	c.Get(t.Context(), "a")
	c.Get(t.Context(), "a")
	want(t, registry, map[string]float64{"tollgate_session_checks_total records": 1, "tollgate_session_checks_total copy": 2})
}

// journal keeps what it is told.
type journal []string

func (j *journal) Sent(k notices.Kind)            { *j = append(*j, "sent "+string(k)) }
func (j *journal) Withheld(k notices.Kind)        { *j = append(*j, "withheld "+string(k)) }
func (j *journal) Failed(k notices.Kind, e error) { *j = append(*j, "failed "+string(k)+" "+e.Error()) }
func (j *journal) Dropped(uint64)                 { *j = append(*j, "dropped") }

func TestNotices(t *testing.T) {
	registry, told := prometheus.NewRegistry(), &journal{}
	n := NewNotices(told, registry)
	n.Sent(notices.Replay)
	n.Withheld(notices.NewDevice)
	n.Failed(notices.SignInLocked, errDefect)
	n.Dropped(7)
	want(t, registry, map[string]float64{
		"tollgate_notices_total sent": 1, "tollgate_notices_total withheld": 1,
		"tollgate_notices_total failed": 1, "tollgate_notices_total dropped": 7,
	})
	if !slices.Equal(*told, []string{"sent replay", "withheld new_device", "failed sign_in_locked a defect", "dropped"}) {
		t.Errorf("passed on: %q", *told)
	}
}

func TestQueuedNotices(t *testing.T) {
	registry := prometheus.NewRegistry()
	notifier := notices.New("Tollgate", notices.Ports{})
	WatchNotices(notifier, registry)
	want(t, registry, map[string]float64{})
	notifier.Notify(notices.Event{Kind: notices.Replay})
	want(t, registry, map[string]float64{"tollgate_notices_queued": 1})
	none := prometheus.NewRegistry()
	WatchNotices(nil, none)
	want(t, none, map[string]float64{})
}

// ignoredSweeps ignores what sweeps report.
type ignoredSweeps struct{}

func (ignoredSweeps) Removed([]retention.Removed) {}

func (ignoredSweeps) Failed(error) {}

func TestRemovedRecords(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := NewRetention(ignoredSweeps{}, registry)
	r.Removed([]retention.Removed{{Kind: retention.Sessions, Count: 3}, {Kind: retention.AuditEvents, Count: 1000}})
	r.Removed([]retention.Removed{{Kind: retention.Sessions, Count: 2}})
	want(t, registry, map[string]float64{
		"tollgate_records_removed_total sessions": 5, "tollgate_records_removed_total audit_events": 1000,
	})
}

// TestZeros wants everything that is known ahead to be there before it happens.
func TestZeros(t *testing.T) {
	registry := prometheus.NewRegistry()
	NewSignIn(nil, registry)
	NewPublisher(nil, registry)
	NewOwnership(registries{}, registry)
	NewSessionCache(nil, registry)
	NewNotices(nil, registry)
	NewRetention(nil, registry)
	NewAudit(registry)
	series := map[string]int{}
	for name := range samples(t, registry) {
		family, _, _ := strings.Cut(name, " ")
		series[family]++
	}
	wanted := map[string]int{
		"tollgate_logins_total": 7, "tollgate_token_refreshes_total": 6, "tollgate_publications_total": 4 * 10,
		"tollgate_package_checks_total": 7 * 5, "tollgate_session_checks_total": 2, "tollgate_notices_total": 4,
		"tollgate_records_removed_total": 7, "tollgate_sessions_started_total": 4, "tollgate_step_ups_total": 3 * 7,
		"tollgate_lockouts_total": 1, "tollgate_login_risk_score": 1,
	}
	if !maps.Equal(series, wanted) {
		t.Errorf("there are %v, want %v", series, wanted)
	}
}
