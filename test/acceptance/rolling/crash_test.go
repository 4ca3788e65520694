package rolling

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestKillKeepsPublications kills the service during publications. Each version that got the
// response 200 exists afterwards.
func TestKillKeepsPublications(t *testing.T) {
	t.Parallel()
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := e.StartProcess(t)
		p := e.NewWriter(t, s, "ada@example.com", "publish *")
		const before, publishers = 40, 4
		var mu sync.Mutex
		var answered []string
		var wg sync.WaitGroup
		enough := make(chan struct{})
		for publisher := range publishers {
			wg.Go(func() {
				for n := 0; ; n++ {
					name := fmt.Sprintf("com.example/p%d-%d", publisher, n)
					a, err := apiclient.TryCall("POST", s.API+"/v0.1/publish", fixture.NewServerDocument(name, "1.0.0"),
						p.Bearer()...)
					if err != nil {
						return // killed
					}
					if a.Status != http.StatusOK {
						t.Errorf("publish answered %d: %s", a.Status, a.Body)
						return
					}
					mu.Lock()
					if answered = append(answered, name); len(answered) == before {
						close(enough)
					}
					mu.Unlock()
				}
			})
		}
		await.Closed(t, "publications", enough)
		s.Process.Kill()
		wg.Wait()

		again := e.Start(t)
		for _, name := range answered {
			apiclient.Call(t, "GET", fixture.ServerURL(again, name, "/versions/1.0.0"), nil).WantStatus(t,
				http.StatusOK)
		}
	})
}

// TestTwoInstances checks that two processes share sessions, limits and records.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	e := fixture.NewProduction(t)
	first := e.Start(t, "REGISTRY_RATE_LIMIT=50")
	second := e.Start(t, "REGISTRY_RATE_LIMIT=50", "DATA_DIR="+filepath.Join(e.Dir, "elsewhere"))
	ada := e.NewPerson(t, "ada@example.com", "publish *")
	ada.Login(t, first)
	ada.StepUp(t, e, second)
	apiclient.Call(t, "POST", second.API+"/v0.1/publish", fixture.NewServerDocument("com.example/both", "1.0.0"),
		ada.Bearer()...).WantStatus(t, http.StatusOK)
	a := apiclient.Call(t, "GET", fixture.ServerURL(first, "com.example/both", "/versions/latest"), nil).WantStatus(t,
		http.StatusOK)
	if got := a.Header.Get("X-RateLimit-Remaining"); got != "48" {
		t.Errorf("the second request of both has %s remaining, want 48", got)
	}
	var page fixture.ServerPage
	apiclient.Call(t, "POST", first.API+"/v0.1/publish", fixture.NewServerDocument("com.example/both", "2.0.0"),
		ada.Bearer()...).WantStatus(t, http.StatusOK)
	apiclient.Call(t, "GET", first.API+"/v0.1/servers?limit=1", nil).WantStatus(t, http.StatusOK).Decode(t, &page)
	apiclient.Call(t, "GET", second.API+"/v0.1/servers?limit=1&cursor="+page.Next(), nil).WantStatus(t, http.StatusOK)
	apiclient.Call(t, "POST", second.API+"/auth/refresh", map[string]string{"refreshToken": ada.RefreshToken}).
		WantStatus(t, http.StatusOK)
	apiclient.Call(t, "POST", first.API+"/auth/refresh", map[string]string{"refreshToken": ada.RefreshToken}).
		WantStatus(t, http.StatusForbidden)
	apiclient.Call(t, "POST", second.API+"/v0.1/publish", fixture.NewServerDocument("com.example/both", "3.0.0"),
		ada.Bearer()...).
		WantStatus(t, http.StatusUnauthorized)
}

// TestPluginKilled kills the plugin that delivers codes. The service continues and delivers the
// next code.
func TestPluginKilled(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := e.StartProcess(t)
		p := e.NewPerson(t, "ada@example.com")
		p.Login(t, s)
		p.StepUp(t, e, s)
		pids := childProcesses(t, s.Process.PID())
		if len(pids) == 0 {
			t.Fatal("the service runs no plugin process")
		}
		for _, pid := range pids {
			must.Succeed(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		apiclient.Call(t, "GET", s.API+"/health", nil).WantStatus(t, http.StatusOK)
		// Until the plugin runs again, a challenge returns 503 and is not counted.
		await.Until(t, "a challenge", func() bool {
			a := apiclient.Call(t, "POST", s.API+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"},
				p.Bearer()...)
			if a.Status != http.StatusOK {
				a.WantStatus(t, http.StatusServiceUnavailable)
			}
			return a.Status == http.StatusOK
		})
	})
}

// childProcesses returns the processes whose parent is the given one.
func childProcesses(t *testing.T, parent int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	must.Succeed(t, err)
	var found []int
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// pid (name) state ppid …; the name may hold anything but its last ')'.
		_, rest, _ := bytes.Cut(content[bytes.LastIndexByte(content, ')'):], []byte(" "))
		fields := strings.Fields(string(rest))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			must.Succeed(t, err)
			found = append(found, pid)
		}
	}
	return found
}
