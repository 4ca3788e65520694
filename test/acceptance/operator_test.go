package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// tells runs an operator command and decodes what it prints.
func (e *environment) tells(t *testing.T, into any, args ...string) {
	t.Helper()
	out := e.tollgate(t, "", append(args, "--output", "json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// wantShutOut waits until the person's access token is refused, on every
// instance.
func (p *person) wantShutOut(t *testing.T, instances ...*service) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for _, s := range instances {
		for call(t, "GET", s.api+"/sessions", nil, p.bearer()...).status == http.StatusOK {
			if time.Now().After(deadline) {
				t.Fatal("an ended session still passes")
			}
		}
		wantCode(t, call(t, "GET", s.api+"/sessions", nil, p.bearer()...).want(t, http.StatusUnauthorized), "invalid_token")
	}
}

// TestOperatorEndsSessions ends one session, then a device's, then all, while
// the service keeps copies of them.
func TestOperatorEndsSessions(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		instances := []*service{e.start(t)}
		if e.shared {
			instances = append(instances, e.start(t))
		}
		s := instances[0]
		ada := e.newPerson(t, "ada@example.com", "publish com.example/*")
		e.tollgate(t, "", "grant", "remove", "--email", ada.email, "--action", "publish", "--resource", "com.example/*")
		bob := e.newPerson(t, "bob@example.com")
		bob.login(t, s)
		type listed struct{ ID, DeviceID, TrustLevel string }
		only := func(noun string) listed {
			t.Helper()
			var list []listed
			e.tells(t, &list, noun, "list", "--email", ada.email)
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
			ada.login(t, s)
			for _, one := range instances {
				call(t, "GET", one.api+"/sessions", nil, ada.bearer()...).want(t, http.StatusOK)
			}
			var told struct{ SessionsInvalidated int }
			if e.tells(t, &told, append(end(), "--email", ada.email)...); told.SessionsInvalidated != 1 {
				t.Errorf("%d sessions ended, want one", told.SessionsInvalidated)
			}
			ada.wantShutOut(t, instances...)
		}
		call(t, "GET", s.api+"/sessions", nil, bob.bearer()...).want(t, http.StatusOK)
		ada.wantOperatorsEvents(t, e, s)
	})
}

// wantOperatorsEvents wants the person to see what the operator did, and the
// operator's search to show the same.
func (p *person) wantOperatorsEvents(t *testing.T, e *environment, s *service) {
	t.Helper()
	p.login(t, s)
	var page struct {
		Logs []struct {
			ID      string
			Details struct{ Actor, Action string }
		}
	}
	call(t, "GET", s.api+"/audit-logs?limit=1000", nil, p.bearer()...).want(t, http.StatusOK).decode(t, &page)
	var found []struct{ ID, Email string }
	e.tells(t, &found, "audit", "search", "--email", p.email, "--limit", "0")
	acts := map[string]int{}
	for i, entry := range page.Logs {
		if entry.Details.Actor == "operator" {
			acts[entry.Details.Action]++
		}
		if i >= len(found) || found[i].ID != entry.ID || found[i].Email != p.email {
			t.Fatalf("the operator's search differs from the person's at event %d: %v", i, found)
		}
	}
	if acts["end_sessions"] != 2 || acts["revoke"] != 1 || acts["add"]+acts["grant_add"]+acts["grant_remove"] != 0 {
		t.Errorf("the operator's acts are %v", acts)
	}
	p.wantGivenByOperator(t, e)
}

// wantGivenByOperator wants the account and its grants to be in the operators' log alone.
func (p *person) wantGivenByOperator(t *testing.T, e *environment) {
	t.Helper()
	var all []struct {
		Email   string
		Details struct{ Action, UserID string }
	}
	var shown struct{ ID string }
	e.tells(t, &shown, "user", "show", "--email", p.email)
	e.tells(t, &all, "audit", "search", "--type", "ACCOUNT_CHANGE", "--limit", "0")
	acts := map[string]int{}
	for _, entry := range all {
		if entry.Email == "" && entry.Details.UserID == shown.ID {
			acts[entry.Details.Action]++
		}
	}
	if acts["add"] != 1 || acts["grant_add"] != 1 || acts["grant_remove"] != 1 || len(acts) != 3 {
		t.Errorf("operators are told of %v", acts)
	}
}

// TestOperatorsGiveOneGrantAtOnce runs the same command in several processes: all succeed, and
// one of them changed something.
func TestOperatorsGiveOneGrantAtOnce(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		e.tollgate(t, password, "user", "add", "--email", "ada@example.com", "--name", "Ada", "--password-stdin")
		const rounds, processes = 4, 6
		for round := range rounds {
			var all sync.WaitGroup
			for range processes {
				all.Go(func() {
					out, told, code := e.ends(t, "", "grant", "add", "--email", "ada@example.com", "--action", "edit",
						"--resource", fmt.Sprintf("com.e%d/*", round))
					if code != 0 {
						t.Errorf("grant add ends with %d: %s%s", code, out, told)
					}
				})
			}
			all.Wait()
		}
		var grants []struct{ Email, Resource string }
		e.tells(t, &grants, "grant", "list", "--email", "ada@example.com")
		var events []struct{ Details struct{ Action string } }
		e.tells(t, &events, "audit", "search", "--type", "ACCOUNT_CHANGE", "--limit", "0")
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

// TestOperatorChangesMethods wants each change of the methods listing to be in the
// operators' log, and in nobody's own.
func TestOperatorChangesMethods(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		ada := e.newPerson(t, "ada@example.com")
		ada.login(t, s)
		file := filepath.Join(e.dir, "methods.json")
		write(t, file, `[{"method_id":7,"path":"/parking/{lot}.{format}","service_id":5,"service_name":"cars","parameters":["lot","format"]}]`)
		e.tollgate(t, "", "methods", "add", "--id", "7", "--path", "/parking/{lot}.{format}", "--service-id", "5", "--service", "parking")
		e.tollgate(t, "", "methods", "import", file)
		e.tollgate(t, "", "methods", "import", file) // which changes nothing
		e.tollgate(t, "", "methods", "remove", "7")
		var told []struct {
			UserID  string
			Details struct{ Action, Service, Path, Actor string }
		}
		e.tells(t, &told, "audit", "search", "--type", "METHODS_CHANGE", "--limit", "0")
		var acts []string
		for _, entry := range slices.Backward(told) { // newest first
			if entry.UserID != "" || entry.Details.Actor != "operator" || entry.Details.Path != "/parking/{lot}.{format}" {
				t.Errorf("told is %+v", entry)
			}
			acts = append(acts, entry.Details.Action+" "+entry.Details.Service)
		}
		if want := []string{"add parking", "import cars", "remove cars"}; !slices.Equal(acts, want) {
			t.Errorf("operators are told of %v, want %v", acts, want)
		}
		var own struct{ Total int }
		call(t, "GET", s.api+"/audit-logs?eventType=METHODS_CHANGE", nil, ada.bearer()...).want(t, http.StatusOK).decode(t, &own)
		if own.Total != 0 {
			t.Errorf("%d of them are in a person's own log", own.Total)
		}
	})
}
