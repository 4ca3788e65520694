package curation

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestViewsOfCuratedServers: review and quarantine hide versions in every view, on two instances
// (contract C-10, C-21 and C-31). The other rules of views are tested in test/acceptance/registry.
func TestViewsOfCuratedServers(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		e.RunCommand(t, "", "view", "add", "team", "--include", "com.example/*")
		e.RunCommand(t, "", "view", "add", "stable", "--deprecated", "hide")
		e.RunCommand(t, "", "view", "add", "inner", "--access", "token")
		token := strings.TrimSpace(e.RunCommand(t, "", "view", "token", "add", "inner"))
		places := []string{"all", "team", "stable", "inner/t/" + token}
		t.Run("review", func(t *testing.T) { checkPendingInViews(t, s, places) })
		t.Run("quarantine", func(t *testing.T) { checkQuarantineInViews(t, s, places) })
	})
}

// readsOfView are the paths of all reads of a view that could show a version.
func readsOfView(place, name, version string) []string {
	view := "/registries/" + place
	return []string{
		view + "/v0.1/servers?limit=100", view + "/v0/servers?limit=100&version=latest",
		view + "/v0.1/servers?search=" + name[strings.Index(name, "/")+1:],
		view + "/v0.1/servers?version=" + version, view + "/v0.1" + fixture.ServerPath(name) + "/versions",
		view + "/v0.1" + fixture.ServerPath(name, "latest"), view + "/v0" + fixture.ServerPath(name, version),
		view + "/allowlist/kiro.json", view + "/install?client=claude&server=" + name,
		view + "/install?client=claude&server=" + name + "&version=" + version,
	}
}

// wantInViews waits until each read of each view shows a version, or no read does, on each
// instance.
func (s *site) wantInViews(t *testing.T, places []string, name, version string, shown bool) {
	t.Helper()
	for _, instance := range []*fixture.Service{s.one, s.other} {
		for _, place := range places {
			for _, path := range readsOfView(place, name, version) {
				await.Until(t, path, func() bool {
					return strings.Contains(string(apiclient.Call(t, "GET", instance.API+path, nil).Body),
						markOf(name, version)) == shown
				})
			}
		}
	}
}

// checkPendingInViews: what waits for review is in no view, an approved version is in each.
func checkPendingInViews(t *testing.T, s *site, places []string) {
	const name = "com.example/viewed"
	for _, version := range []string{"1.0.0", "2.0.0"} {
		id := s.submit(t, s.ada, newEntry(name, version))
		for _, instance := range []*fixture.Service{s.one, s.other} {
			for _, place := range places {
				paths := append(readsOfView(place, name, version), "/registries/"+place+"/allowlist/claude.json",
					"/registries/"+place+"/v0.1/servers?include_deleted=true&limit=100",
					"/registries/"+place+"/v0.1/servers?updated_since=2020-01-01T00:00:00Z&limit=100")
				for _, path := range paths {
					if a := apiclient.Call(t, "GET", instance.API+path, nil); strings.Contains(string(a.Body),
						markOf(name, version)) {
						t.Errorf("%s shows what is pending: %s", path, a.Body)
					}
				}
			}
		}
		s.approve(t, s.bea, id)
		s.wantInViews(t, places, name, version, true)
	}
}

// checkQuarantineInViews puts versions in quarantine. A view that hides deprecated versions then
// has the greatest of the others as the latest.
func checkQuarantineInViews(t *testing.T, s *site, places []string) {
	const name = "com.example/viewed"
	s.approve(t, s.bea, s.submit(t, s.ada, newEntry(name, "3.0.0")))
	s.wantInViews(t, places, name, "3.0.0", true)
	s.send(t, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name, "2.0.0")+"/status", `{"status":"deprecated"}`).
		WantStatus(t, http.StatusOK)
	s.hold(t, name, "3.0.0")
	s.wantInViews(t, places, name, "3.0.0", false)
	for _, place := range places {
		want := "2.0.0"
		if place == "stable" {
			want = "1.0.0"
		}
		for _, instance := range []*fixture.Service{s.one, s.other} {
			s.wantLatestInView(t, instance.API+"/registries/"+place, name, want)
			s.wantDeniedInView(t, instance.API+"/registries/"+place, markOf(name, "3.0.0"))
		}
	}
	s.release(t, s.bea, name, "3.0.0").WantStatus(t, http.StatusNoContent)
	s.wantInViews(t, places, name, "3.0.0", true)
	s.hold(t, name, "")
	for _, version := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		s.wantInViews(t, places, name, version, false)
	}
	s.release(t, s.bea, name, "").WantStatus(t, http.StatusNoContent)
}

// wantLatestInView waits until a version is the only one of its server with the latest flag, in the
// list and by the alias.
func (s *site) wantLatestInView(t *testing.T, view, name, version string) {
	t.Helper()
	for _, path := range []string{
		"/v0.1/servers?version=latest&search=viewed", "/v0.1/servers?limit=100&search=viewed",
		"/v0.1" + fixture.ServerPath(name) + "/versions",
	} {
		await.Until(t, path+" with the latest version "+version, func() bool {
			var list fixture.ServerPage
			apiclient.Call(t, "GET", view+path, nil).WantStatus(t, http.StatusOK).Decode(t, &list)
			latest := []string{}
			for _, r := range list.Servers {
				if r.Official().IsLatest {
					latest = append(latest, r.Server["version"].(string))
				}
			}
			return len(latest) == 1 && latest[0] == version
		})
	}
	if a := apiclient.Call(t, "GET", view+"/v0.1"+fixture.ServerPath(name, "latest"), nil).WantStatus(t,
		http.StatusOK); !strings.Contains(string(a.Body), markOf(name, version)) {
		t.Errorf("the alias latest is %s, want %s", a.Body, version)
	}
}

// wantDeniedInView waits until the allow list of a view denies a remote.
func (s *site) wantDeniedInView(t *testing.T, view, mark string) {
	t.Helper()
	await.Until(t, "the allow list of "+view+" denies "+mark, func() bool {
		a := string(apiclient.Call(t, "GET", view+"/allowlist/claude.json", nil).WantStatus(t, http.StatusOK).Body)
		allowed, denied, found := strings.Cut(a, `"deniedMcpServers"`)
		return found && !strings.Contains(allowed, mark) && strings.Contains(denied, mark)
	})
}
