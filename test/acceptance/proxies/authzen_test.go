package proxies

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// The people and the decisions of the Todo scenario by which implementations of AuthZEN are compared:
// github.com/openid/authzen, interop/authzen-todo-backend/test/decisions-authorization-api-1_0-00.json.
// An admin may do everything, an editor may change their own entries, a viewer may read. Rules know no
// owner of an entry, so that the entries of each person are a server here, and its actions are tools.
const (
	rick   = "rick@the-citadel.com"  // admin
	morty  = "morty@the-citadel.com" // editor
	summer = "summer@the-smiths.com" // editor
	beth   = "beth@the-smiths.com"   // viewer
	jerry  = "jerry@the-smiths.com"  // viewer

	todos = "com.example/todos"
)

// question is a row of the scenario, with the answers for rick, morty, summer, beth and jerry.
type question struct {
	action, owner string // the owner is empty without an owner, and "own" for the caller
	want          string
}

func scenario() []question {
	return []question{
		{"can_read_user", "", "yyyyy"}, {"can_read_todos", "", "yyyyy"}, {"can_create_todo", "", "yyynn"},
		{"can_update_todo", rick, "ynnnn"}, {"can_update_todo", "own", "yyynn"}, {"can_update_todo", morty, "yynnn"},
		{"can_delete_todo", rick, "ynnnn"}, {"can_delete_todo", "own", "yyynn"}, {"can_delete_todo", morty, "yynnn"},
	}
}

func scenarioPeople() []string { return []string{rick, morty, summer, beth, jerry} }

// serverOf returns the server of the entries of an owner.
func serverOf(owner, caller string) string {
	if owner == "own" {
		owner = caller
	}
	if owner == "" {
		return todos
	}
	name, _, _ := strings.Cut(owner, "@")
	return todos + "-of-" + name
}

func resourceOf(q question, caller string) object {
	return object{"type": "mcp_tool", "id": q.action, "properties": object{"server": serverOf(q.owner, caller)}}
}

// TestAuthZEN puts the questions of the scenario, one by one and in lists.
func TestAuthZEN(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.publish(t, todos, "https://tools.example.com/todos")
		for _, person := range scenarioPeople() {
			e.NewPerson(t, person)
			s.publish(t, serverOf(person, ""), "https://tools.example.com/"+person)
		}
		of := func(people ...string) (subjects []string) {
			for _, p := range people {
				subjects = append(subjects, "person:"+p)
			}
			return subjects
		}
		s.setRule(t, "viewers", object{"subjects": of(scenarioPeople()...), "servers": []string{todos}, "tools": []string{"can_read_*"}})
		s.setRule(t, "editors", object{"subjects": of(rick, morty, summer), "servers": []string{todos}, "tools": []string{"can_create_todo"}})
		s.setRule(t, "admins", object{"subjects": of(rick), "servers": []string{todos + "-of-*"}})
		for _, editor := range []string{morty, summer} {
			name, _, _ := strings.Cut(editor, "@")
			s.setRule(t, "own-"+name, object{"subjects": of(editor), "servers": []string{serverOf(editor, "")}})
		}
		ask := func(path string, body object) apiclient.Response {
			t.Helper()
			return apiclient.Call(t, "POST", s.API+path, body, "Authorization", "Bearer "+s.key).WantStatus(t, http.StatusOK)
		}
		type verdict struct {
			Decision bool
			Context  struct{ Reason, DecisionID string }
		}
		one := func(person string, q question) (v verdict) {
			t.Helper()
			ask("/access/v1/evaluation", object{
				"subject": object{"type": "person", "id": person}, "action": object{"name": "tools/call"}, "resource": resourceOf(q, person),
			}).Decode(t, &v)
			return v
		}
		await.Until(t, "the rules", func() bool { return one(summer, question{"can_delete_todo", "own", ""}).Decision })
		for i, person := range scenarioPeople() {
			var list []object
			var want string
			for _, q := range scenario() {
				v := one(person, q)
				if v.Decision != (q.want[i] == 'y') || v.Context.DecisionID == "" || v.Context.Reason == "" {
					t.Errorf("%s, %+v: %+v", person, q, v)
				}
				list, want = append(list, object{"resource": resourceOf(q, person)}), want+string(q.want[i])
			}
			for semantic, cut := range map[string]string{"execute_all": "", "deny_on_first_deny": "n", "permit_on_first_permit": "y"} {
				var all struct{ Evaluations []verdict }
				ask("/access/v1/evaluations", object{
					"subject": object{"type": "person", "id": person}, "action": object{"name": "tools/call"}, "evaluations": list,
					"options": object{"evaluations_semantic": semantic},
				}).Decode(t, &all)
				got, expected := "", want
				if n := strings.Index(want, cut); cut != "" && n >= 0 {
					expected = want[:n+1]
				}
				for _, v := range all.Evaluations {
					got += map[bool]string{true: "y", false: "n"}[v.Decision]
				}
				if got != expected {
					t.Errorf("%s, %s: %s, want %s", person, semantic, got, expected)
				}
			}
		}
		s.checkEvaluationCallers(t)
	})
}

// checkEvaluationCallers sends questions of callers without the scope, and questions that are not whole.
func (s *site) checkEvaluationCallers(t *testing.T) {
	t.Helper()
	for _, path := range []string{"/access/v1/evaluation", "/access/v1/evaluations"} {
		apiclient.Call(t, "POST", s.API+path, object{}).WantStatus(t, http.StatusUnauthorized)
		apiclient.Call(t, "POST", s.API+path, object{}, "Authorization", "Bearer "+s.robot).WantStatus(t, http.StatusForbidden)
		apiclient.Call(t, "POST", s.API+path, object{}, s.operator.Bearer()...).WantStatus(t, http.StatusForbidden)
		apiclient.Call(t, "POST", s.API+path, object{}, "Authorization", "Bearer "+s.key).WantStatus(t, http.StatusBadRequest)
	}
	a := apiclient.Call(t, "GET", s.API+"/.well-known/authzen-configuration", nil).WantStatus(t, http.StatusOK)
	if !strings.Contains(string(a.Body), `"policy_decision_point":"`+publicURL+`"`) {
		t.Errorf("the decision point is %s", a.Body)
	}
	off := s.environment.Start(t)
	for _, path := range []string{"/access/v1/evaluation", "/access/v1/evaluations"} {
		apiclient.Call(t, "POST", off.API+path, object{}, "Authorization", "Bearer "+s.key).WantStatus(t, http.StatusNotImplemented)
	}
	apiclient.Call(t, "GET", off.API+"/.well-known/authzen-configuration", nil).WantStatus(t, http.StatusNotFound)
}
