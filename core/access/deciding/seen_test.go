package deciding_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// listed returns the call of a tool as a list that passes shows it.
func listed(name, content string) access.Call {
	c := access.NewCall("tools/call", name)
	c.Mark = func() (m toolserver.Mark) {
		copy(m[:], content)
		return m
	}
	return c
}

// TestSeenTools checks what is counted and recorded of tools in lists that pass, with each setting (contract W-8): one
// event for a server, tool and minute, and bounded memory whatever a server lists.
func TestSeenTools(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]access.Options{
		"notify": {}, "deny": {OnChange: toolserver.DenyCalls}, "observe": {OnChange: toolserver.DenyCalls, Mode: access.Observe, Default: access.Allow},
	} {
		fx := newFixture(t, deciding.Config{Options: o})
		l := fx.listings[0]
		tool := toolserver.Tool{Name: "get"}
		copy(tool.Mark[:], "as approved")
		l.Tools = []access.ToolList{{Approved: true, Part: "p", Tools: []toolserver.Tool{tool}}}
		fx.change(l)
		fx.allow("robot", "service:robot", nil)
		ask := func(want string, server string, calls ...access.Call) {
			t.Helper()
			q := question(tokenOf(robot))
			q.Server = server
			denied, err := fx.Denied(t.Context(), q, calls)
			if got := fmt.Sprint(denied); err != nil || got != want {
				t.Errorf("%s: %v, error %v, want %s", name, got, err, want)
			}
		}
		removes := fmt.Sprint(o.OnChange == toolserver.DenyCalls && o.Mode != access.Observe)
		for range 3 {
			ask("[false "+removes+" "+removes+"]", "com.example/weather", listed("get", "as approved"), listed("get", "other"), listed("new", ""))
		}
		ask("[true]", "com.example/unknown", listed("get", ""))
		if got := fmt.Sprint(fx.tools); got != "["+strings.Repeat("approved unapproved unapproved ", 3)+"unknown]" {
			t.Errorf("%s: counted %s", name, got)
		}
		ask("[false]", "com.example/weather", access.NewCall("tools/call", "get"))
		fx.clock.Advance(time.Minute)
		fx.Record(false)
		got := map[string]string{}
		for _, c := range fx.recorded {
			got[c.Details.Text("tool")] = fmt.Sprintf("%s %s %v %s %v %.10s", c.Category, c.Action, c.Failed, c.Details.Text("actor"), c.Details["count"], c.Details.Text("mark"))
		}
		if len(fx.recorded) != 2 || got["get"] != "REGISTRY_CHANGE tools_seen false service:robot 3 6f74686572" || !strings.Contains(got["new"], " 3 0000000000") {
			t.Errorf("%s: recorded %v", name, got)
		}
		fx.recorded = nil
		var many []access.Call
		for i := range 5000 {
			many = append(many, listed(fmt.Sprint("tool", i), ""))
		}
		q := question(tokenOf(robot))
		q.Server = "com.example/weather"
		if _, err := fx.Denied(t.Context(), q, many); err != nil {
			t.Fatal(err)
		}
		fx.clock.Advance(time.Minute)
		fx.Record(false)
		others := 0
		for _, c := range fx.recorded {
			if c.Details.Flag("others") {
				others = c.Details.Int("count")
			}
		}
		if len(fx.recorded) > 101 || len(fx.recorded)-1+others != 5000 {
			t.Errorf("%s: %d events, and %d are in one", name, len(fx.recorded), others)
		}
	}
}
