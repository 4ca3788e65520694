package publishing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// oneTool is a body with a list of one tool, of the first package.
func oneTool(name string) string { return fmt.Sprintf(`{"package":0,"tools":[{"name":%q}]}`, name) }

// record sends a list as the caller with a token.
func (w *fixture) record(t *testing.T, token, body, version string) (publishing.RecordedTools, error) {
	t.Helper()
	return w.RecordTools(t.Context(), w.callers(token), []byte(body), newTarget(version))
}

// states returns the states of lists, each with the name of its first tool.
func states(lists []tools.Shown) string {
	var all []string
	for _, l := range lists {
		all = append(all, string(l.State)+" "+l.List.Tools[0].Name)
	}
	return strings.Join(all, ", ")
}

// publishWithPackage publishes a version that has a package.
func (w *fixture) publishWithPackage(t *testing.T) {
	t.Helper()
	_, err := w.Publish(t.Context(), newRequest(document("1.0.0", `"packages":[`+npmPackage("a")+"]")))
	must.Succeed(t, err)
	w.authority.acts = nil
}

// newToolFixture is a registry with a version that has a package.
func newToolFixture(t *testing.T, c publishing.Config, granted ...registry.Action) *fixture {
	t.Helper()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	w.publishWithPackage(t)
	pattern, err := registry.ParsePattern("com.example/*")
	must.Succeed(t, err)
	must.Succeed(t, w.grants.Remove(t.Context(), registry.GrantRecord{Grant: registry.Grant{
		Holder: "ada", Action: registry.ActionPublish, Pattern: pattern,
	}}))
	for _, a := range granted {
		w.grant(t, a, "com.example/*")
	}
	w.Publisher = publishing.New(c, w.ports(c))
	return w
}

// TestRecordTools checks the states of lists that are sent one after the other, with and without
// review, and that each is in the audit log.
func TestRecordTools(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		review bool
		want   []string // after the lists a, a, b, c, a
	}{
		"without review": {false, []string{"approved a", "approved a", "approved a, changed b", "approved a, changed c", "approved a"}},
		"with review":    {true, []string{"pending a", "pending a", "pending b", "pending c", "pending a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newToolFixture(t, publishing.Config{Review: c.review, PendingMax: 1}, registry.ActionPublish)
			w.runner.twice = true
			for i, tool := range []string{"a", "a", "b", "c", "a"} {
				got, err := w.record(t, trustedToken, oneTool(tool), "1.0.0")
				if err != nil || states(got.Lists) != c.want[i] || got.First != (i == 0) {
					t.Fatalf("list %d, %s: %s, first %t, %v, want %s", i, tool, states(got.Lists), got.First, err, c.want[i])
				}
				if l := got.Lists[0]; l.By.Key != "ada" || l.Package != 0 || l.Source != tools.Recorded || l.At.IsZero() {
					t.Errorf("the list is %+v", l)
				}
			}
			if n := len(w.authority.acts); n != 5 {
				t.Fatalf("there are %d acts", n)
			}
			act := w.authority.acts[2]
			state, _, _ := strings.Cut(strings.TrimPrefix(c.want[2], "approved a, "), " ")
			if act.Action != "tools_record" || act.Part != "package 0" || act.ToolState != state || act.Version != "1.0.0" || act.Reason != "" {
				t.Errorf("the act is %+v", act)
			}
		})
	}
}

// TestRecordToolsRefusals checks the errors in the order of the checks: who is refused first sends the
// worst body. All are in the audit log but that of an unknown caller, and of a registry without writes.
func TestRecordToolsRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config        publishing.Config
		granted       []registry.Action
		caller        authority.Caller
		body, version string
		prepare       func(t *testing.T, w *fixture)
		kind          fault.Kind
		acts          int
	}{
		"writes are off": {config: publishing.Config{WritesOff: true}, kind: fault.Unsupported},
		"nobody":         {kind: fault.Unauthenticated},
		"no grant": {
			granted: []registry.Action{registry.ActionEdit}, caller: authoritytest.Person("ada"), kind: fault.Forbidden, acts: 1,
		},
		"below trust": {
			granted: []registry.Action{registry.ActionPublish}, caller: authoritytest.Person("ada low"), kind: fault.Forbidden, acts: 1,
		},
		"a reviewer below trust": {
			granted: []registry.Action{registry.ActionReview}, caller: authoritytest.Person("ada low"), kind: fault.Forbidden, acts: 1,
		},
		"no list": {
			granted: []registry.Action{registry.ActionReview}, caller: authoritytest.Person("ada"), body: `{"package":0}`, version: "0",
			kind: fault.Invalid, acts: 1,
		},
		"no version": {
			granted: []registry.Action{registry.ActionReview}, caller: authoritytest.Person("ada"), body: oneTool("a"), version: "9.9.9",
			kind: fault.NotFound, acts: 1,
		},
		"no version at all": {
			granted: []registry.Action{registry.ActionReview}, caller: authoritytest.Person("ada"), body: oneTool("a"), version: "latest",
			kind: fault.NotFound, acts: 1,
		},
		"no such package": {
			granted: []registry.Action{registry.ActionPublish}, caller: authoritytest.Person("ada"),
			body: `{"package":1,"tools":[]}`, kind: fault.Invalid, acts: 1,
		},
		"deleted meanwhile": {
			granted: []registry.Action{registry.ActionPublish, registry.ActionEdit}, caller: authoritytest.Person("ada"), body: oneTool("a"),
			prepare: func(t *testing.T, w *fixture) {
				t.Helper()
				_, err := w.Delete(t.Context(), newRequest(""), newTarget("1.0.0"))
				must.Succeed(t, err)
				w.authority.acts = nil
			},
			kind: fault.NotFound, acts: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newToolFixture(t, c.config, c.granted...)
			if c.prepare != nil {
				c.prepare(t, w)
			}
			version := c.version
			if version == "" {
				version = "1.0.0"
			}
			_, err := w.RecordTools(t.Context(), c.caller, []byte(c.body), newTarget(version))
			wantFault(t, err, c.kind, name)
			if len(w.authority.acts) != c.acts {
				t.Errorf("there are the acts %+v", w.authority.acts)
			}
			for _, a := range w.authority.acts {
				if a.Action != "tools_record" || a.Reason == "" || a.ToolState != "" {
					t.Errorf("the act is %+v", a)
				}
			}
		})
	}
}

// TestPublisherRecordsTools checks that a publisher sends lists with its policy to publish, as what it
// has proved, and with no other one.
func TestPublisherRecordsTools(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		actions []publisher.Action
		kind    fault.Kind
	}{
		"to publish": {toPublish(), fault.Internal}, "to change the status": {toChangeStatus(), fault.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newPublisherFixture(t, publishing.Config{}, c.actions)
			f.publishWithPackage(t)
			got, err := f.record(t, publisherToken, oneTool("a"), "1.0.0")
			if c.kind != fault.Internal {
				wantFault(t, err, c.kind, name)
				return
			}
			if err != nil || states(got.Lists) != "approved a" || got.Lists[0].By.Key != "dns:example.com" || got.Lists[0].By.Policy == "" {
				t.Errorf("RecordTools = %+v, %v", got, err)
			}
			f.removePolicies(t)
			_, err = f.record(t, publisherToken, oneTool("b"), "1.0.0")
			wantFault(t, err, fault.Unauthenticated, "after the policy ended")
		})
	}
}
