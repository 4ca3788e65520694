package people

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
)

// TestRefusals calls each route of people without a token, as a person who does not operate, with a
// body that is not understood, and with an unknown person.
func TestRefusals(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		ada := s.e.NewWriter(t, s.Service, "ada@example.com", "publish *")
		const unknown = "/00000000-0000-4000-8000-000000000000"
		for _, route := range [][2]string{
			{"GET", ""}, {"POST", ""}, {"GET", unknown}, {"PATCH", unknown}, {"POST", unknown + "/lock"},
			{"POST", unknown + "/unlock"}, {"POST", unknown + "/disable"}, {"POST", unknown + "/enable"},
			{"POST", unknown + "/end-sessions"}, {"POST", unknown + "/remove-second-factor"},
			{"POST", unknown + "/invitation"}, {"POST", unknown + "/reset-link"}, {"GET", unknown + "/sessions"},
			{"GET", unknown + "/devices"}, {"GET", unknown + "/identities"},
		} {
			var good any
			switch {
			case route[1] == "":
				good = object{"email": "bob@example.com", "name": "Bob"}
			case route[0] == "PATCH":
				good = object{"name": "Bob"}
			}
			if route[0] == "GET" {
				good = nil
			}
			address := s.API + people + route[1]
			want := func(status int, body any, query string, header ...string) {
				t.Helper()
				if a := apiclient.Call(t, route[0], address+query, body, header...); a.Status != status {
					t.Errorf("%s %s%s: %d %s, want %d", route[0], route[1], query, a.Status, a.Body, status)
				}
			}
			want(http.StatusUnauthorized, good, "")
			want(http.StatusForbidden, good, "", ada.Bearer()...)
			switch {
			case good != nil:
				want(http.StatusBadRequest, object{"unknown": 1}, "", s.operator.Bearer()...)
			case route[0] == "GET" && route[1] != unknown:
				want(http.StatusBadRequest, nil, "?limit=0", s.operator.Bearer()...)
			default:
				address = s.API + people + strings.Replace(route[1], unknown, "/%ff", 1)
				want(http.StatusBadRequest, nil, "", s.operator.Bearer()...)
				address = s.API + people + route[1]
			}
			if route[1] != "" {
				want(http.StatusNotFound, good, "", s.operator.Bearer()...)
			}
		}
	})
}

// TestConflicts calls the acts on people that their state does not permit.
func TestConflicts(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		invited, _ := s.invite(t, "ivy@example.com")
		ids := map[string]string{"invited": invited}
		for state, act := range map[string]string{"active": "", "locked": "/lock", "disabled": "/disable"} {
			ids[state] = s.add(t, state+"@example.com")
			if act != "" {
				s.want(t, http.StatusOK, "POST", people+"/"+ids[state]+act, nil)
			}
		}
		for act, states := range map[string][]string{
			"lock": {"invited", "disabled"}, "unlock": {"invited", "disabled"}, "enable": {"invited", "locked"},
			"reset-link": {"invited", "disabled"}, "invitation": {"active", "locked", "disabled"},
			"remove-second-factor": {"invited", "active", "locked", "disabled"},
		} {
			for _, state := range states {
				s.wantCode(t, http.StatusConflict, "conflict", "POST", people+"/"+ids[state]+"/"+act, nil)
				if got := s.want(t, http.StatusOK, "GET", people+"/"+ids[state], nil); got["state"] != state {
					t.Errorf("after %s a person who was %s is %v", act, state, got["state"])
				}
			}
		}
		for _, email := range []string{"ivy@example.com", " ACTIVE@example.com "} {
			s.wantCode(t, http.StatusConflict, "conflict", "POST", people, object{"email": email, "name": "Bob"})
		}
	})
}
