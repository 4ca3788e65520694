package publish_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
	"github.com/tollgate-dev/tollgate/core/registry/publish"
)

// ifText is the condition that the documents of what is there hold a text.
type ifText string

func (c ifText) HoldsFor(r registry.Record) bool {
	return strings.Contains(string(r.Document), string(c))
}

func (c ifText) HoldsForAll(histories ...browse.History) bool {
	for _, h := range histories {
		for _, r := range h.Records {
			if !c.HoldsFor(r) {
				return false
			}
		}
	}
	return len(histories) > 0
}

// conditional are the writes of a world that has version 1.0.0, each with a condition.
func conditional(t *testing.T, w *world) map[string]func(c publish.Condition, version string) error {
	t.Helper()
	with := func(body string, c publish.Condition) publish.Request {
		r := sent(body)
		r.Condition = c
		return r
	}
	return map[string]func(c publish.Condition, version string) error{
		"publish": func(c publish.Condition, version string) error {
			_, err := w.Publish(t.Context(), with(document(version), c))
			return err
		},
		"replace": func(c publish.Condition, version string) error {
			_, err := w.Replace(t.Context(), with(document(version, `"title":"new"`), c), at(version))
			return err
		},
		"status": func(c publish.Condition, version string) error {
			_, err := w.SetStatus(t.Context(), with(`{"status":"deprecated"}`, c), at(version))
			return err
		},
		"status of all": func(c publish.Condition, version string) error {
			name := serverName
			if version != "1.0.0" {
				name = "com.example/none"
			}
			_, err := w.SetStatusAll(t.Context(), with(`{"status":"deprecated"}`, c), name, nil)
			return err
		},
		"delete": func(c publish.Condition, version string) error {
			_, err := w.Delete(t.Context(), with("", c), at(version))
			return err
		},
	}
}

// TestConditions wants a write to change nothing whose condition does not hold, also when the
// transaction is repeated.
func TestConditions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"publish", "replace", "status", "status of all", "delete"} {
		w := newWorld(t, publish.Config{}, registry.ActionPublish, registry.ActionEdit)
		w.publishAll(t, "1.0.0")
		w.runner.twice = true
		write := conditional(t, w)[name]
		if err := write(ifText("another document"), "1.0.0"); !fault.Is(err, fault.Stale) {
			t.Errorf("%s: %v, want a fault of kind Stale", name, err)
		}
		if got, err := w.servers.Version(t.Context(), parsed(t).Name, parsed(t).Version, false); err != nil || got.Status != registry.StatusActive || string(got.Document) != document("1.0.0") {
			t.Errorf("%s: the version is %+v (%v)", name, got, err)
		}
		if n := len(w.ledger.acts); n != 1 || !strings.Contains(w.ledger.acts[0].Reason, "precondition") {
			t.Errorf("%s: the audit log holds %+v, want the refusal", name, w.ledger.acts)
		}
		wantKind := map[string]fault.Kind{"publish": fault.Conflict}
		if err := write(ifText(serverName), "1.0.0"); wantKind[name] != fault.KindOf(err) {
			t.Errorf("%s with a condition that holds: %v", name, err)
		}
		wantKind = map[string]fault.Kind{"replace": fault.NotFound, "status": fault.NotFound, "status of all": fault.NotFound, "delete": fault.NotFound}
		if err := write(ifText("another document"), "9.0.0"); wantKind[name] != fault.KindOf(err) {
			t.Errorf("%s of a version that is not there: %v", name, err)
		}
	}
}

// TestConditionsComeBeforeRules sends what breaks a rule too.
func TestConditionsComeBeforeRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, publish.Config{}, registry.ActionPublish, registry.ActionEdit)
	w.publishAll(t, "1.0.0")
	stale := func(body string) publish.Request {
		r := sent(body)
		r.Condition = ifText("another document")
		return r
	}
	broken := document("1.0.0", `"title":""`)
	_, published := w.Publish(t.Context(), stale(broken))
	_, replaced := w.Replace(t.Context(), stale(broken), at("1.0.0"))
	_, same := w.SetStatus(t.Context(), stale(`{"status":"active"}`), at("1.0.0"))
	_, missing := w.Replace(t.Context(), stale(document("9.0.0", `"title":""`)), at("9.0.0"))
	_, fresh := w.Publish(t.Context(), stale(document("2.0.0", `"title":""`)))
	_, malformed := w.SetStatus(t.Context(), stale(`{"status":"none"}`), at("1.0.0"))
	for name, c := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"publish": {published, fault.Stale}, "replace": {replaced, fault.Stale}, "status": {same, fault.Stale},
		"replace of none": {missing, fault.NotFound}, "publish of another": {fresh, fault.Invalid}, "status malformed": {malformed, fault.Invalid},
	} {
		if !fault.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %s", name, c.err, c.want)
		}
	}
}

// parsed returns version 1.0.0 of the server.
func parsed(t *testing.T) registry.Release {
	t.Helper()
	name, err := registry.ParseName(serverName)
	if err != nil {
		t.Fatal(err)
	}
	version, err := registry.ParseVersion("1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return registry.Release{Name: name, Version: version}
}
