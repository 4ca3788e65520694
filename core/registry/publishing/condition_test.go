package publishing_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/test/must"
)

// ifContains is the condition that the stored documents contain a text.
type ifContains string

func (c ifContains) HoldsFor(r registry.Record) bool {
	return strings.Contains(string(r.Document), string(c))
}

func (c ifContains) HoldsForAll(histories ...history.History) bool {
	for _, h := range histories {
		for _, r := range h.Records {
			if !c.HoldsFor(r) {
				return false
			}
		}
	}
	return len(histories) > 0
}

// conditionalWrites are the changes of a fixture that has version 1.0.0, each with a condition.
func conditionalWrites(t *testing.T, w *fixture) map[string]func(c publishing.Condition, version string) error {
	t.Helper()
	with := func(body string, c publishing.Condition) request {
		r := newRequest(body)
		r.Condition = c
		return r
	}
	return map[string]func(c publishing.Condition, version string) error{
		"publish": func(c publishing.Condition, version string) error {
			_, err := w.Publish(t.Context(), with(document(version), c))
			return err
		},
		"replace": func(c publishing.Condition, version string) error {
			_, err := w.Replace(t.Context(), with(document(version, `"title":"new"`), c), newTarget(version))
			return err
		},
		"status": func(c publishing.Condition, version string) error {
			_, err := w.SetStatus(t.Context(), with(`{"status":"deprecated"}`, c), newTarget(version))
			return err
		},
		"status of all": func(c publishing.Condition, version string) error {
			name := serverName
			if version != "1.0.0" {
				name = "com.example/none"
			}
			_, err := w.SetStatusAll(t.Context(), with(`{"status":"deprecated"}`, c), name, nil)
			return err
		},
		"delete": func(c publishing.Condition, version string) error {
			_, err := w.Delete(t.Context(), with("", c), newTarget(version))
			return err
		},
	}
}

// TestConditions wants a change to do nothing when its condition does not hold, also when the
// transaction is repeated.
func TestConditions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"publish", "replace", "status", "status of all", "delete"} {
		w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
		w.publishAll(t, "1.0.0")
		w.runner.twice = true
		write := conditionalWrites(t, w)[name]
		wantFault(t, write(ifContains("another document"), "1.0.0"), fault.Stale, "%s", name)
		if got, err := w.servers.Version(t.Context(), firstRelease(t).Name, firstRelease(t).Version,
			false); err != nil || got.Status != registry.StatusActive || string(got.Document) != document("1.0.0") {
			t.Errorf("%s: the version is %+v (%v)", name, got, err)
		}
		if n := len(w.authority.acts); n != 1 ||
			!strings.Contains(w.authority.acts[0].Reason, "precondition in If-Match") {
			t.Errorf("%s: the audit log holds %+v, want the refusal", name, w.authority.acts)
		}
		wantKind := map[string]fault.Kind{"publish": fault.Conflict}
		if err := write(ifContains(serverName), "1.0.0"); wantKind[name] != fault.KindOf(err) {
			t.Errorf("%s with a condition that holds: %v", name, err)
		}
		wantKind = map[string]fault.Kind{
			"replace": fault.NotFound, "status": fault.NotFound, "status of all": fault.NotFound,
			"delete": fault.NotFound,
		}
		if err := write(ifContains("another document"), "9.0.0"); wantKind[name] != fault.KindOf(err) {
			t.Errorf("%s of a version that is not there: %v", name, err)
		}
	}
}

// TestConditionsComeBeforeRules sends requests that also break a rule.
func TestConditionsComeBeforeRules(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
	w.publishAll(t, "1.0.0")
	stale := func(body string) request {
		r := newRequest(body)
		r.Condition = ifContains("another document")
		return r
	}
	broken := document("1.0.0", `"title":""`)
	_, published := w.Publish(t.Context(), stale(broken))
	_, replaced := w.Replace(t.Context(), stale(broken), newTarget("1.0.0"))
	_, same := w.SetStatus(t.Context(), stale(`{"status":"active"}`), newTarget("1.0.0"))
	_, missing := w.Replace(t.Context(), stale(document("9.0.0", `"title":""`)), newTarget("9.0.0"))
	_, fresh := w.Publish(t.Context(), stale(document("2.0.0", `"title":""`)))
	_, malformed := w.SetStatus(t.Context(), stale(`{"status":"none"}`), newTarget("1.0.0"))
	for name, c := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"publish": {published, fault.Stale}, "replace": {replaced, fault.Stale}, "status": {same, fault.Stale},
		"replace of none": {missing, fault.NotFound}, "publish of another": {fresh, fault.Invalid},
		"status malformed": {malformed, fault.Invalid},
	} {
		if !fault.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %s", name, c.err, c.want)
		}
	}
}

// firstRelease returns version 1.0.0 of the server.
func firstRelease(t *testing.T) registry.Release {
	t.Helper()
	name, err := registry.ParseName(serverName)
	must.Succeed(t, err)
	version, err := registry.ParseVersion("1.0.0")
	must.Succeed(t, err)
	return registry.Release{Name: name, Version: version}
}
