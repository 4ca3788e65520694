package prometheus

import (
	"context"
	"errors"
	"maps"
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
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

func codedError(kind fault.Kind, code fault.Code) error { return fault.New(kind, "no").WithCode(code) }

var errDefect = errors.New("a defect")

func TestLoginOutcomes(t *testing.T) {
	s := NewSignIn(nil, everywhere(prometheus.NewRegistry()))
	for wanted, err := range map[string]error{
		"succeeded":           nil,
		"invalid_credentials": codedError(fault.Unauthenticated, auth.CodeInvalidCredentials),
		"invalid_mfa":         codedError(fault.Unauthenticated, auth.CodeInvalidMFA),
		"account_locked":      codedError(fault.Forbidden, auth.CodeAccountLocked),
		"unavailable":         errors.Join(codedError(fault.Unavailable, ""), errDefect),
		"failed":              errDefect,
	} {
		got := loginOutcome(signin.Result{}, err)
		if _, known := s.logins[got]; got != wanted || !known {
			t.Errorf("the outcome of %v is %s (known: %v), want %s", err, got, known, wanted)
		}
	}
	if got := loginOutcome(signin.Result{MFARequired: true}, nil); got != "mfa_required" {
		t.Errorf("the outcome of a login that needs a second factor is %s, want mfa_required", got)
	}
}

func TestRefreshOutcomes(t *testing.T) {
	s := NewSignIn(nil, everywhere(prometheus.NewRegistry()))
	for wanted, err := range map[string]error{
		"refreshed":   nil,
		"replayed":    codedError(fault.Forbidden, auth.CodeAccessDenied),
		"expired":     codedError(fault.Unauthenticated, auth.CodeTokenExpired),
		"invalid":     codedError(fault.Unauthenticated, auth.CodeInvalidToken),
		"unavailable": codedError(fault.Unavailable, ""),
		"failed":      errDefect,
	} {
		got := refreshOutcome(err)
		if _, known := s.refreshes[got]; got != wanted || !known {
			t.Errorf("the outcome of %v is %s (known: %v), want %s", err, got, known, wanted)
		}
	}
}

// TestPublications checks that each operation is counted. The publisher refuses every call because
// its writes are off.
func TestPublications(t *testing.T) {
	registry := prometheus.NewRegistry()
	p := NewPublisher(publishing.New(publishing.Config{WritesOff: true}, publishing.Ports{}), everywhere(registry))
	ctx := t.Context()
	for name, change := range map[string]func() error{
		"publish": func() error { _, err := p.Publish(ctx, authority.Caller{}, publishing.Request{}); return err },
		"replace": func() error {
			_, err := p.Replace(ctx, authority.Caller{}, publishing.Request{}, publishing.Target{})
			return err
		},
		"delete": func() error {
			_, err := p.Delete(ctx, authority.Caller{}, publishing.Request{}, publishing.Target{})
			return err
		},
		"tools": func() error {
			_, err := p.RecordTools(ctx, authority.Caller{}, nil, publishing.Target{})
			return err
		},
	} {
		if err := change(); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: error is %v, want fault.Unsupported", name, err)
		}
	}
	checkMetrics(t, registry, map[string]float64{
		"tollgate_publications_total publish unsupported": 1,
		"tollgate_publications_total replace unsupported": 1,
		"tollgate_publications_total delete unsupported":  1,
		"tollgate_publications_total tools unsupported":   1,
	})
}

func TestPublicationOutcomes(t *testing.T) {
	p := NewPublisher(nil, everywhere(prometheus.NewRegistry()))
	for wanted, err := range map[string]error{
		"done":            nil,
		"invalid":         codedError(fault.Invalid, ""),
		"unauthenticated": codedError(fault.Unauthenticated, ""),
		"forbidden":       codedError(fault.Forbidden, ""),
		"not_found":       codedError(fault.NotFound, ""),
		"conflict":        codedError(fault.Conflict, ""),
		"unsupported":     codedError(fault.Unsupported, ""),
		"unavailable":     codedError(fault.Unavailable, ""),
		"failed":          errDefect,
	} {
		got := publicationOutcome(err)
		for _, operation := range []string{"publish", "replace", "delete", "status"} {
			if _, known := p.outcomes[operation][got]; got != wanted || !known {
				t.Errorf("%s: the outcome of %v is %s (known: %v), want %s", operation, err, got, known, wanted)
			}
		}
	}
}

// fakeRegistries maps the identifier of a claim to the result of its check.
type fakeRegistries map[string]error

func (r fakeRegistries) Check(_ context.Context, c ownership.Claim) error { return r[c.Identifier] }

func (fakeRegistries) Types() []string { return []string{"conda", "npm"} }

func TestPackageChecks(t *testing.T) {
	registry := prometheus.NewRegistry()
	o := NewOwnership(fakeRegistries{
		"stolen": codedError(fault.Invalid, ownership.CodeNotOwned), "odd": codedError(fault.Unsupported, ""),
		"away": codedError(fault.Unavailable, ""), "broken": errDefect,
	}, []string{"npm", "oci", "pypi"}, registry)
	for _, claim := range []struct{ registryType, identifier string }{
		{"npm", "mine"}, {"npm", "mine"}, {"npm", "stolen"}, {"pypi", "away"}, {"oci", "broken"}, {"conda", "mine"},
		{"odd", "odd"}, {"made up", "odd"},
	} {
		err := o.Check(t.Context(), ownership.Claim{RegistryType: claim.registryType, Identifier: claim.identifier})
		if (err == nil) != (claim.identifier == "mine") {
			t.Errorf("Check of %v returns %v", claim, err)
		}
	}
	checkMetrics(t, registry, map[string]float64{
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
	checkMetrics(t, registry, map[string]float64{
		"tollgate_session_checks_total records": 1, "tollgate_session_checks_total copy": 2,
	})
}

// newReports returns a Reports of a service of which all parts run.
func newReports(r prometheus.Registerer) *Reports {
	return NewReports(everywhere(r))
}

func TestNotices(t *testing.T) {
	registry := prometheus.NewRegistry()
	n := newReports(registry)
	n.Report(notices.Sent{Kind: notices.Replay})
	n.Report(notices.Withheld{Kind: notices.NewDevice})
	n.Report(notices.Failed{Kind: notices.SignInLocked, Err: errDefect})
	n.Report(notices.Dropped{Count: 7})
	checkMetrics(t, registry, map[string]float64{
		"tollgate_notices_total sent": 1, "tollgate_notices_total withheld": 1,
		"tollgate_notices_total failed": 1, "tollgate_notices_total dropped": 7,
	})
}

func TestQueuedNotices(t *testing.T) {
	registry := prometheus.NewRegistry()
	notifier := notices.New("Tollgate", "", notices.Ports{})
	WatchNotices(notifier, registry)
	checkMetrics(t, registry, map[string]float64{})
	notifier.Notify(notices.Event{Kind: notices.Replay, UserID: "ada"})
	checkMetrics(t, registry, map[string]float64{"tollgate_notices_queued": 1})
	none := prometheus.NewRegistry()
	WatchNotices(nil, none)
	checkMetrics(t, none, map[string]float64{})
}

func TestRemovedRecords(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newReports(registry)
	r.Report(retention.Swept{
		Removed: []retention.Removed{{Kind: retention.Sessions, Count: 3}, {Kind: retention.AuditEvents, Count: 1000}},
	})
	r.Report(retention.Swept{Removed: []retention.Removed{{Kind: retention.Sessions, Count: 2}}})
	checkMetrics(t, registry, map[string]float64{
		"tollgate_records_removed_total sessions": 5, "tollgate_records_removed_total audit_events": 1000,
	})
}

func TestDeliveries(t *testing.T) {
	registry := prometheus.NewRegistry()
	d := newReports(registry)
	for state, n := range map[event.State]int{event.Delivered: 3, event.Pending: 2, event.Dead: 1} {
		for range n {
			d.Report(notifying.Attempted{Delivery: event.Delivery{State: state}})
		}
	}
	d.Report(notifying.Counted{Pending: 9, Dead: 9})
	d.Report(notifying.Counted{Pending: 5, Dead: 7})
	d.Report(notifying.DeliveryFailed{Err: errDefect})
	checkMetrics(t, registry, map[string]float64{
		"tollgate_webhook_attempts_total delivered": 3, "tollgate_webhook_attempts_total failed": 2,
		"tollgate_webhook_attempts_total dead": 1,
		"tollgate_webhook_events_pending":      5, "tollgate_webhook_events_dead": 7,
	})
}

func TestReviews(t *testing.T) {
	registry := prometheus.NewRegistry()
	v := newReports(registry)
	v.Report(reviewing.Counted{Pending: 9})
	v.Report(reviewing.Counted{Pending: 5})
	v.Report(reviewing.ReminderFailed{Err: errDefect})
	checkMetrics(t, registry, map[string]float64{"tollgate_reviews_pending": 5})
}

// TestZeros checks that every series with known labels exists, with the value 0, before the first
// event.
func TestZeros(t *testing.T) {
	registry := prometheus.NewRegistry()
	NewSignIn(nil, everywhere(registry))
	NewPublisher(nil, everywhere(registry))
	NewOwnership(fakeRegistries{}, []string{"a", "b", "c", "d", "e", "f"}, registry)
	NewSessionCache(nil, registry)
	newReports(registry)
	NewAudit(everywhere(registry))
	series := map[string]int{}
	for name := range allSamples(t, registry) {
		family, _, _ := strings.Cut(name, " ")
		series[family]++
	}
	wanted := map[string]int{
		"tollgate_logins_total": 7, "tollgate_token_refreshes_total": 6, "tollgate_publications_total": 5 * 12,
		"tollgate_package_checks_total": 7 * 5, "tollgate_session_checks_total": 2, "tollgate_notices_total": 4,
		"tollgate_records_removed_total": 14, "tollgate_sessions_started_total": 4, "tollgate_step_ups_total": 5 * 7,
		"tollgate_lockouts_total": 1, "tollgate_login_risk_score": 1, "tollgate_login_score": 2,
		"tollgate_login_score_difference":     1,
		"tollgate_login_history_silent_total": 3,
		"tollgate_webhook_attempts_total":     3, "tollgate_webhook_events_pending": 1,
		"tollgate_webhook_events_dead": 1,
		"tollgate_reviews_pending":     1, "tollgate_mirror_reads_total": 2, "tollgate_tools_asked_total": 4, "tollgate_tools_changed": 1,
	}
	if !maps.Equal(series, wanted) {
		t.Errorf("the number of series is %v, want %v", series, wanted)
	}
}

// everywhere returns one registerer for all parts.
func everywhere(r prometheus.Registerer) Registerers { return Registerers{r, r, r, r} }
