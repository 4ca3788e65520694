package acceptance

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
)

// TestKillKeepsPublications kills the service while it takes publications: each
// that was answered 200 is there afterwards.
func TestKillKeepsPublications(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p := e.newPerson(t, "ada@example.com", "publish *")
		p.login(t, s)
		p.stepUp(t, e, s)
		const before, publishers = 40, 4
		var mu sync.Mutex
		var answered []string
		var wg sync.WaitGroup
		enough := make(chan struct{})
		for publisher := range publishers {
			wg.Go(func() {
				for n := 0; ; n++ {
					name := fmt.Sprintf("com.example/p%d-%d", publisher, n)
					a, err := try("POST", s.api+"/v0.1/publish", document(name, "1.0.0"), p.bearer()...)
					if err != nil {
						return // killed
					}
					if a.status != http.StatusOK {
						t.Errorf("publish answered %d: %s", a.status, a.body)
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
		<-enough
		s.process.Kill()
		wg.Wait()

		again := e.start(t)
		for _, name := range answered {
			call(t, "GET", serverURL(again, name, "/versions/1.0.0"), nil).want(t, http.StatusOK)
		}
	})
}

// TestTwoInstances lets two processes share sessions, limits and records.
func TestTwoInstances(t *testing.T) {
	e := production(t)
	first := e.start(t, "REGISTRY_RATE_LIMIT=50")
	second := e.start(t, "REGISTRY_RATE_LIMIT=50", "DATA_DIR="+filepath.Join(e.dir, "elsewhere"))
	ada := e.newPerson(t, "ada@example.com", "publish *")
	ada.login(t, first)
	ada.stepUp(t, e, second)
	call(t, "POST", second.api+"/v0.1/publish", document("com.example/both", "1.0.0"), ada.bearer()...).want(t, http.StatusOK)
	a := call(t, "GET", serverURL(first, "com.example/both", "/versions/latest"), nil).want(t, http.StatusOK)
	if got := a.header.Get("X-RateLimit-Remaining"); got != "48" {
		t.Errorf("the second request of both has %s remaining, want 48", got)
	}
	var page serverList
	call(t, "POST", first.api+"/v0.1/publish", document("com.example/both", "2.0.0"), ada.bearer()...).want(t, http.StatusOK)
	call(t, "GET", first.api+"/v0.1/servers?limit=1", nil).want(t, http.StatusOK).decode(t, &page)
	call(t, "GET", second.api+"/v0.1/servers?limit=1&cursor="+page.Metadata.NextCursor, nil).want(t, http.StatusOK)
	call(t, "POST", second.api+"/auth/refresh", map[string]string{"refreshToken": ada.refreshToken}).want(t, http.StatusOK)
	call(t, "POST", first.api+"/auth/refresh", map[string]string{"refreshToken": ada.refreshToken}).want(t, http.StatusForbidden)
	call(t, "POST", second.api+"/v0.1/publish", document("com.example/both", "3.0.0"), ada.bearer()...).
		want(t, http.StatusUnauthorized)
}

// TestPluginKilled kills the plugin that delivers codes: the service goes on
// and delivers the next.
func TestPluginKilled(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p := e.newPerson(t, "ada@example.com")
		p.login(t, s)
		p.stepUp(t, e, s)
		pids := children(t, s.process.PID())
		if len(pids) == 0 {
			t.Fatal("the service runs no plugin process")
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		call(t, "GET", s.api+"/health", nil).want(t, http.StatusOK)
		// Until the plugin is back a challenge is answered 503 and not counted.
		for {
			a := call(t, "POST", s.api+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}, p.bearer()...)
			if a.status == http.StatusOK {
				break
			}
			a.want(t, http.StatusServiceUnavailable)
		}
	})
}

// children returns the processes whose parent is the given one.
func children(t *testing.T, parent int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, pid)
		}
	}
	return found
}
