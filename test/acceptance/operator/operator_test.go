package operator

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
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
// operator events.
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
	wantGivenByOperator(t, p, e)
}

// wantGivenByOperator checks that the new account and its grants are in the operators' log only.
func wantGivenByOperator(t *testing.T, p *fixture.Person, e *fixture.Environment) {
	t.Helper()
	var all []struct {
		Email   string
		Details struct{ Action, UserID string }
	}
	var shown struct{ ID string }
	e.ReadCommand(t, &shown, "user", "show", "--email", p.Email)
	e.ReadCommand(t, &all, "audit", "search", "--type", "ACCOUNT_CHANGE", "--limit", "0")
	acts := map[string]int{}
	for _, entry := range all {
		if entry.Email == "" && entry.Details.UserID == shown.ID {
			acts[entry.Details.Action]++
		}
	}
	if acts["add"] != 1 || acts["grant_add"] != 1 || acts["grant_remove"] != 1 || len(acts) != 3 {
		t.Errorf("the operators' log has %v", acts)
	}
}

// TestOperatorsGiveOneGrantAtOnce runs the same command in several processes: all succeed, and
// exactly one changes something.
func TestOperatorsGiveOneGrantAtOnce(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.RunCommand(t, fixture.Password, "user", "add", "--email", "ada@example.com", "--name", "Ada",
			"--password-stdin")
		const rounds, processes = 4, 6
		for round := range rounds {
			var all sync.WaitGroup
			for range processes {
				all.Go(func() {
					out, told, code := e.TryCommand(t, "", "grant", "add", "--email", "ada@example.com",
						"--action", "edit",
						"--resource", fmt.Sprintf("com.e%d/*", round))
					if code != 0 {
						t.Errorf("grant add ends with %d: %s%s", code, out, told)
					}
				})
			}
			all.Wait()
		}
		var grants []struct{ Email, Resource string }
		e.ReadCommand(t, &grants, "grant", "list", "--email", "ada@example.com")
		var events []struct{ Details struct{ Action string } }
		e.ReadCommand(t, &events, "audit", "search", "--type", "ACCOUNT_CHANGE", "--limit", "0")
		given := 0
		for _, event := range events {
			if event.Details.Action == "grant_add" {
				given++
			}
		}
		if len(grants) != rounds || given != rounds {
			t.Errorf("there are %d grants and %d events of them, want %d of each", len(grants), given, rounds)
		}
	})
}

// TestOperatorChangesMethods checks that each change of the methods listing is in the operators'
// log, and not in a person's log.
func TestOperatorChangesMethods(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com")
		ada.Login(t, s)
		file := filepath.Join(e.Dir, "methods.json")
		fixture.WriteFile(t, file,
			`[{"method_id":7,"path":"/parking/{lot}.{format}","service_id":5,"service_name":"cars","parameters":["lot","format"]}]`)
		e.RunCommand(t, "", "methods", "add", "--id", "7", "--path", "/parking/{lot}.{format}", "--service-id", "5",
			"--service", "parking")
		e.RunCommand(t, "", "methods", "import", file)
		e.RunCommand(t, "", "methods", "import", file) // which changes nothing
		e.RunCommand(t, "", "methods", "remove", "7")
		var told []struct {
			UserID  string
			Details struct{ Action, Service, Path, Actor string }
		}
		e.ReadCommand(t, &told, "audit", "search", "--type", "METHODS_CHANGE", "--limit", "0")
		var acts []string
		for _, entry := range slices.Backward(told) { // newest first
			if entry.UserID != "" || entry.Details.Actor != "operator" ||
				entry.Details.Path != "/parking/{lot}.{format}" {
				t.Errorf("entry is %+v", entry)
			}
			acts = append(acts, entry.Details.Action+" "+entry.Details.Service)
		}
		if want := []string{"add parking", "import cars", "remove cars"}; !slices.Equal(acts, want) {
			t.Errorf("the operators' log has %v, want %v", acts, want)
		}
		var own struct{ Total int }
		apiclient.Call(t, "GET", s.API+"/audit-logs?eventType=METHODS_CHANGE", nil, ada.Bearer()...).WantStatus(t,
			http.StatusOK).Decode(t, &own)
		if own.Total != 0 {
			t.Errorf("%d of them are in a person's own log", own.Total)
		}
	})
}
