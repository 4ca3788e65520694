package people

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// operateGrant returns the id of the grant by which a person operates.
func (s *site) operateGrant(t *testing.T, id string) string {
	t.Helper()
	grants, _ := s.want(t, http.StatusOK, "GET", people+"/"+id, nil)["grants"].([]any)
	for _, g := range grants {
		if grant, _ := g.(object); grant["action"] == "operate" {
			text, _ := grant["id"].(string)
			return text
		}
	}
	t.Fatalf("the person has the grants %v", grants)
	return ""
}

// TestLastOperatorStays tries every way to keep the last person who can operate from it: by API, by
// a state file and by command. People who are invited, locked or disabled do not count, nor do
// service accounts. Only a command with --force does it.
func TestLastOperatorStays(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		_, own := fixture.ReadSession(t, s.Service, s.operator)
		s.invite(t, "ivy@example.com", object{"action": "operate"})
		locked := s.add(t, "lou@example.com", "operate *")
		s.want(t, http.StatusOK, "POST", people+"/"+locked+"/lock", nil)
		s.want(t, http.StatusOK, "POST", people+"/"+s.add(t, "dora@example.com", "operate *")+"/disable", nil)
		s.want(t, http.StatusCreated, "PUT", "/admin/v1/service-accounts/ci", object{})
		s.want(t, http.StatusCreated, "POST", "/admin/v1/grants", object{"service": "ci", "action": "operate"})
		s.refuseAll(t, own)
		s.want(t, http.StatusOK, "POST", people+"/"+locked+"/unlock", nil) // now there are two
		s.want(t, http.StatusOK, "POST", people+"/"+locked+"/lock", nil)
		s.refuseAll(t, own)
		s.forceAll(t)
	})
}

// refuseAll tries every way but --force to keep the operator from operating.
func (s *site) refuseAll(t *testing.T, own string) {
	t.Helper()
	const last, apply = "last_operator", "/admin/v1/apply?owner=ops"
	state := func(rest string) object {
		return object{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": []object{{"name": rest}}}
	}
	grant := "/admin/v1/grants/" + s.operateGrant(t, own) + "?force=true"
	s.wantCode(t, http.StatusConflict, last, "POST", people+"/"+own+"/lock", nil)
	s.wantCode(t, http.StatusConflict, last, "POST", people+"/"+own+"/disable", nil)
	s.wantCode(t, http.StatusConflict, last, "DELETE", grant, nil)
	managed := state("kept")
	managed["grants"] = []object{{"person": s.operator.Email, "action": "operate"}}
	s.want(t, http.StatusOK, "POST", apply+"&adopt=true", managed)
	s.wantCode(t, http.StatusConflict, last, "POST", apply+"&prune=true", state("new"))
	s.want(t, http.StatusNotFound, "GET", "/admin/v1/views/new", nil)
	s.wantCode(t, http.StatusConflict, last, "DELETE", grant, nil)
	for _, command := range []string{"user lock", "user disable", "grant remove --managed --action operate"} {
		args := append(strings.Fields(command), "--email", s.operator.Email)
		_, stderr, code := s.e.TryCommand(t, "", args...)
		if code != 1 || !strings.Contains(stderr, "the last active person who can operate") {
			t.Errorf("%s ends with %d: %s", command, code, stderr)
		}
	}
	if me := s.want(t, http.StatusOK, "GET", people+"/"+own, nil); me["state"] != "active" || s.operateGrant(t, own) == "" {
		t.Errorf("the operator is %v", me)
	}
}

// forceAll does with --force what is refused else.
func (s *site) forceAll(t *testing.T) {
	t.Helper()
	for _, command := range []string{
		"user lock --force", "user unlock", "user disable --force", "user enable",
		"grant remove --managed --action operate --force",
	} {
		s.e.RunCommand(t, "", append(strings.Fields(command), "--email", s.operator.Email)...)
	}
	s.operator.Login(t, s.Service)
	s.operator.StepUp(t, s.e, s.Service)
	apiclient.Call(t, "GET", s.API+people, nil, s.operator.Bearer()...).WantStatus(t, http.StatusForbidden)
}

// TestOperatorsLeaveAtOnce lets the two people who operate give that up at once: both by their
// grants, or one by the grant and one by a lock of the own account. One of them stays.
func TestOperatorsLeaveAtOnce(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		ada := s.e.NewWriter(t, s.Service, "ada@example.com", "operate *")
		both, ids := [2]*fixture.Person{s.operator, ada}, [2]string{}
		for i, one := range both {
			_, ids[i] = fixture.ReadSession(t, s.Service, one)
		}
		for round := range 8 {
			acts := [2][2]string{}
			for i, id := range ids {
				acts[i] = [2]string{"DELETE", "/admin/v1/grants/" + s.operateGrant(t, id)}
			}
			if round%2 > 0 {
				acts[1] = [2]string{"POST", people + "/" + ids[1] + "/lock"}
			}
			answers := fixture.CallInParallel(t, 2, func(i int) (apiclient.Response, error) {
				return apiclient.TryCall(acts[i][0], s.API+acts[i][1], nil, both[i].Bearer()...)
			})
			left := slices.IndexFunc(answers, func(a apiclient.Response) bool { return a.Status != http.StatusConflict })
			if left < 0 || answers[left].Status >= 300 || answers[1-left].Status != http.StatusConflict {
				t.Fatalf("round %d: %d and %d, want one that is done and one 409", round, answers[0].Status, answers[1].Status)
			}
			apiclient.WantAuthError(t, answers[1-left], "last_operator")
			s.operator = both[1-left]
			if acts[left][0] == "POST" {
				s.want(t, http.StatusOK, "POST", people+"/"+ids[left]+"/unlock", nil)
			} else {
				s.want(t, http.StatusCreated, "POST", "/admin/v1/grants", object{"person": ids[left], "action": "operate"})
			}
		}
	})
}
