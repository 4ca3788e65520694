package decisionlog_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/decisionlog"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// TestCalls logs a call with all facts, and one that has hardly any.
func TestCalls(t *testing.T) {
	var out bytes.Buffer
	log := logrus.New()
	log.SetOutput(&out)
	log.SetFormatter(&logrus.JSONFormatter{DisableTimestamp: true})
	l := decisionlog.New(logrus.NewEntry(log))
	ada := access.NewSubject(access.Member{Kind: access.Person, ID: "ada@example.com", Trust: trustlevel.FullTrust}).WithClient("vscode")
	l.DecidedCall(t.Context(), &deciding.Question{
		Call: access.NewCall("tools/call", strings.Repeat("x", 300)), From: netip.MustParseAddr("192.0.2.7"),
	}, &deciding.Answer{
		Decision: access.Decision{
			Effect: access.Allow, Reason: access.ByRule, Rule: "r", Server: "com.example/a",
			Observed: access.Observed{Rule: "o", Effect: access.Deny, Reason: access.ByRule},
		}, Subject: ada,
	})
	l.DecidedCall(t.Context(), &deciding.Question{}, &deciding.Answer{
		Decision: access.Decision{Effect: access.Deny, Reason: access.NotListed}, ID: "7",
	})
	want := []fields{
		{
			"level": "info", "msg": "a call of a server was decided", "effect": "allow", "reason": "rule", "rule": "r",
			"server": "com.example/a", "subject": "person:ada@example.com", "trust": "FULL_TRUST", "method": "tools/call",
			"tool": strings.Repeat("x", 253) + "…", "address": "192.0.2.7", "client": "vscode", "observed_rule": "o", "observed_effect": "deny", "observed_reason": "rule",
		},
		{
			"level": "info", "msg": "a call of a server was decided", "effect": "deny", "reason": "not_listed", "decision_id": "7",
		},
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var got fields
		if err := json.Unmarshal([]byte(line), &got); err != nil || !maps.Equal(got, want[i]) {
			t.Errorf("got %s, error %v\nwant %v", line, err, want[i])
		}
	}
}
