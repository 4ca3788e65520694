package proxies

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/proxyserver"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	purgeWord = "CHANGE-THIS-TO-A-LONG-RANDOM-WORD"
	listPath  = "/v0.1/servers?limit=10"
	itemPath  = "/v0.1/servers/com.example%2Fweather/versions/latest"
	viewPath  = "/registries/all/v0.1/servers?limit=10"
)

// startVarnish runs Varnish with its example in front of the site until the test ends.
func (s *site) startVarnish(t *testing.T) proxy {
	t.Helper()
	path := proxyserver.Need(t, "varnishd")
	// Varnish takes the names of the functions of its caches from a folder whose path must be short.
	dir, address := t.TempDir(), net.JoinHostPort("127.0.0.1", instance.FreePort())
	host, port, err := net.SplitHostPort(strings.TrimPrefix(s.API, "http://"))
	must.Succeed(t, err)
	config := s.readExample(t, "../edge/varnish.vcl", address, "")
	config = strings.Replace(config, `"tollgate.internal"`, `"`+host+`"`, 1)
	config = strings.Replace(config, `.port = "3000"`, `.port = "`+port+`"`, 1)
	fixture.WriteFile(t, filepath.Join(dir, "varnish.vcl"), config)
	proxyserver.Run(t, path, dir, address, "-F", "-j", "none", "-n", filepath.Join(dir, "v"), "-a", address, "-T", "none",
		"-f", filepath.Join(dir, "varnish.vcl"), "-s", "malloc,32M")
	return proxy{"http://" + address}
}

// reply is what a client gets through Varnish.
type reply struct {
	status int
	header http.Header
	body   string
}

// read reads a path through Varnish.
func (p proxy) read(t *testing.T, path string, header ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", p.url+path, nil)
	must.Succeed(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	return reply{response.StatusCode, response.Header, string(body)}
}

// want checks the status.
func (r reply) want(t *testing.T, status int) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("the status is %d, want %d: %v %s", r.status, status, r.header, r.body)
	}
	return r
}

// TestVarnish runs Varnish with its example in front of the service: it answers reads in its place,
// also while it is stopped, drops what was put in quarantine, and keeps nothing that is private.
func TestVarnish(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := &site{environment: e, Service: e.Start(t, append(settings(), "EDGE_MAX_AGE=1h")...)}
		s.operator = e.NewWriter(t, s.Service, "olga@example.com", "operate *", "publish *", "edit *", "review *")
		s.publish(t, weather, weatherURL)
		edge := s.startVarnish(t)
		e.RunCommand(t, "", "webhook", "add", edge.url+"/purge/"+purgeWord, "--events", "purge")
		keepsReads(t, edge)
		keepsNothingPrivate(t, e, edge)
		dropsQuarantined(t, s, edge)
		s.publish(t, "com.example/clock", "https://tools.example.com/clock/mcp")
		await.Until(t, "all purges", func() bool {
			var webhooks []struct{ Pending int }
			e.ReadCommand(t, &webhooks, "webhook", "list")
			return len(webhooks) == 1 && webhooks[0].Pending == 0
		})
		edge.read(t, listPath).want(t, http.StatusOK)
		s.Stop()
		a := edge.read(t, listPath).want(t, http.StatusOK)
		if a.header.Get("X-Cache") != "hit" || !strings.Contains(a.body, "com.example/clock") {
			t.Errorf("while the service is stopped: %v %s", a.header, a.body)
		}
	})
}

// TestVarnishOutOfDate stops the service and reads what was kept for five seconds after them.
func TestVarnishOutOfDate(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := &site{environment: e, Service: e.Start(t)}
	edge := s.startVarnish(t)
	edge.read(t, listPath).want(t, http.StatusOK)
	s.Stop()
	await.Until(t, "a response that is older than five seconds", func() bool {
		age, err := strconv.Atoi(edge.read(t, listPath).want(t, http.StatusOK).header.Get("Age"))
		return err == nil && age > 6
	})
}

// readsInRow is how often each path is read.
const readsInRow = 20

// keepsReads checks that each path is read from the service once.
func keepsReads(t *testing.T, edge proxy) {
	t.Helper()
	await.Until(t, "a read that Varnish keeps", func() bool {
		for _, path := range []string{listPath, itemPath, viewPath} {
			edge.read(t, path)
		}
		return edge.read(t, viewPath).header.Get("X-Cache") == "hit"
	})
	misses := 0
	for _, path := range []string{listPath, itemPath, viewPath} {
		for range readsInRow {
			a := edge.read(t, path).want(t, http.StatusOK)
			if a.header.Get("X-Cache") != "hit" {
				misses++
			}
			if got := a.header.Get("Cache-Control"); got != "public, max-age=5, stale-while-revalidate=60, stale-if-error=86400" {
				t.Fatalf("%s has Cache-Control %q", path, got)
			}
		}
	}
	// A purge that follows the publication by 1.5 seconds may come in between.
	if misses > len([]string{listPath, itemPath, viewPath}) {
		t.Errorf("%d of %d reads were not answered by Varnish", misses, 3*readsInRow)
	}
}

// keepsNothingPrivate checks that a view for which a token is needed is never answered without it.
func keepsNothingPrivate(t *testing.T, e *fixture.Environment, edge proxy) {
	t.Helper()
	e.RunCommand(t, "", "view", "add", "inner", "--access", "token")
	token := strings.TrimSpace(e.RunCommand(t, "", "view", "token", "add", "inner"))
	await.Until(t, "the view", func() bool {
		return edge.read(t, "/registries/inner/v0.1/servers", "Authorization", "Bearer "+token).status == http.StatusOK
	})
	for range 3 {
		a := edge.read(t, "/registries/inner/t/"+token+"/v0.1/servers").want(t, http.StatusOK)
		if a.header.Get("X-Cache") != "miss" || !strings.HasPrefix(a.header.Get("Cache-Control"), "private") {
			t.Errorf("a private read: %v", a.header)
		}
		edge.read(t, "/registries/inner/v0.1/servers").want(t, http.StatusUnauthorized)
	}
}

// dropsQuarantined checks that what was put in quarantine is gone from Varnish, alone and in lists.
func dropsQuarantined(t *testing.T, s *site, edge proxy) {
	t.Helper()
	edge.read(t, itemPath).want(t, http.StatusOK)
	began := time.Now()
	apiclient.Call(t, "POST", s.API+"/v0.1/x/dev.tollgate/quarantine",
		object{"serverName": weather, "reason": "it sends what it reads"}, s.operator.Bearer()...).
		WantStatus(t, http.StatusOK)
	await.Until(t, "the purge", func() bool { return edge.read(t, itemPath).status == http.StatusNotFound })
	t.Logf("purged after %v", time.Since(began).Round(time.Millisecond))
	for _, path := range []string{listPath, viewPath} {
		if a := edge.read(t, path).want(t, http.StatusOK); strings.Contains(a.body, weather) {
			t.Errorf("%s has the server in quarantine: %s", path, a.body)
		}
	}
}
