package mirroring

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// checkOneReads checks that commands and instances read for a mirror one after the other: the pages
// of two reads never alternate.
func checkOneReads(t *testing.T, s *site) {
	up := upstream.Start(t, records("single", 250)...)
	s.add(t, "single", up)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { s.sync(t, "single", "--full") })
	}
	all.Wait()
	s.wantListed(t, "example.single", linesOf("single", 250, "single")...)
	for i, request := range up.Requests() {
		if first := !strings.Contains(request, "cursor="); first != (i%3 == 0) {
			t.Fatalf("the requests of two reads alternate: %q", up.Requests())
		}
	}
}

// checkKilled kills a command in the middle of a first read of servers with three versions each.
// What is listed then is whole, and the next read completes it when the lease has ended (contract
// C-62, C-63).
func checkKilled(t *testing.T, s *site) {
	const servers = 200
	var all []upstream.Record
	var want []string
	for i := range servers {
		for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
			all = append(all, upstream.Record{Document: upstream.Document(serverOf("killed", i), v, "Forecasts")})
			want = append(want, serverOf("killed", i)+"@"+v+" active of killed")
		}
	}
	up := upstream.Start(t, all...)
	up.Behave(upstream.Behaviour{Fault: upstream.Status(http.StatusNotFound)}) // until the command begins
	s.add(t, "killed", up)
	await.Until(t, "the service has tried", func() bool { return s.state(t, "killed").State == "failing" })
	up.Behave(upstream.Behaviour{})
	command := exec.Command(filepath.Join(fixture.BinDir, "tollgate"), "mirror", "sync", "killed")
	command.Env = s.e.Environ
	must.Succeed(t, command.Start())
	first := s.one.API + "/v0.1" + fixture.ServerPath(serverOf("killed", 0), "1.0.0")
	await.Until(t, "something is listed", func() bool {
		a, err := apiclient.TryCall("GET", first, nil)
		return err == nil && a.Status == http.StatusOK
	})
	_ = command.Process.Kill() // it may have ended
	_ = command.Wait()         // it was killed
	lines, err := listed(s.other, "example.killed")
	if err != nil || !slices.Equal(lines, want[:len(lines)]) || len(lines)%3 != 0 {
		t.Errorf("after the kill %d versions are listed, error %v", len(lines), err)
	}
	t.Logf("killed after %d of %d versions", len(lines), len(want))
	s.e.EndLease(t, "mirrors", "name = 'killed'", 30*time.Second)
	s.sync(t, "killed")
	s.wantListed(t, "example.killed", want...)
}

// checkEvents checks that webhooks get what mirrors change.
func checkEvents(t *testing.T, s *site) {
	var mu sync.Mutex
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ Type, ServerName, Version string }
		decode(t, r, &body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, body.Type+" "+body.ServerName+"@"+body.Version)
	}))
	defer receiver.Close()
	s.e.RunCommand(t, "", "webhook", "add", receiver.URL, "--events", "published,replaced,status", "--pattern",
		"com.example.event/*")
	want := func(lines ...string) {
		t.Helper()
		await.Until(t, fmt.Sprintf("the events %q", lines), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(got, lines)
		})
		mu.Lock()
		got = nil
		mu.Unlock()
	}
	up := upstream.Start(t, records("event", 1)...)
	s.add(t, "event", up)
	s.sync(t, "event")
	name := serverOf("event", 0)
	want("published " + name + "@1.0.0")
	up.Put(upstream.Record{
		Document: upstream.Document(name, "1.0.0", "Another document"), Status: "deprecated", UpdatedAt: time.Now(),
	})
	s.sync(t, "event")
	want("replaced "+name+"@1.0.0", "status "+name+"@1.0.0")
	s.e.RunCommand(t, "", "mirror", "remove", "event", "--purge")
	want("status " + name + "@") // of the whole server
}

// checkTollgate mirrors a view with a token of another Tollgate. What waits or is hidden there does
// not come over.
func checkTollgate(t *testing.T, s *site) {
	e := fixture.NewEnvironment(t, "embedded")
	e.Environ = append(append(e.Environ, fixture.RegistrySettings()...), "REGISTRY_REVIEW=on")
	source := e.Start(t)
	cem := e.NewWriter(t, source, "cem@example.com", "publish *", "edit *")
	e.RunCommand(t, "", "review", "rule", "add", "--pattern", "com.example.twin/listed*", "--when", "any")
	publish := func(name string) {
		t.Helper()
		apiclient.Call(t, "POST", source.API+"/v0.1/publish", fixture.NewServerDocument(name, "1.0.0"),
			cem.Bearer()...).WantStatus(t, http.StatusOK)
	}
	for _, name := range []string{"com.example.twin/listed-a", "com.example.twin/listed-b", "com.example.twin/waits"} {
		publish(name)
	}
	e.RunCommand(t, "", "registry", "quarantine", "com.example.twin/listed-b", "--reason", "it sends mail")
	e.RunCommand(t, "", "view", "add", "team", "--include", "com.example.twin/*", "--access", "token")
	token := strings.TrimSpace(e.RunCommand(t, "", "view", "token", "add", "team"))
	s.e.RunCommand(t, "", "mirror", "add", "twin", source.API+"/registries/team/t/"+token)
	s.sync(t, "twin")
	s.wantListed(t, "example.twin", "com.example.twin/listed-a@1.0.0 active of twin",
		"com.example.twin/listed-b@1.0.0 deleted of twin")
	for what, text := range map[string]string{
		"mirror list": s.e.RunCommand(t, "", "mirror", "list", "--output", "json"),
		"a read":      string(apiclient.Call(t, "GET", s.one.API+"/v0.1/servers?search=example.twin", nil).Body),
	} {
		if strings.Contains(text, token) {
			t.Errorf("%s shows the token", what)
		}
		wantContains(t, text, source.API+"/registries/team/t/***")
	}
	publish("com.example.twin/listed-c")
	e.RunCommand(t, "", "registry", "release", "com.example.twin/listed-b")
	if got := s.sync(t, "twin"); got.Full || got.Added != 1 || got.Status != 1 {
		t.Errorf("the second sync: %+v", got)
	}
	s.wantListed(t, "example.twin", "com.example.twin/listed-a@1.0.0 active of twin",
		"com.example.twin/listed-b@1.0.0 active of twin", "com.example.twin/listed-c@1.0.0 active of twin")
}
