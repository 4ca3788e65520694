package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		{"", []string{file}, exitOK, verdict, ""},
		{good, []string{"-"}, exitOK, verdict, ""},
		{good, []string{"-", "--output", "table"}, exitOK, "30: no step-up or MFA was passed on the device\n", ""},
		{good + "{}\n", []string{"-"}, exitFailed, verdict, "line 2: id "},
		{good, []string{"-", "--output", "xml"}, exitFailed, "", "--output"},
		{good, []string{"-", "--assume-step-up", "some"}, exitFailed, "", "--assume-step-up"},
		{"", []string{filepath.Join(dir, "none.jsonl")}, exitFailed, "", "none.jsonl"},
	} {
		r := runCommand(t, dir, c.stdin, append([]string{"risk", "replay"}, c.args...)...)
		if r.code != c.code || !strings.HasSuffix(r.stdout, c.out) || !strings.Contains(r.stderr, c.says) || c.says != "" && strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}
