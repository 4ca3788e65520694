package audit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestSentence reads events as people do.
func TestSentence(t *testing.T) {
	for _, c := range []struct {
		category Category
		success  bool
		details  string
		want     string
	}{
		{RegistryChange, true, `{"action":"status","serverName":"com.example/wiki","version":"1.0.0","status":"deprecated","statusMessage":"use 2"}`,
			"deprecated com.example/wiki 1.0.0: use 2"},
		{RegistryChange, true, `{"action":"status","serverName":"com.example/wiki","status":"deleted","changes":{"status":["active, deprecated","deleted"]}}`,
			"deleted com.example/wiki, which was active, deprecated"},
		{RegistryChange, true, `{"action":"mirror_change","key":"a","changes":{"interval":["1h0m0s","2h0m0s"],"managedBy":["","ops"],"include":[null,["com.example/*","7"]],"secret":"changed"}}`,
			"changed the mirror a: include none → com.example/*, ada@example.com; interval 1h0m0s → 2h0m0s; managed by none → ops; and 1 more"},
		{RegistryChange, true, `{"action":"import","versions":628,"first":["com.example/a 1.0.0","com.example/b 2.0.0"],"run":"import x"}`,
			"imported 628 versions, such as com.example/a 1.0.0, com.example/b 2.0.0"},
		{RegistryChange, true, `{"action":"mirror_run","mirror":"corp","versions":1,"first":["com.example/a 1.0.0"]}`,
			"took over 1 version by the mirror corp, such as com.example/a 1.0.0"},
		{RegistryChange, true, `{"action":"mirror_change","key":"a","changes":{"lenient":[false,true],"secret":"changed"}}`,
			"changed the mirror a: lenient no → yes; secret"},
		{AccountChange, true, `{"action":"groups","provider":"corp","added":["edit *"],"removed":[]}`,
			"got other grants by groups of the company corp, added: edit *"},
		{RegistryChange, true, `{"action":"status","serverName":"com.example/wiki","status":"active"}`, "restored com.example/wiki"},
		{RegistryChange, true, `{"action":"status","serverName":"com.example/wiki"}`, "changed the status of com.example/wiki"},
		{RegistryChange, true, `{"action":"publish","serverName":"com.example/{x}[y]","version":"1.0.0"}`, "published com.example/{x}[y] 1.0.0"},
		{RegistryChange, false, `{"action":"publish","serverName":"com.example/wiki","reason":"it exists"}`,
			"could not publish com.example/wiki: it exists"},
		{RegistryChange, true, `{"action":"quarantine","serverName":"com.example/wiki","note":"it sends data"}`,
			"put com.example/wiki in quarantine: it sends data"},
		{RegistryChange, false, `{"action":"edit","serverName":"com.example/wiki","reason":"leave _meta out"}`,
			"could not edit com.example/wiki: leave _meta out"},
		{AccountChange, true, `{"action":"grant_add","grant":"edit","resource":"com.example/*","userId":"7"}`,
			"gave ada@example.com the grant edit over com.example/*"},
		{AccountChange, true, `{"action":"grant_remove","grant":"edit","resource":"*","service":"ci"}`, "removed the grant edit over * from ci"},
		{AccountChange, false, `{"action":"lock","key":"7","reason":"last_operator"}`, "could not lock the account ada@example.com: last operator"},
		{LoginAttempt, true, `{}`, "signed in"}, {LoginAttempt, true, `{"factor":"passkey"}`, "signed in with a passkey"},
		{LoginAttempt, false, `{"reason":"invalid_credentials"}`, "could not sign in: wrong e-mail address or password"},
		{RiskEvaluation, true, `{"riskScore":25,"history":{"mode":"shadow"}}`, "got a risk score of 25 for the sign-in"},
		{AccessRefused, false, `{"operation":"POST /auth/password","reason":"insufficient_trust"}`,
			"could not get access to POST /auth/password: the session is not verified enough"},
		{AccessDecision, false, `{"effect":"deny","reason":"rule","rule":"night","serverName":"com.example/wiki","tool":"edit","count":3}`,
			"could not call edit of com.example/wiki 3 times: an access rule"},
		{AccessDecision, false, `{"effect":"challenge","reason":"away","host":"x.example"}`, "could not call: away"},
		{Authorization, true, `{"action":"allow","clientName":"Editor","resource":"https://wiki.example/mcp"}`,
			"gave Editor access to https://wiki.example/mcp"},
		{Authorization, false, `{"action":"refuse","clientName":"Editor","resource":"https://wiki.example/mcp",
			"reason":"no access rule allows it"}`,
			"could not get access to https://wiki.example/mcp with Editor: no access rule allows it"},
		{Authorization, false, `{"action":"document","actor":"https://editor.example/client","reason":"it has no name"}`,
			"could not publish its document as a client: it has no name"},
		{MethodsChange, true, `{"action":"new_one"}`, "methods change new one"},
	} {
		e := Event{Category: c.category, Success: c.success}
		must.Succeed(t, json.Unmarshal([]byte(c.details), &e.Details))
		name := func(text string) string {
			if text == "7" {
				return "ada@example.com"
			}
			return text
		}
		if got := e.Sentence(name); got != c.want {
			t.Errorf("%s %s is %q, want %q", c.category, c.details, got, c.want)
		}
	}
}

// TestSentencesAreWhole checks the form of each sentence.
func TestSentencesAreWhole(t *testing.T) {
	for key, pattern := range sentences {
		category, _, _ := strings.Cut(key, " ")
		parts := strings.Split(pattern, "|")
		if !slices.Contains(Categories(), Category(category)) || len(parts) != 3 || parts[0] == "" || parts[1] == "" ||
			strings.Count(pattern, "[") != strings.Count(pattern, "]") || strings.Count(pattern, "{") != strings.Count(pattern, "}") ||
			strings.Contains(pattern, "  ") {
			t.Errorf("%s: %s", key, pattern)
		}
	}
}
