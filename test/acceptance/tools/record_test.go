package tools

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestRecorded checks the states of lists that are sent one after the other, what everybody reads, and
// the audit log, on both databases.
func TestRecorded(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		s.publish(t, "1.0.0")
		s.want(t, "1.0.0", "")
		send := func(who *fixture.Person, body any, status int, summary string) apiclient.Response {
			t.Helper()
			a := s.call(t, "PUT", toolsPath("1.0.0"), body, who.Bearer()...).WantStatus(t, status)
			if _, got := lists(t, a); got != summary {
				t.Errorf("the answer has %q, want %q", got, summary)
			}
			s.want(t, "1.0.0", summary)
			s.want(t, "latest", summary)
			return a
		}
		first := send(s.ada, listOf("a"), http.StatusCreated, remote+" approved a")
		send(s.ada, listOf("a"), http.StatusOK, remote+" approved a")
		send(s.rita, listOf("b"), http.StatusOK, remote+" approved a, "+remote+" changed b")
		send(s.ada, listOf("c"), http.StatusOK, remote+" approved a, "+remote+" changed c")
		send(s.rita, ofPackage(1, "d"), http.StatusCreated, remote+" approved a, "+remote+" changed c, 1 approved d")
		send(s.ada, listOf("a"), http.StatusOK, remote+" approved a, 1 approved d")
		_, user := fixture.ReadSession(t, s.Service, s.ada)
		if l, _ := lists(t, first); l[0].By != user || l[0].Source != "recorded" || l[0].At == "" || len(l[0].Mark) != 64 ||
			len(l[0].Tools[0].Mark) != 64 {
			t.Errorf("the list is %+v", l[0])
		}
		s.publish(t, "2.0.0")
		s.want(t, "latest", "")
		s.want(t, "1.0.0", remote+" approved a, 1 approved d")
		acts := s.acts(t)
		if len(acts) != 6 || acts[2]["part"] != remote || acts[2]["toolState"] != "changed" || acts[4]["part"] != "package 1" ||
			acts[0]["userId"] != user || acts[0]["serverName"] != server || acts[0]["version"] != "1.0.0" {
			t.Errorf("the audit log has %v", acts)
		}
	})
}

// TestReviewed checks that with review the first list of a version that is listed already waits, also
// after review was turned off.
func TestReviewed(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e, "REGISTRY_REVIEW=on")
		e.RunCommand(t, "", "review", "rule", "add", "--pattern", "*", "--when", "any")
		s.publish(t, "1.0.0")
		for _, description := range []string{"a", "b", "a"} {
			s.call(t, "PUT", toolsPath("1.0.0"), listOf(description), s.ada.Bearer()...)
			s.want(t, "1.0.0", remote+" pending "+description)
		}
		s.Stop()
		s.Service = e.Start(t, fixture.RegistrySettings()...)
		s.ada.Login(t, s.Service)
		s.ada.StepUp(t, e, s.Service)
		s.call(t, "PUT", toolsPath("1.0.0"), listOf("c"), s.ada.Bearer()...).WantStatus(t, http.StatusOK)
		s.want(t, "1.0.0", remote+" pending c")
	})
}

// TestAtOnce checks that of many lists that are sent at once, one is the first and is approved, and one
// of the others differs from it, on both databases.
func TestAtOnce(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		s.publish(t, "1.0.0")
		answers := fixture.CallInParallel(t, 8, func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("PUT", s.API+toolsPath("1.0.0"), listOf(fmt.Sprint(i)), s.ada.Bearer()...)
		})
		created := 0
		for _, a := range answers {
			switch a.Status {
			case http.StatusCreated:
				created++
			case http.StatusOK:
			default:
				t.Errorf("a writer gets %d %s", a.Status, a.Body)
			}
		}
		all, summary := s.read(t, "1.0.0")
		if created != 1 || len(all) != 2 || all[0].State != "approved" || all[1].State != "changed" || len(s.acts(t)) != 8 {
			t.Errorf("%d writers are the first, there are %s and %d events", created, summary, len(s.acts(t)))
		}
	})
}

// TestDeletedMeanwhile checks that a list is not stored for a version that was deleted or is in
// quarantine, and that it is as readable as the version.
func TestDeletedMeanwhile(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := openSite(t, e)
		s.publish(t, "1.0.0")
		s.call(t, "PUT", toolsPath("1.0.0"), listOf("a"), s.ada.Bearer()...).WantStatus(t, http.StatusCreated)
		quarantine := map[string]any{"serverName": server, "version": "1.0.0", "reason": "it looks wrong"}
		s.call(t, "POST", "/v0.1/x/dev.tollgate/quarantine", quarantine, s.rita.Bearer()...).WantStatus(t, http.StatusOK)
		s.call(t, "PUT", toolsPath("1.0.0"), listOf("b"), s.ada.Bearer()...).WantStatus(t, http.StatusForbidden)
		s.call(t, "GET", toolsPath("1.0.0"), nil).WantStatus(t, http.StatusNotFound)
		s.call(t, "DELETE", "/v0.1/x/dev.tollgate/quarantine?serverName="+fixture.EscapePath(server)+"&version=1.0.0", nil, s.rita.Bearer()...).
			WantStatus(t, http.StatusNoContent)
		s.call(t, "DELETE", "/v0.1"+fixture.ServerPath(server, "1.0.0"), nil, s.ada.Bearer()...).WantStatus(t, http.StatusOK)
		s.call(t, "PUT", toolsPath("1.0.0"), listOf("b"), s.ada.Bearer()...).WantStatus(t, http.StatusNotFound)
		s.call(t, "GET", toolsPath("1.0.0"), nil).WantStatus(t, http.StatusNotFound)
		kept := s.call(t, "GET", toolsPath("1.0.0")+"?include_deleted=true", nil).WantStatus(t, http.StatusOK)
		if _, summary := lists(t, kept); summary != remote+" approved a" {
			t.Errorf("a deleted version has %s", summary)
		}
	})
}

// TestRefusedLists checks bodies that are no list: each is 400 with a sentence, and nothing is stored.
func TestRefusedLists(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		s.publish(t, "1.0.0")
		for name, body := range map[string]string{
			"a member twice":   `{"remote":"` + remote + `","tools":[{"name":"a","description":"x","description":"y"}]}`,
			"half a pair":      `{"remote":"` + remote + `","tools":[{"name":"a","description":"\ud800"}]}`,
			"a large number":   `{"remote":"` + remote + `","tools":[{"name":"a","inputSchema":{"maximum":1e400}}]}`,
			"two of one name":  `{"remote":"` + remote + `","tools":[{"name":"a"},{"name":"a"}]}`,
			"another remote":   `{"remote":"https://other.example/mcp","tools":[]}`,
			"another package":  `{"package":2,"tools":[]}`,
			"no place":         `{"tools":[]}`,
			"a large tool":     `{"package":0,"tools":[{"name":"a","title":"` + strings.Repeat("x", 64<<10) + `"}]}`,
			"a deep schema":    `{"package":0,"tools":[{"name":"a","inputSchema":` + strings.Repeat(`{"x":`, 11_000) + "1" + strings.Repeat("}", 11_000) + `}]}`,
			"control sequence": `{"package":0,"tools":[{"name":"a\u001b[8m"}]}`,
		} {
			a := s.call(t, "PUT", toolsPath("1.0.0"), body, append(s.ada.Bearer(), "Content-Type", "application/json")...)
			if sentence := apiclient.WantRegistryError(t, a); a.Status != http.StatusBadRequest || len(sentence) > 300 {
				t.Errorf("%s is %d %.200s", name, a.Status, a.Body)
			}
		}
		s.call(t, "PUT", toolsPath("1.0.0"), strings.Repeat(" ", 1<<20+64<<10+1), append(s.ada.Bearer(), "Content-Type", "application/json")...).
			WantStatus(t, http.StatusRequestEntityTooLarge)
		s.want(t, "1.0.0", "")
		acts := s.acts(t)
		if len(acts) != 10 {
			t.Errorf("there are %d events of refused lists: %v", len(acts), acts)
		}
		for _, a := range acts {
			if a["reason"] == nil || a["toolState"] != nil {
				t.Errorf("an event of a refused list is %v", a)
			}
		}
	})
}

// TestWritesOff checks that without writes no one records a list, and everybody reads.
func TestWritesOff(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		s.publish(t, "1.0.0")
		s.call(t, "PUT", toolsPath("1.0.0"), listOf("a"), s.ada.Bearer()...).WantStatus(t, http.StatusCreated)
		s.Stop()
		s.Service = e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_WRITES=off")...)
		for _, header := range [][]string{nil, s.ada.Bearer()} {
			s.call(t, "PUT", toolsPath("1.0.0"), listOf("b"), header...).WantStatus(t, http.StatusNotImplemented)
		}
		s.want(t, "1.0.0", remote+" approved a")
	})
}

// TestAsReadableAsTheVersion checks lists in views and in a private registry, and that an answer that a
// client has is good until the lists change.
func TestAsReadableAsTheVersion(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		e.RunCommand(t, "", "view", "add", "team", "--include", "com.example/*")
		e.RunCommand(t, "", "view", "add", "others", "--include", "org.example/*")
		s.publish(t, "1.0.0")
		empty := s.call(t, "GET", toolsPath("1.0.0"), nil).WantStatus(t, http.StatusOK)
		tag := empty.Header.Get("ETag")
		s.call(t, "GET", toolsPath("1.0.0"), nil, "If-None-Match", tag).WantStatus(t, http.StatusNotModified)
		s.call(t, "PUT", toolsPath("1.0.0"), listOf("a"), s.ada.Bearer()...).WantStatus(t, http.StatusCreated)
		changed := s.call(t, "GET", toolsPath("1.0.0"), nil, "If-None-Match", tag).WantStatus(t, http.StatusOK)
		if changed.Header.Get("ETag") == tag {
			t.Errorf("the tag is %q still", tag)
		}
		in := s.call(t, "GET", "/registries/team"+toolsPath("latest"), nil).WantStatus(t, http.StatusOK)
		if string(in.Body) != string(changed.Body) {
			t.Errorf("the view has %s, and the registry %s", in.Body, changed.Body)
		}
		s.call(t, "GET", "/registries/others"+toolsPath("1.0.0"), nil).WantStatus(t, http.StatusNotFound)
		s.call(t, "GET", toolsPath("1.0.0")+"?include_deleted=x", nil).WantStatus(t, http.StatusBadRequest)
		document := s.call(t, "GET", "/v0.1"+fixture.ServerPath(server, "1.0.0"), nil).WantStatus(t, http.StatusOK)
		if strings.Contains(string(document.Body), "forecast") {
			t.Errorf("the list is in the document: %s", document.Body)
		}
		s.Stop()
		s.Service = e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_READ=people")...)
		s.call(t, "GET", toolsPath("1.0.0"), nil).WantStatus(t, http.StatusUnauthorized)
		private := s.call(t, "GET", toolsPath("1.0.0"), nil, s.ada.Bearer()...).WantStatus(t, http.StatusOK)
		if control := private.Header.Get("Cache-Control"); !strings.HasPrefix(control, "private") || private.Header.Get("Surrogate-Key") != "" {
			t.Errorf("others may keep what is private: %q", control)
		}
	})
}
