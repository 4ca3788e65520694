package people

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestFirstStart makes the first account with the code in the log, twice at once.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := startEmpty(t, e)
		link := s.setupLink(t)
		if status := s.newBrowser(t).open(t, link); status != http.StatusOK {
			t.Fatalf("the page answers %d", status)
		}
		browsers := []browser{s.newBrowser(t), s.newBrowser(t)}
		statuses := make([]int, 2)
		var group sync.WaitGroup
		for i, b := range browsers {
			group.Go(func() {
				statuses[i] = b.submit(t, link, "email", "olga@example.com", "name", "Olga", "password", fixture.Password)
			})
		}
		group.Wait()
		if statuses[0]+statuses[1] != http.StatusOK+http.StatusNotFound {
			t.Errorf("the forms answer %v, want 200 and 404", statuses)
		}
		for _, got := range []int{
			s.newBrowser(t).open(t, link), s.newBrowser(t).submit(t, link, "email", "b@example.com", "name", "B"),
		} {
			if got != http.StatusNotFound {
				t.Errorf("a dead code answers %d", got)
			}
		}
		grants := e.RunCommand(t, "", "grant", "list", "--email", "olga@example.com")
		for _, grant := range []string{"operate", "publish", "edit", "review"} {
			if !strings.Contains(grants, grant) {
				t.Errorf("%s is not in %s", grant, grants)
			}
		}
		s.wantTrusted(t, "SELECT user_id FROM sessions")
	})
}

// TestInvitation invites a person twice, and follows the links.
func TestInvitation(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		s.e.WantAuditEvents(t)
		made := s.want(t, 201, "POST", people, object{
			"email": "ada@example.com", "name": "Ada", "grants": []object{{"action": "publish", "resource": "*"}},
		})
		first, _ := made["invitation"].(object)
		if made["state"] != "invited" || first["delivered"] != true {
			t.Fatalf("the person is %v", made)
		}
		unknown, invited := s.login(t, "nobody@example.com", newPassword), s.login(t, "ada@example.com", newPassword)
		if unknown.Status != invited.Status || unknown.Status != http.StatusUnauthorized {
			t.Errorf("the sign-ins answer %d and %d", unknown.Status, invited.Status)
		}
		id, _ := made["id"].(string)
		again := s.want(t, 200, "POST", people+"/"+id+"/invitation", nil)
		old, _ := first["url"].(string)
		link, _ := again["url"].(string)
		if sent := s.awaitLink(t, "ada@example.com", 2); sent != link {
			t.Error("another link was sent")
		}
		if strings.Contains(s.Process.Log(), link) {
			t.Error("the link is in the log")
		}
		if status := s.newBrowser(t).open(t, old); status != http.StatusNotFound {
			t.Errorf("the old link answers %d", status)
		}
		b := s.newBrowser(t)
		if status := b.open(t, link); status != http.StatusOK {
			t.Errorf("the page answers %d", status)
		}
		if status := b.submit(t, link, "password", newPassword); status != http.StatusOK {
			t.Errorf("the form answers %d", status)
		}
		if status := s.newBrowser(t).open(t, link); status != http.StatusNotFound {
			t.Errorf("the used link answers %d", status)
		}
		s.wantCode(t, 409, "conflict", "POST", people+"/"+id+"/invitation", nil)
		s.login(t, "ada@example.com", newPassword).WantStatus(t, http.StatusOK)
	})
}

// TestReset requests links to set another password, and uses them.
func TestReset(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		s.e.WantAuditEvents(t)
		ada := s.e.NewPerson(t, "ada@example.com")
		ada.Login(t, s.Service)
		_, id := fixture.ReadSession(t, s.Service, ada)
		forgot := func(email string) apiclient.Response {
			return apiclient.Call(t, "POST", s.API+"/auth/password/forgot", object{"email": email}).WantStatus(t, 200)
		}
		if a, b := forgot("ada@example.com"), forgot("nobody@example.com"); string(a.Body) != string(b.Body) {
			t.Errorf("the answers are %s and %s", a.Body, b.Body)
		}
		_, code, _ := strings.Cut(s.awaitLink(t, "ada@example.com", 1), "code=")
		reset := object{"token": code, "newPassword": newPassword}
		apiclient.Call(t, "POST", s.API+"/auth/password/reset", reset).WantStatus(t, 200)
		apiclient.Call(t, "GET", s.API+"/auth/session", nil, ada.Bearer()...).WantStatus(t, 401)
		apiclient.WantAuthError(t, apiclient.Call(t, "POST", s.API+"/auth/password/reset", reset).WantStatus(t, 400),
			"invalid_input")
		s.login(t, "ada@example.com", newPassword).WantStatus(t, 200)
		link, _ := s.want(t, 200, "POST", people+"/"+id+"/reset-link", nil)["url"].(string)
		if status := s.newBrowser(t).submit(t, link, "newPassword", fixture.Password); status != http.StatusOK {
			t.Errorf("the form answers %d", status)
		}
		if status := s.newBrowser(t).open(t, link); status != http.StatusNotFound {
			t.Errorf("the used link answers %d", status)
		}
		s.login(t, "ada@example.com", fixture.Password).WantStatus(t, 200)
	})
}

// TestActs changes a person, and checks that the last operator stays.
func TestActs(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		s.e.WantAuditEvents(t)
		ada := s.e.NewPerson(t, "ada@example.com")
		ada.Login(t, s.Service)
		_, id := fixture.ReadSession(t, s.Service, ada)
		_, own := fixture.ReadSession(t, s.Service, s.operator)
		one := people + "/" + id
		for _, act := range [][2]string{
			{"lock", "locked"}, {"unlock", "active"}, {"disable", "disabled"}, {"enable", "active"}, {"end-sessions", "active"},
		} {
			if got := s.want(t, 200, "POST", one+"/"+act[0], nil); got["state"] != act[1] {
				t.Errorf("after %s the person is %v", act[0], got)
			}
		}
		s.wantCode(t, 412, "precondition_failed", "PATCH", one, object{"name": "Eve"}, "If-Match", `"0"`)
		if got := s.want(t, 200, "PATCH", one, object{"name": "Ada L"}); got["name"] != "Ada L" {
			t.Errorf("the person is %v", got)
		}
		s.wantCode(t, 409, "last_operator", "POST", people+"/"+own+"/lock", nil)
		s.wantCode(t, 409, "last_operator", "POST", people+"/"+own+"/disable", nil)
		me := s.want(t, 200, "GET", people+"/"+own, nil)
		grants, _ := me["grants"].([]any)
		if len(grants) != 1 {
			t.Fatalf("the grants are %v", grants)
		}
		grant, _ := grants[0].(object)["id"].(string)
		s.wantCode(t, 409, "last_operator", "DELETE", "/admin/v1/grants/"+grant, nil)
	})
}

// TestTwoOperatorsAtOnce lets two operators lock each other at once: one of them stays.
func TestTwoOperatorsAtOnce(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		ada := s.e.NewWriter(t, s.Service, "ada@example.com", "operate *")
		_, adaID := fixture.ReadSession(t, s.Service, ada)
		_, olgaID := fixture.ReadSession(t, s.Service, s.operator)
		paths := []string{people + "/" + adaID + "/lock", people + "/" + olgaID + "/lock"}
		headers := [][]string{s.operator.Bearer(), ada.Bearer()}
		answers := fixture.CallInParallel(t, 2, func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("POST", s.API+paths[i], nil, headers[i]...)
		})
		locked := 0
		for _, a := range answers {
			if a.Status == http.StatusOK {
				locked++
			}
		}
		if locked != 1 {
			t.Errorf("%d operators are locked: %d %d", locked, answers[0].Status, answers[1].Status)
		}
	})
}
