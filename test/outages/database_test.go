package outages

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	serversPath = "/v0.1/servers"
	methodsPath = "/v2/api/methods.json"

	// crowd is a number of callers that is much larger than poolSize, the number of connections.
	crowd    = 60
	poolSize = 4
	// soon is the time within which all callers of a crowd must get a response. Each waits up to
	// DATABASE_TIMEOUT, 3 s; in sequence they would take three minutes.
	soon = await.Timeout
)

// startPostgres starts a PostgreSQL server for the test.
func startPostgres(t *testing.T) *instance.Postgres {
	t.Helper()
	if !instance.PostgresInstalled() {
		t.Skip("PostgreSQL is not installed")
	}
	p, err := instance.NewPostgres(built)
	must.Succeed(t, err)
	t.Cleanup(p.Remove)
	must.Succeed(t, p.Start())
	return p
}

// startOnPostgres starts a service that connects to PostgreSQL at an address. It keeps no
// responses, so that each read reaches the database.
func startOnPostgres(t *testing.T, p *instance.Postgres, address string, environ ...string) *service {
	t.Helper()
	return startService(t,
		append(environ, "DATABASE_URL="+p.URL(address), fmt.Sprintf("DATABASE_MAX_CONNS=%d", poolSize),
			"REGISTRY_RATE_LIMIT=0", "AUTH_RATE_LIMIT=0", "REGISTRY_CACHE_BYTES=0")...)
}

// answers holds the number of responses of a crowd by status.
type answers map[int]int

// callInParallel sends concurrent requests for a path and returns the statuses. A 503 without
// Retry-After counts as 0.
func (s *service) callInParallel(path string, callers int) answers {
	s.t.Helper()
	got := answers{}
	var mu sync.Mutex
	var all sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	for range callers {
		all.Go(func() {
			status := 0
			if r, err := client.Get("http://" + s.API + path); err == nil {
				_, _ = io.Copy(io.Discard, r.Body) // the status is what counts
				_ = r.Body.Close()                 // likewise
				if status = r.StatusCode; status == http.StatusServiceUnavailable && r.Header.Get("Retry-After") == "" {
					status = 0
				}
			}
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
	}
	all.Wait()
	return got
}

func (s *service) wantAll(what string, got answers, status int) {
	s.t.Helper()
	if !maps.Equal(got, answers{status: sumAnswers(got)}) {
		s.t.Errorf("%s: %v, want only %d", what, got, status)
	}
}

func sumAnswers(a answers) int {
	n := 0
	for _, count := range a {
		n += count
	}
	return n
}

// doWithin fails the test if do takes longer than the bound.
func doWithin(t *testing.T, what string, bound time.Duration, do func()) {
	t.Helper()
	began := time.Now()
	do()
	took := time.Since(began)
	t.Logf("%s: %v", what, took.Round(time.Millisecond))
	if took > bound {
		t.Errorf("%s took %v", what, took)
	}
}

// consolePath is the path of the catalogue in the console, whose pages are not kept.
const consolePath = "/console/"

// remoteServer is a PostgreSQL server that the service reaches through a proxy.
type remoteServer struct {
	*instance.Postgres
	wire    *breakableProxy
	standby *instance.Postgres // nil unless a failure needs one
}

// url returns the address of its database behind the proxy.
func (s remoteServer) url() string { return s.URL(s.wire.address()) }

// failure is a way in which a server becomes unavailable and is back again.
type failure struct {
	name       string
	away, back func(remoteServer) error
	readable   bool // the database can be read all the time, except for moments
	standby    bool // it needs a standby
}

// failures are those after which no call is answered.
var failures = []failure{
	{name: "frozen", away: remoteServer.Freeze, back: remoteServer.Thaw},
	{name: "stopped", away: func(s remoteServer) error { s.Stop(); return nil }, back: remoteServer.Start},
	{
		name: "cut off", away: func(s remoteServer) error { s.wire.stopForwarding(); return nil },
		back: func(s remoteServer) error { s.wire.forwardNewConnections(); return nil },
	},
}

// mostFailures returns the failures without, in a short run, the first: TestDatabaseAway and
// TestReadsWhileTheDatabaseIsAway freeze the server always.
func mostFailures() []failure {
	if testing.Short() {
		return failures[1:]
	}
	return failures
}

// eachFailure runs a test with a server of its own for each failure.
func eachFailure(t *testing.T, list []failure, test func(t *testing.T, on remoteServer, f failure)) {
	t.Helper()
	for _, f := range list {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			on := remoteServer{Postgres: startPostgres(t)}
			if f.standby {
				var err error
				on.standby, err = on.NewStandby()
				must.Succeed(t, err)
				t.Cleanup(on.standby.Remove)
			}
			on.wire = newBreakableProxy(t, on.Address)
			test(t, on, f)
		})
	}
}

// TestDatabaseAway makes PostgreSQL unavailable in different ways. All callers get an error with
// Retry-After within a bound, and successful responses as soon as PostgreSQL is back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	eachFailure(t, failures, func(t *testing.T, on remoteServer, f failure) {
		s := startOnPostgres(t, on.Postgres, on.wire.address())
		s.wantAll("before", s.callInParallel(serversPath, crowd), http.StatusOK)
		must.Succeed(t, f.away(on))
		doWithin(t, "a crowd", soon, func() {
			s.wantAll("away", s.callInParallel(serversPath, crowd), http.StatusServiceUnavailable)
		})
		await.Until(t, "the metric of a database that is away", func() bool {
			return s.readMetric("tollgate_database_available") == 0
		})
		doWithin(t, "one after the other", soon, func() {
			for range crowd {
				s.wantAll("away", s.callInParallel(serversPath, 1), http.StatusServiceUnavailable)
			}
		})
		doWithin(t, "the console", soon, func() {
			s.wantAll("the console", s.callInParallel(consolePath, crowd), http.StatusServiceUnavailable)
		})
		if _, body := getPage(t, "http://"+s.API+consolePath); !strings.Contains(body, "<h1>") ||
			!strings.Contains(body, "Try again") {
			t.Errorf("the page without a database does not say what to do:\n%s", body)
		}
		if status, body := getPage(t, "http://"+s.API+"/ready"); status != http.StatusServiceUnavailable ||
			!strings.Contains(body, `"database":"down"`) {
			t.Errorf("/ready: %d %s", status, body)
		}
		must.Succeed(t, f.back(on))
		await.Until(t, "the metric of a database that is there", func() bool {
			return s.readMetric("tollgate_database_available") == 1
		})
		doWithin(t, "a crowd afterwards", soon, func() {
			s.wantAll("back", s.callInParallel(serversPath, crowd), http.StatusOK)
		})
		s.wantAll("the console", s.callInParallel(consolePath, crowd), http.StatusOK)
		for _, line := range []string{"the database does not answer", "the database answers again"} {
			if n := strings.Count(s.Log(), line); n == 0 {
				t.Errorf("the log does not say that %s", line)
			}
		}
	})
}

// breakableProxy forwards connections to a server. After stopForwarding it discards all data but
// keeps the connections open, like a firewall that forgets connections. Connections made after
// forwardNewConnections work again.
type breakableProxy struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	dead   bool
	cuts   int // number of calls of stopForwarding
}

func newBreakableProxy(t *testing.T, target string) *breakableProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	w := &breakableProxy{listener: l, target: target}
	t.Cleanup(func() { _ = l.Close() }) // all clients are disconnected by now
	go w.acceptConnections()
	return w
}

func (w *breakableProxy) address() string { return w.listener.Addr().String() }

func (w *breakableProxy) stopForwarding() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	w.cuts++
}

// setTarget makes new connections go to another server.
func (w *breakableProxy) setTarget(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = address
}

func (w *breakableProxy) forwardNewConnections() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = false
}

// canForward reports whether a connection that was made after the given number of breaks still
// works.
func (w *breakableProxy) canForward(cuts int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.dead && w.cuts == cuts
}

func (w *breakableProxy) acceptConnections() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		cuts, target := w.cuts, w.target
		w.mu.Unlock()
		if !w.canForward(cuts) {
			go func() { _, _ = io.Copy(io.Discard, near) }() // until its end
			continue
		}
		far, err := net.Dial("tcp", target)
		if err != nil {
			_ = near.Close() // as the server itself would refuse it
			continue
		}
		go w.copyData(near, far, cuts)
		go w.copyData(far, near, cuts)
	}
}

func (w *breakableProxy) copyData(from, to net.Conn, cuts int) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !w.canForward(cuts) {
			if err != nil {
				return
			}
			continue
		}
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		if err != nil {
			_ = to.Close()   // each end detects the close of the other
			_ = from.Close() // likewise
			return
		}
	}
}

// TestSlowStatement blocks the readers of one table. They get 503, and the service does not treat
// the database as unavailable.
func TestSlowStatement(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	s := startOnPostgres(t, p, p.Address)
	other := p.Open()
	defer func() { _ = other.Close() }() // the test is over
	tx, err := other.BeginTx(t.Context(), nil)
	must.Succeed(t, err)
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE versions IN ACCESS EXCLUSIVE MODE")
	must.Succeed(t, err)
	doWithin(t, "a crowd", soon, func() {
		s.wantAll("locked", s.callInParallel(serversPath, crowd), http.StatusServiceUnavailable)
	})
	doWithin(t, "others", soon, func() {
		s.wantAll("what is not locked", s.callInParallel(methodsPath, crowd), http.StatusOK)
	})
	must.Succeed(t, tx.Rollback())
	s.wantAll("afterwards", s.callInParallel(serversPath, crowd), http.StatusOK)
	if strings.Contains(s.Log(), "the database does not answer") {
		t.Error("a slow statement counts as a database that is away")
	}
}

// TestConnectionsLost closes all connections repeatedly while readers continue. No reader gets an
// error.
func TestConnectionsLost(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	s := startOnPostgres(t, p, p.Address, "DATABASE_TIMEOUT=30s")
	other := p.Open()
	defer func() { _ = other.Close() }() // the test is over
	other.SetMaxOpenConns(1)
	got, ended := answers{}, 0
	for range 10 {
		// In each round, all callers lose their connection once.
		crowd := make(chan answers)
		go func() { crowd <- s.callInParallel(serversPath, 4*poolSize) }()
		var n int
		row := other.QueryRowContext(t.Context(),
			"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'tollgate%'")
		must.Succeed(t, row.Scan(&n))
		ended += n
		for status, n := range <-crowd {
			got[status] += n
		}
	}
	t.Logf("%d connections ended, answers %v", ended, got)
	if ended < 10 {
		t.Errorf("only %d connections ended", ended)
	}
	s.wantAll("reads", got, http.StatusOK)
}

// loginBody returns the body of a login that fails. The service writes the failure to the database.
func loginBody(n int) string {
	return fmt.Sprintf(`{"email":"nobody%d@example.com","password":"wrong","deviceInfo":{}}`, n)
}

// failLogins makes failing logins at once and returns the responses.
func (s *service) failLogins(callers int) answers {
	s.t.Helper()
	statuses := make([]int, callers)
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			r, err := http.Post("http://"+s.API+"/auth/login", "application/json", strings.NewReader(loginBody(n)))
			if err == nil {
				statuses[n] = r.StatusCode
				if statuses[n] == http.StatusServiceUnavailable && r.Header.Get("Retry-After") == "" {
					statuses[n] = 0
				}
				_ = r.Body.Close() // the status is what counts
			}
		})
	}
	all.Wait()
	got := answers{}
	for _, status := range slices.Sorted(slices.Values(statuses)) {
		got[status]++
	}
	return got
}
