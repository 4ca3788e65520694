package operator

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// wantShutOut waits until every instance refuses the person's access token.
func wantShutOut(t *testing.T, p *fixture.Person, instances ...*fixture.Service) {
	t.Helper()
	for _, s := range instances {
		await.Until(t, "the end of a session", func() bool {
			return apiclient.Call(t, "GET", s.API+"/sessions", nil, p.Bearer()...).Status != http.StatusOK
		})
		apiclient.WantAuthError(t,
			apiclient.Call(t, "GET", s.API+"/sessions", nil, p.Bearer()...).WantStatus(t, http.StatusUnauthorized),
			"invalid_token")
	}
}

// TestOperatorEndsSessions ends one session, then the sessions of a device, then all, while the
// service caches copies of them.
func TestOperatorEndsSessions(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		instances := []*fixture.Service{e.Start(t)}
		if e.Shared {
			instances = append(instances, e.Start(t))
		}
		s := instances[0]
		ada := e.NewPerson(t, "ada@example.com", "publish com.example/*")
		e.RunCommand(t, "", "grant", "remove", "--email", ada.Email, "--action", "publish", "--resource",
			"com.example/*")
		bob := e.NewPerson(t, "bob@example.com")
		bob.Login(t, s)
		type listed struct{ ID, DeviceID, TrustLevel string }
		only := func(noun string) listed {
			t.Helper()
			var list []listed
			e.ReadCommand(t, &list, noun, "list", "--email", ada.Email)
			if len(list) != 1 {
				t.Fatalf("%s list is %v, want one", noun, list)
			}
			return list[0]
		}
		for _, end := range []func() []string{
			func() []string { return []string{"session", "end", only("session").ID} },
			func() []string { return []string{"device", "revoke", only("device").ID} },
			func() []string { return []string{"session", "end", "--all"} },
		} {
			ada.Login(t, s)
			for _, one := range instances {
				apiclient.Call(t, "GET", one.API+"/sessions", nil, ada.Bearer()...).WantStatus(t, http.StatusOK)
			}
			var told struct{ SessionsInvalidated int }
			if e.ReadCommand(t, &told, append(end(), "--email", ada.Email)...); told.SessionsInvalidated != 1 {
				t.Errorf("%d sessions ended, want one", told.SessionsInvalidated)
			}
			wantShutOut(t, ada, instances...)
		}
		apiclient.Call(t, "GET", s.API+"/sessions", nil, bob.Bearer()...).WantStatus(t, http.StatusOK)
		wantOperatorsEvents(t, ada, e, s)
	})
}

// wantOperatorsEvents checks that the person's own log and the operator's search show the same
// operator events. The golden file has the new account and its grants, which are of no person.
func wantOperatorsEvents(t *testing.T, p *fixture.Person, e *fixture.Environment, s *fixture.Service) {
	t.Helper()
	p.Login(t, s)
	var page struct {
		Logs []struct {
			ID      string
			Details struct{ Actor, Action string }
		}
	}
	apiclient.Call(t, "GET", s.API+"/audit-logs?limit=1000", nil, p.Bearer()...).WantStatus(t, http.StatusOK).
		Decode(t, &page)
	var found []struct{ ID, Email string }
	e.ReadCommand(t, &found, "audit", "search", "--email", p.Email, "--limit", "0")
	acts := map[string]int{}
	for i, entry := range page.Logs {
		if entry.Details.Actor == "operator" {
			acts[entry.Details.Action]++
		}
		if i >= len(found) || found[i].ID != entry.ID || found[i].Email != p.Email {
			t.Fatalf("the operator's search differs from the person's at event %d: %v", i, found)
		}
	}
	if acts["end_sessions"] != 2 || acts["revoke"] != 1 || acts["add"]+acts["grant_add"]+acts["grant_remove"] != 0 {
		t.Errorf("the operator's acts are %v", acts)
	}
}

// TestOperatorsGiveOneGrantAtOnce runs the same command in several processes: all succeed, and
// exactly one changes something.
func TestOperatorsGiveOneGrantAtOnce(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		tollgate := filepath.Join(fixture.BinDir, "tollgate")
		e.RunProgram(t, tollgate, fixture.Password, "user", "add", "--email", "ada@example.com", "--name", "Ada",
			"--password-stdin")
		const rounds, processes = 3, 4
		for round := range rounds {
			var all sync.WaitGroup
			for range processes {
				all.Go(func() {
					cmd := exec.Command(tollgate, "grant", "add", "--email", "ada@example.com", "--action", "edit",
						"--resource", fmt.Sprintf("com.e%d/*", round))
					cmd.Env = e.Environ
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("grant add: %v\n%s", err, out)
					}
				})
			}
			all.Wait()
		}
		var grants []struct{ Email, Resource string }
		e.ReadCommand(t, &grants, "grant", "list", "--email", "ada@example.com")
		log := e.RunCommand(t, "", "audit", "search", "--type", "ACCOUNT_CHANGE", "--limit", "0", "-o", "jsonl")
		if given := strings.Count(log, `"action":"grant_add"`); len(grants) != rounds || given != rounds {
			t.Errorf("there are %d grants and %d events of them, want %d of each", len(grants), given, rounds)
		}
	})
}

// TestOperatorChangesMethods checks that each change of the methods listing is in the operators'
// log, as the golden file has it, and not in a person's log.
func TestOperatorChangesMethods(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com")
		ada.Login(t, s)
		const list = `[{"method_id":7,"path":"/parking/{lot}.{format}","service_id":5,"service_name":"cars","parameters":["lot","format"]}]`
		e.RunCommand(t, "", "methods", "add", "--id", "7", "--path", "/parking/{lot}.{format}", "--service-id", "5",
			"--service", "parking")
		e.RunCommand(t, list, "methods", "import", "-")
		e.RunCommand(t, list, "methods", "import", "-") // which changes nothing
		e.RunCommand(t, "", "methods", "remove", "7")
		var changes []struct{ ID string }
		if e.ReadCommand(t, &changes, "audit", "search", "--type", "METHODS_CHANGE", "--limit", "0"); len(changes) != 3 {
			t.Errorf("the operators' log has %d changes, want 3", len(changes))
		}
		if own := ada.ReadAuditLog(t, s, "eventType=METHODS_CHANGE"); own.Total != 0 {
			t.Errorf("%d of them are in a person's own log", own.Total)
		}
	})
}
