package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/operator"
)

func TestRiskReplay(t *testing.T) {
	const good = `{"id":"1","ts":1795262400,"userId":7,"ip":"203.0.113.1","country":"FR","passwordCorrect":true}` + "\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "events.jsonl")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	const verdict = `{"id":"1","riskScore":30,"trustLevel":"UNVERIFIED","factors":{"deviceFamiliarity":30,"geographicAnomaly":0,` +
		`"ipReputation":0,"loginVelocity":0,"failedAttempts":0}}` + "\n"
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
		out   string
		says  string
	}{
		{"", []string{file}, cli.ExitOK, verdict, ""},
		{good, []string{"-"}, cli.ExitOK, verdict, ""},
		{good, []string{"-", "--output", "table"}, cli.ExitOK, "30: no step-up or MFA was passed on the device\n", ""},
		{good + "{}\n", []string{"-"}, cli.ExitFailed, verdict, "line 2: id "},
		{good, []string{"-", "--output", "xml"}, cli.ExitFailed, "", "--output"},
		{good, []string{"-", "--assume-step-up", "some"}, cli.ExitFailed, "", "--assume-step-up"},
		{good, []string{"-", "--scorer", "some"}, cli.ExitFailed, "", "--scorer"},
		{
			good, []string{"-", "--scorer", "both"}, cli.ExitOK,
			strings.TrimSuffix(verdict, "}\n") +
				`,"pointsScore":30,"historyScore":null,"historySilent":"installation"}` + "\n", "",
		},
		{
			good, []string{"-", "--scorer", "history", "--output", "table"}, cli.ExitOK,
			"30: no step-up or MFA was passed on the device\n", "",
		},
		{
			good, []string{"-", "--target-challenge", "0.1", "--output", "table"}, cli.ExitOK,
			"legit                  1       0.0 %             0.0 %                0.0 %\n" +
				"legit, present bounds  1       100.0 %           0.0 %                0.0 %\n", "",
		},
		{
			good, []string{"-", "--target-challenge", "0.1", "--scorer", "both", "--output", "table"}, cli.ExitOK,
			"The history is silent about all of these sign-ins: it begins after 500, and RISK_HISTORY may be on.\n", "",
		},
		{good, []string{"-", "--target-challenge", "0"}, cli.ExitFailed, "", "--target-challenge"},
		{"", []string{"-", "--target-challenge", "0.1"}, cli.ExitFailed, "", "no sign-ins"},
		{"", []string{filepath.Join(dir, "none.jsonl")}, cli.ExitFailed, "", "none.jsonl"},
	} {
		r := runCommand(t, dir, c.stdin, append([]string{"risk", "replay"}, c.args...)...)
		if r.code != c.code || !strings.HasSuffix(r.stdout, c.out) || !strings.Contains(r.stderr, c.says) ||
			c.says != "" && strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}

// TestSuggestedBounds checks the output for programs: the bounds by their keys, and the share of
// each label that they challenge.
func TestSuggestedBounds(t *testing.T) {
	var in strings.Builder
	for n := range 10 {
		fmt.Fprintf(&in, `{"id":%d,"ts":%d,"userId":%d,"ip":"203.0.113.1","passwordCorrect":true,"label":"legit"}`+"\n",
			n, 1795262400+n, n)
	}
	in.WriteString(`{"id":"x","ts":1795262500,"userId":11,"ip":"203.0.113.1","passwordCorrect":false,"label":"thief"}` +
		"\n")
	in.WriteString(`{"id":"y","ts":1795262501,"userId":11,"ip":"203.0.113.1","passwordCorrect":true,"ipReputation":"tor","label":"thief"}` + "\n")
	r := runCommand(t, t.TempDir(), in.String(), "risk", "replay", "-", "--target-challenge", "0.05")
	var got, want operator.SuggestionJSON
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != cli.ExitOK {
		t.Fatalf("%+v: %v", r, err)
	}
	want.Bounds = map[string]int{
		"trustLevels.FULL_TRUST": 30, "trustLevels.LIMITED_TRUST": 30, "trustLevels.UNVERIFIED": 30,
	}
	want.Legitimate, want.Attacks = operator.OutcomeJSON{Label: "legit", SignIns: 10}, []operator.OutcomeJSON{
		{Label: "thief", SignIns: 1, Challenged: 1, Unverified: 1, HighRisk: 1},
	}
	want.Present = operator.OutcomeJSON{Label: "legit", SignIns: 10, Challenged: 1} // they have 30 points
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRiskSuggest replays 20 people who sign in every day from their own addresses. The log does not
// say that they passed a step-up, as the service would ask them to.
func TestRiskSuggest(t *testing.T) {
	var in strings.Builder
	for n := range 600 {
		day, person := n/20, n%20
		fmt.Fprintf(&in, `{"id":%d,"ts":%d,"userId":%d,"ip":"203.0.113.%[3]d","passwordCorrect":true,`+
			`"ipReputation":"hosting"}`+"\n", n, 1795262400+day*86400+person, person)
	}
	for policy, advice := range map[string]string{
		"failedAttempts: {few: 10}":           "With RISK_HISTORY=on the present bounds challenge 0.0 % of these sign-ins: leave it on.",
		"historyTrustLevels: {FULL_TRUST: 5}": "of these sign-ins: write the suggested ones to the file of RISK_POLICY, or set RISK_HISTORY=shadow.",
		"trustLevels: {FULL_TRUST: 5}":        "challenge 100.0 % of these sign-ins: raise those of the points too, or set RISK_HISTORY=shadow.",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "policy.yaml")
		if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
		suggest := func(args ...string) string {
			t.Helper()
			var stdout, stderr bytes.Buffer
			if code := Run(t.Context(), cli.Process{
				Args: append([]string{"risk", "suggest", "-"}, args...), Environ: []string{"DATA_DIR=" + dir, "RISK_POLICY=" + file},
				Stdin: strings.NewReader(in.String()), Stdout: &stdout, Stderr: &stderr,
			}); code != cli.ExitOK {
				t.Errorf("%s: code %d, %s", policy, code, stderr.String())
			}
			return stdout.String()
		}
		text := strings.Join(strings.Fields(suggest()), " ")
		if !strings.Contains(text, advice) ||
			!strings.HasSuffix(text, "Devices that were not confirmed, with 3.3 % of the sign-ins, are challenged at any score.") {
			t.Errorf("%s: %s", policy, text)
		}
		if without := suggest("--assume-step-up", "none"); strings.Join(strings.Fields(without), " ") == text {
			t.Errorf("%s: the same for people who pass no step-up", policy)
		}
		var got operator.SuggestionJSON
		if err := json.Unmarshal([]byte(suggest("--output", "json")), &got); err != nil || !strings.Contains(got.Advice, advice) ||
			got.Bounds["historyTrustLevels.FULL_TRUST"] == 0 {
			t.Errorf("%s: %v, %+v", policy, err, got)
		}
	}
}
