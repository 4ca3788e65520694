package deciding_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/test/must"
)

func trialRule(t *testing.T, effect, subject, server string, tools ...string) *access.Rule {
	t.Helper()
	r, err := access.ParseRule(audit.Details{
		"name": audit.Text("trial"), "order": audit.Number(0), "effect": audit.Text(effect), "subjects": audit.Texts([]string{subject}),
		"servers": audit.Texts([]string{server}), "tools": audit.Texts(tools),
	})
	must.Succeed(t, err)
	return &r
}

// TestReplay replays calls with a rule that is not stored: those of a day, each kind as often as it was called,
// and no more kinds than there is room for. Strangers who name many tools are one kind.
func TestReplay(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{On: true})
	fx.allow("all", "everyone", nil)
	ada := fx.members["p1"]
	call := func(subject *access.Subject, tool string) {
		fx.answer(deciding.Question{Subject: subject, Server: "com.example/weather", Call: access.NewCall("tools/call", tool)})
	}
	var nobody access.Subject
	replay := func(r *access.Rule) deciding.Replay {
		t.Helper()
		got, err := fx.Replay(t.Context(), r)
		must.Succeed(t, err)
		return got
	}
	deny := trialRule(t, "deny", "person:ada@example.com", "com.example/*", "read_*")
	if got := replay(deny); got.Calls != 0 || !got.Since.IsZero() {
		t.Errorf("without calls: %+v", got)
	}
	for range 3 {
		call(&ada, "read_a")
	}
	call(&ada, "write")
	refused := access.Refused()
	call(&refused, "read_a") // no rule is about it
	for i := range 5000 {
		call(&nobody, fmt.Sprint("tool", i))
	}
	call(&ada, "read_"+strings.Repeat("x", 500)) // its name is not needed
	got := replay(deny)
	if got.Calls != 5004 || len(got.Changed) != 1 ||
		got.Changed[0] != (deciding.ReplayedCall{Subject: "person:ada@example.com", Server: "com.example/weather", Tool: "read_a", Calls: 3, Before: access.Allow, After: access.Deny}) {
		t.Errorf("the replay is %+v", got)
	}
	if a := fx.answer(deciding.Question{Subject: &ada, Server: "com.example/weather", Call: access.NewCall("tools/call", "read_a")}); a.Effect != access.Allow {
		t.Error("the rule of a trial decides")
	}
	fx.clock.Advance(13 * time.Hour)
	call(&ada, "read_a")
	if got := replay(deny); got.Changed[0].Calls+got.Changed[1].Calls != 5 {
		t.Errorf("after half a day: %+v", got.Changed)
	}
	fx.clock.Advance(13 * time.Hour)
	if got := replay(deny); got.Calls != 1 {
		t.Errorf("after a day: %+v", got)
	}
}

// TestDoubts names what nothing has, with what is like it.
func TestDoubts(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{On: true})
	known := []string{"group:corp/engineers", "person:ada@example.com", "service:robot", "everyone"}
	for _, c := range []struct{ subject, server, want string }{
		{"group:corp/enginers", "com.example/*", "No group corp/enginers was seen yet. Nearest: corp/engineers"},
		{"group:corp/engineers", "com.exmple/*", "No server com.exmple/* was seen yet. Nearest: com.example/*"},
		{"person:nobody@example.com", "*", "No active person nobody@example.com was seen yet."},
		{"person:adda@example.com", "com.example/weather", "No active person adda@example.com was seen yet. Nearest: ada@example.com"},
		{"service:x", "com.example/wether", "No active service account x was seen yet. No server com.example/wether was seen yet. Nearest: com.example/weather"},
		{"everyone", "com.example/w*", ""}, {"grant:publish", "*", ""}, {"anyone", "org.none/*", "No server org.none/* was seen yet."},
	} {
		got, err := fx.Doubts(t.Context(), trialRule(t, "allow", c.subject, c.server), known)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s %s: %q (%v), want %q", c.subject, c.server, got, err, c.want)
		}
	}
	for effect, methods := range map[string][]access.Class{"allow": {access.CallsTools}, "deny": {access.CallsTools}, "allow ": {access.CallsTools, access.ListsTools}} {
		r := trialRule(t, strings.TrimSpace(effect), "everyone", "*")
		r.Methods = methods
		if got, err := fx.Doubts(t.Context(), r, known); err != nil || (len(got) > 0) != (effect == "allow") {
			t.Errorf("%s %s: %q (%v)", effect, methods, got, err)
		}
	}
}
