package notifying_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestAdd checks that a webhook is stored with its secret sealed for it alone, and that the audit
// log has only the host of its URL (contract C-51 and C-57).
func TestAdd(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	w, secret := fx.mustAdd(draft("com.example/*", "status", "published"))
	if opened, err := fx.sealer.Open(w.Secret,
		notifying.SealedSecret(w.ID)); err != nil || event.Secret(opened) != secret || len(opened) != 44 {
		t.Errorf("the sealed secret opens to %q, %v, and the secret of 256 bits is %q", opened, err, string(secret))
	}
	other, second := fx.mustAdd(draft("", "approved"))
	if other.ID == w.ID || second == secret || len(w.ID) != 36 {
		t.Errorf("two webhooks have the IDs %s and %s, and the secrets %q and %q", w.ID, other.ID, string(secret),
			string(second))
	}
	if _, err := fx.sealer.Open(w.Secret, notifying.SealedSecret(other.ID)); err == nil {
		t.Error("the secret of a webhook opens for another one")
	}
	listed, err := fx.List(t.Context())
	if err != nil || len(listed) != 2 {
		t.Fatalf("List = %+v, %v", listed, err)
	}
	for _, l := range listed {
		if l.ID != w.ID {
			continue
		}
		if l.URL.String() != "https://example.com/secret-path" || l.Pattern.String() != "com.example/*" ||
			!l.CreatedAt.Equal(kept) ||
			fmt.Sprint(l.Events) != "[published status]" || string(l.Secret) != string(w.Secret) {
			t.Errorf("the stored webhook is %+v", l.Webhook)
		}
	}
	fx.wantAudit(
		newWebhookChange("webhook_add", w.ID, ""),
		newWebhookChange("webhook_add", other.ID, ""),
	)
}

// TestAddRefuses checks that a wrong parameter, an address to which nothing is sent, a secret that
// cannot be sealed and an audit log that fails leave no webhook.
func TestAddRefuses(t *testing.T) {
	t.Parallel()
	private := fault.New(fault.Invalid, "url is a private address")
	defect := errors.New("defect")
	for name, c := range map[string]struct {
		draft event.Draft
		setUp func(*fixture)
		want  error // that is returned; nil for a fault of the kind Invalid
	}{
		"a wrong event":     {draft("", "deleted"), func(*fixture) {}, nil},
		"no event":          {draft(""), func(*fixture) {}, nil},
		"a private address": {draft("", "status"), func(fx *fixture) { fx.sender.refuses = private }, private},
		"no seal":           {draft("", "status"), func(fx *fixture) { fx.sealer.fails = defect }, defect},
		"no audit log":      {draft("", "status"), func(fx *fixture) { fx.audit.fails = errAway }, errAway},
	} {
		fx := newFixture(t)
		c.setUp(fx)
		w, secret, err := fx.Add(t.Context(), c.draft)
		if c.want != nil && !errors.Is(err, c.want) || c.want == nil && !fault.Is(err, fault.Invalid) ||
			w.ID != "" || secret != "" {
			t.Errorf("%s: Add = %+v, %q, %v", name, w, string(secret), err)
		}
		if listed, err := fx.List(t.Context()); err != nil || len(listed) != 0 {
			t.Errorf("%s: List = %+v, %v", name, listed, err)
		}
	}
}

func TestAddAtMost(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	var last event.Webhook
	for range event.MaxWebhooks {
		last, _ = fx.mustAdd(draft("", "status"))
	}
	recorded := len(fx.audit.changes)
	if _, _, err := fx.Add(t.Context(), draft("", "status")); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "50") {
		t.Errorf("one more than %d webhooks: %v", event.MaxWebhooks, err)
	}
	if len(fx.audit.changes) != recorded {
		t.Errorf("the audit log has a refused webhook: %+v", fx.audit.changes[recorded:])
	}
	must.Succeed(t, fx.Remove(t.Context(), last.ID, nil))
	fx.mustAdd(draft("", "status"))
}

// TestList checks that webhooks are listed in the order in which they were added, each with its own
// condition.
func TestList(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	first, _ := fx.mustAdd(draft("com.example/*", "published"))
	fx.clock.Advance(time.Minute)
	second, _ := fx.mustAdd(draft("", "published"))
	for _, name := range []string{"com.example/a", "com.other/b"} {
		must.Succeed(t, fx.RecordVersions(t.Context(), event.Published, newRecord(t, name, "1.0.0")))
	}
	fx.clock.Advance(time.Minute)
	fx.fail(second.ID)
	listed, err := fx.List(t.Context())
	if err != nil || len(listed) != 2 || listed[0].ID != first.ID || listed[1].ID != second.ID {
		t.Fatalf("List = %+v, %v, want the oldest first", listed, err)
	}
	if c := listed[0].Condition; c.Pending != 1 || c.Dead != 0 || !c.LastFailure.IsZero() {
		t.Errorf("the first webhook has %+v", c)
	}
	if c := listed[1].Condition; c.Pending != 0 || c.Dead != 2 || c.LastProblem != "it is away" || len(c.Newest) != 2 {
		t.Errorf("the second webhook has %+v", c)
	}
}

// fail gives the deliveries to a webhook up.
func (fx *fixture) fail(id event.WebhookID) []event.Delivery {
	fx.t.Helper()
	due := fx.due(id)
	for _, d := range due {
		must.Succeed(fx.t, fx.deliveries.Update(fx.t.Context(),
			d.Fail(event.Schedule{First: time.Second}, "it is away", fx.clock.Now()), fx.clock.Now()))
	}
	return due
}

// TestTest checks that an event of the type test is sent once and at once, signed with the secret
// of the webhook, and that its answer is kept; it is neither delivered again nor in the audit log
// (contract C-57).
func TestTest(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	w, secret := fx.mustAdd(draft("com.example/*", "status"))
	fx.audit.changes = nil
	fx.sender.status = 418
	status, err := fx.Test(t.Context(), w.ID)
	if status != 418 || err != nil || len(fx.sender.sent) != 1 {
		t.Fatalf("Test = %d, %v after %d requests", status, err, len(fx.sender.sent))
	}
	sent := fx.sender.sent[0]
	if sent.URL != w.URL || sent.Signature != event.Sign(secret, kept, sent.Body) {
		t.Errorf("the request is %+v", sent)
	}
	if body := string(sent.Body); !strings.HasPrefix(body, "test @ ") ||
		!strings.HasSuffix(body, " 2026-11-23T11:00:00.123456Z") {
		t.Errorf("the body is %s", body)
	}
	if got := fx.due(w.ID); len(got) != 0 {
		t.Errorf("the test was stored: %+v", got)
	}
	fx.wantAudit()

	fx.sender.fails = errAway
	if _, err := fx.Test(t.Context(), w.ID); !errors.Is(err, errAway) || len(fx.sender.sent) != 2 {
		t.Errorf("without a response: %v after %d requests", err, len(fx.sender.sent))
	}
	if got, err := fx.History(t.Context(), w.ID); err != nil || len(got) != 2 || got[0].Problem != "the database is away" ||
		got[0].State != event.Dead || got[1].Last.Status != 418 || got[1].Type != event.Test {
		t.Errorf("History = %+v, %v", got, err)
	}
	fx.encoder.fails = errors.New("no JSON")
	if _, err := fx.Test(t.Context(), w.ID); !errors.Is(err, fx.encoder.fails) {
		t.Errorf("an event that cannot be written: %v", err)
	}
	fx.sealer.fails = errors.New("another root secret")
	if _, err := fx.Test(t.Context(), w.ID); !errors.Is(err, fx.sealer.fails) ||
		!strings.Contains(err.Error(), string(w.ID)) {
		t.Errorf("a secret that cannot be opened: %v, want an error with the ID of the webhook", err)
	}
	if len(fx.sender.sent) != 2 {
		t.Errorf("%d requests were sent, want 2", len(fx.sender.sent))
	}
}

func TestMissingWebhook(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.mustAdd(draft("", "status"))
	fx.audit.changes = nil
	_, tested := fx.Test(t.Context(), "missing")
	_, again := fx.Redeliver(t.Context(), "missing", "")
	for what, err := range map[string]error{
		"Test": tested, "Redeliver": again, "Remove": fx.Remove(t.Context(), "missing", nil),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s of a webhook that is not there: %v", what, err)
		}
	}
	if len(fx.sender.sent) != 0 {
		t.Errorf("requests were sent: %+v", fx.sender.sent)
	}
	fx.wantAudit()
}

// TestRemove checks that a webhook goes with what was not delivered to it, or stays if the audit
// log cannot be written.
func TestRemove(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	w, _ := fx.mustAdd(draft("", "published"))
	other, _ := fx.mustAdd(draft("", "published"))
	must.Succeed(t, fx.RecordVersions(t.Context(), event.Published, newRecord(t, "com.example/a", "1.0.0")))
	fx.audit.fails = errAway
	if err := fx.Remove(t.Context(), w.ID, nil); !errors.Is(err, errAway) || len(fx.due(w.ID)) != 1 {
		t.Errorf("without the audit log: %v, and %+v waits", err, fx.due(w.ID))
	}
	fx.audit.changes, fx.audit.fails = nil, nil
	must.Succeed(t, fx.Remove(t.Context(), w.ID, nil))
	if listed, err := fx.List(t.Context()); err != nil || len(listed) != 1 || listed[0].ID != other.ID {
		t.Errorf("List = %+v, %v", listed, err)
	}
	if removed, kept := fx.due(w.ID), fx.due(other.ID); len(removed) != 0 || len(kept) != 1 {
		t.Errorf("deliveries to the removed webhook: %+v, to the other one: %+v", removed, kept)
	}
	fx.wantAudit(newWebhookChange("webhook_remove", w.ID, ""))
}

// TestRedeliver checks that all dead deliveries of a webhook, or any one, are sent again, from now
// on, and that only this is in the audit log (contract C-56 and C-57).
func TestRedeliver(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	w, _ := fx.mustAdd(draft("", "published"))
	other, _ := fx.mustAdd(draft("", "published"))
	fx.audit.changes = nil
	for _, name := range []string{"com.example/a", "com.example/b"} {
		must.Succeed(t, fx.RecordVersions(t.Context(), event.Published, newRecord(t, name, "1.0.0")))
	}
	fx.clock.Advance(time.Minute)
	dead := fx.fail(w.ID)
	fx.fail(other.ID)
	if n, err := fx.Redeliver(t.Context(), w.ID, dead[0].Event); n != 1 || err != nil {
		t.Errorf("Redeliver of one event = %d, %v", n, err)
	}
	if due := fx.due(w.ID); len(due) != 1 || due[0].Event != dead[0].Event ||
		!due[0].Since.Equal(kept.Add(time.Minute)) || due[0].Attempts != 0 {
		t.Errorf("after one event, %+v waits", due)
	}
	if n, err := fx.Redeliver(t.Context(), w.ID, ""); n != 1 || err != nil || len(fx.due(w.ID)) != 2 {
		t.Errorf("Redeliver of all dead = %d, %v, and %+v waits", n, err, fx.due(w.ID))
	}
	if n, err := fx.Redeliver(t.Context(), w.ID, ""); n != 0 || err != nil {
		t.Errorf("Redeliver without dead ones = %d, %v", n, err)
	}
	if _, err := fx.Redeliver(t.Context(), w.ID, "missing"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Redeliver of an event that is not kept: %v", err)
	}
	if got := fx.due(other.ID); len(got) != 0 {
		t.Errorf("another webhook gets %+v again", got)
	}
	redelivered := newWebhookChange("webhook_redeliver", w.ID, "")
	fx.wantAudit(newWebhookChange("webhook_redeliver", w.ID, dead[0].Event), redelivered, redelivered)
}

// TestChange checks that a webhook keeps its secret, and that a change shows no address.
func TestChange(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	w, _ := fx.mustAdd(draft("", "published"))
	fx.audit.changes = nil
	moved := func(d event.Draft) event.Draft {
		d.URL, d.Events = "https://example.com/other", []string{"status"}
		return d
	}
	for range 2 {
		got, err := fx.Change(t.Context(), w.ID, moved, nil)
		if err != nil || got.ID != w.ID || string(got.Secret) != string(w.Secret) ||
			got.URL.String() != "https://example.com/other" {
			t.Errorf("the webhook is %+v, %v", got, err)
		}
	}
	want := newWebhookChange("webhook_change", w.ID, "")
	want.Details["changes"] = audit.Details{
		"secret": audit.Text("changed"), "events": audit.List{audit.Texts([]string{"published"}), audit.Texts([]string{"status"})},
	}
	fx.wantAudit(want)
	fx.sender.refuses = fault.New(fault.Invalid, "url is a private address")
	if _, err := fx.Change(t.Context(), w.ID, moved, nil); err != nil {
		t.Errorf("the same URL is checked again: %v", err)
	}
	away := func(d event.Draft) event.Draft { d.URL = "https://example.com/third"; return d }
	if _, err := fx.Change(t.Context(), w.ID, away, nil); !errors.Is(err, fx.sender.refuses) {
		t.Errorf("a URL that is refused: %v", err)
	}
	fx.sender.refuses = nil
	refusal := fault.New(fault.Stale, "changed")
	refuse := func(*event.Webhook) error { return refusal }
	if _, err := fx.Change(t.Context(), w.ID, moved, refuse); !errors.Is(err, refusal) {
		t.Errorf("a refused change: %v", err)
	}
	if err := fx.Remove(t.Context(), w.ID, refuse); !errors.Is(err, refusal) {
		t.Errorf("a refused removal: %v", err)
	}
	if _, err := fx.Change(t.Context(), "missing", moved, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("a webhook that is not there: %v", err)
	}
}

// newWebhookChange returns the audit event of a webhook at example.com; of is the event that is
// delivered again.
func newWebhookChange(action audit.Action, id event.WebhookID, of event.ID) audit.Change {
	c := audit.Change{Category: audit.RegistryChange, Action: action, ByOperator: true, Details: audit.Details{
		"webhook": audit.Text(id), "host": audit.Text("example.com"),
	}}
	c.Details.Set("event", string(of))
	c.Details["kind"], c.Details["key"] = audit.Text("webhook"), audit.Text(id)
	return c
}
