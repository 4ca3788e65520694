package curation

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestQuarantineOfOneVersion checks that the command names what stays listed with the same package,
// on the database and at the service, and that the publisher gets a notice of what a command and a
// person hide.
func TestQuarantineOfOneVersion(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e, "REGISTRY_REVIEW=off")
		const name = "com.example/same"
		for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
			doc := titled(name, v, "x")
			if delete(doc, "remotes"); v != "1.2.0" {
				doc["packages"] = []any{map[string]any{
					"registryType": "npm", "identifier": "@acme/db", "version": v, "transport": map[string]any{"type": "stdio"},
				}}
			}
			s.send(t, s.ada, "POST", "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
		}
		const note = "Listed with the same remote or package: 1.0.0 (npm @acme/db 1.0.0). Without --version the whole server is hidden.\n"
		run := func(want, reason, version string, more ...string) {
			t.Helper()
			args := []string{"registry", "quarantine", name, "--reason", reason}
			if version != "" {
				args = append(args, "--version", version)
			}
			if _, stderr, code := e.TryCommand(t, "", append(args, more...)...); code != 0 || stderr != want {
				t.Errorf("quarantine of %q %s: exit code %d, %q, want %q", version, more, code, stderr, want)
			}
			s.wantNotice(t, reason, version)
			s.release(t, s.bea, name, version).WantStatus(t, http.StatusNoContent)
		}
		for _, version := range []string{"1.1.0", ""} {
			want := ""
			if version == "1.1.0" {
				want = note
			}
			run(want, "by a command: v"+version, version)
			local := e.Environ
			e.Environ = append(slices.Clone(local), "TOLLGATE_TOKEN="+s.bea.AccessToken)
			run(want, "at the service: v"+version, version, "--server", s.one.API)
			e.Environ = local
		}
	})
}

// wantNotice waits for the notice of a quarantine. New instances look at once for what operators did.
func (s *site) wantNotice(t *testing.T, reason, version string) {
	t.Helper()
	if strings.HasPrefix(reason, "by a command") {
		s.passMinute(t)
		s.e.Start(t)
	}
	server, page := "com.example/same", "/console/servers/com.example/same"
	if version != "" {
		server, page = server+" "+version, page+"/versions/"+version
	}
	words := "Server: " + server + `\nReason:\n\u003e ` + reason + `\n\nThe server\n` + page + `\n\n`
	await.Until(t, words, func() bool {
		text, err := os.ReadFile(s.e.Dir + "/notices.jsonl")
		return err == nil && strings.Contains(string(text), words)
	})
}
