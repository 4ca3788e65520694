package rolling

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/apiclient"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
)

const (
	// drain is longer than a balancer that looks every lookEvery needs to see that an instance goes, also on a machine with
	// other work to do.
	drain     = 2 * time.Second
	lookEvery = 20 * time.Millisecond
	// patience is how long an instance waits for what it depends on.
	patience = 20 * time.Second
	// often is how many times each kind of work is done between two events.
	often = 10
)

// TestRollingRestart restarts two instances in turn, each as on a new machine, under a load of
// everything that the service does. No request fails, and all confirmed results exist afterwards.
func TestRollingRestart(t *testing.T) {
	e := rollingEnvironment(t)
	r := newRotation(t, e, 2)
	r.start(t, r.members...)
	c := newCrowd(t, e, r)
	for range 2 {
		for _, m := range r.members {
			c.works(t, r.members...)
			m.stop(t)
			c.works(t)
			r.start(t, m)
		}
	}
	c.works(t, r.members...)
	c.stop()
	c.check(t)
}

// nextMigration is what the next version of the program adds to the schema. It takes a while, and fails when it is applied
// twice.
const nextMigration = `SELECT pg_sleep(1);
CREATE TABLE next_version (id bigint PRIMARY KEY);
ALTER TABLE versions ADD COLUMN next_version text NOT NULL DEFAULT '';
CREATE INDEX versions_by_next_version ON versions (next_version);
ALTER TABLE sessions ADD COLUMN next_version text NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN next_version text NOT NULL DEFAULT '';
ALTER TABLE methods ADD COLUMN next_version text NOT NULL DEFAULT '';
`

// TestRollingUpgrade replaces two instances by two of the next version, which is this one with one more migration. The new
// ones start at once and one of them migrates, while the old ones serve, and go on serving afterwards.
func TestRollingUpgrade(t *testing.T) {
	e := rollingEnvironment(t)
	r := newRotation(t, e, 4)
	old, next := r.members[:2], r.members[2:]
	r.start(t, old...)
	c := newCrowd(t, e, r)
	c.works(t, old...)
	program := nextVersion(t)
	for _, m := range next {
		m.program = program
	}
	r.start(t, next...)
	if told := e.RunProgram(t, program, "", "migrate", "status"); strings.Contains(told, "pending") || !strings.Contains(told, "9999_next_version") {
		t.Errorf("after the upgrade the migrations are\n%s", told)
	}
	c.works(t, r.members...)
	for _, m := range old {
		m.stop(t)
		c.works(t, next...)
	}
	c.stop()
	c.check(t)
}

// nextVersion builds the program of the next version.
func nextVersion(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	err := instance.BuildChanged(fixture.Root, dir, fixture.RaceDetector, "cmd/tollgate", map[string]string{
		"adapters/relational/postgres/migrations/9999_next_version.sql": nextMigration,
	})
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "tollgate")
}

// rollingEnvironment returns an environment without limits on the speed of a person.
func rollingEnvironment(t *testing.T) *fixture.Environment {
	t.Helper()
	e := fixture.NewProduction(t)
	fixture.WriteFile(t, filepath.Join(e.RulesDir, "rolling.yaml"), rollingRules)
	e.Environ = append(e.Environ, fixture.RegistrySettings()...)
	e.Environ = append(e.Environ, fixture.RelaxedRiskSettings...)
	// The store and the machine may be busy with other tests; how long an answer takes is not looked at here.
	e.Environ = append(e.Environ, "SHUTDOWN_DRAIN="+drain.String(), "KVSTORE_TIMEOUT="+patience.String(), "DATABASE_STATEMENT_TIMEOUT="+patience.String())
	return e
}

// The listeners of an instance that a load balancer serves.
const (
	apiListener    = "api"
	limitsListener = "limits"
	grpcListener   = "grpc"
)

// rotation is what a balancer knows: the instances, and which of them say that they are ready.
type rotation struct {
	members []*member
	cut     atomic.Int64 // connections that an instance closed while their client would have used them again

	mu   sync.Mutex
	last []*member // in rotation
}

// member is an instance with its own addresses, which do not change when it starts again.
type member struct {
	program   string
	environ   []string
	addresses map[string]string // host:port by listener
	process   *instance.Instance
	serves    atomic.Bool // it is in rotation
}

// newRotation returns n instances of an environment, which are not started, and checks until the
// test ends which ones are ready.
func newRotation(t *testing.T, e *fixture.Environment, n int) *rotation {
	t.Helper()
	r := &rotation{}
	watching, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range n {
		m := newMember(e)
		r.members = append(r.members, m)
		all.Go(func() { m.watch(watching) })
		t.Cleanup(func() { m.tell(t) })
	}
	t.Cleanup(func() { stop(); all.Wait() })
	return r
}

func newMember(e *fixture.Environment) *member {
	m := &member{program: filepath.Join(fixture.BinDir, "tollgate"), addresses: map[string]string{}}
	m.environ = append(m.environ, e.Environ...)
	for listener, variable := range map[string]string{
		apiListener: "PORT", limitsListener: "RATELIMIT_HTTP_PORT", grpcListener: "GRPC_PORT",
	} {
		port := instance.FreePort()
		m.addresses[listener] = net.JoinHostPort("127.0.0.1", port)
		m.environ = append(m.environ, variable+"="+port)
	}
	apiclient.OtherListeners.Store(m.addresses[limitsListener], nil)
	return m
}

// start starts instances at once, each with nothing that it wrote to its disk before, and waits until they are in rotation.
func (r *rotation) start(t *testing.T, members ...*member) {
	t.Helper()
	failures := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		environ := append(append([]string{}, m.environ...), "DATA_DIR="+t.TempDir())
		all.Go(func() { m.process, failures[i] = instance.Start(m.program, environ, "serve") })
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		apiclient.OtherListeners.Store(m.process.Debug, nil)
		fixture.Await(t, "an instance in rotation", m.serves.Load)
	}
}

// next returns the address of a listener of an instance in rotation. The turn selects the instance.
// When no instance is ready, it uses the instances that were in rotation last.
func (r *rotation) next(listener string, turn int64) string {
	serving := r.serving()
	return serving[turn%int64(len(serving))].addresses[listener]
}

// serving returns the instances in rotation, or the last ones that were when there are none now.
func (r *rotation) serving() []*member {
	var serving []*member
	for _, m := range r.members {
		if m.serves.Load() {
			serving = append(serving, m)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(serving) > 0 {
		r.last = serving
	}
	return r.last
}

// watch checks the readiness of the instance repeatedly, as a load balancer does, until the context
// ends.
func (m *member) watch(ctx context.Context) {
	client := &http.Client{Timeout: drain / 2, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		a, err := apiclient.TryCallWith(client, "GET", "http://"+m.addresses[apiListener]+"/ready", nil)
		m.serves.Store(err == nil && a.Status == http.StatusOK)
	}
}

// stop ends the instance as an operator would.
func (m *member) stop(t *testing.T) {
	t.Helper()
	if err := m.process.Stop(); err != nil {
		t.Errorf("an instance ended with %v", err)
	}
}

// tell stops the instance after the test, and prints its log when the test failed.
func (m *member) tell(t *testing.T) {
	if m.process == nil {
		return
	}
	m.stop(t)
	if t.Failed() {
		t.Logf("log of an instance:\n%s", m.process.Log())
	}
}

// decisions returns how many calls over gRPC the instance has answered.
func (m *member) decisions(t *testing.T) (n int) {
	t.Helper()
	const name = "ratelimit_server.ShouldRateLimit.total_requests: "
	for line := range strings.Lines(string(apiclient.Call(t, "GET", "http://"+m.process.Debug+"/stats", nil).Body)) {
		if value, found := strings.CutPrefix(line, name); found {
			_, _ = fmt.Sscan(value, &n) // 0 where there is no number
		}
	}
	return n
}

// service returns the instance as other tests know it.
func (m *member) service(t *testing.T) *fixture.Service {
	return &fixture.Service{
		T: t, Process: m.process, GRPC: m.addresses[grpcListener],
		API: "http://" + m.addresses[apiListener], RateLimitAPI: "http://" + m.addresses[limitsListener],
	}
}

// TestReadyWithRules checks that an instance is ready only after its rate limit rules are in force,
// if it has any.
func TestReadyWithRules(t *testing.T) {
	fixture.InEachEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		file := filepath.Join(e.RulesDir, "rules.yaml")
		fixture.WriteFile(t, file, "domain: broken\ndescriptors: [{}]\n")
		s := e.StartWithoutRules(t)
		if a := apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, http.StatusServiceUnavailable); !strings.Contains(string(a.Body), `"rules":"down"`) {
			t.Errorf("/ready with wrong rules: %s", a.Body)
		}
		fixture.WriteFile(t, file, fixture.RateLimitRules)
		fixture.Await(t, "readiness", func() bool { return apiclient.Call(t, "GET", s.API+"/ready", nil).Status == http.StatusOK })
		fixture.WriteFile(t, file, "domain: broken\ndescriptors: [{}]\n")
		fixture.Await(t, "a refusal", func() bool { return strings.Contains(s.Process.Log(), "the previous one stays in force") })
		apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t, http.StatusOK)

		if err := os.RemoveAll(e.RulesDir); err != nil {
			t.Fatal(err)
		}
		without := e.StartWithoutRules(t)
		apiclient.Call(t, "GET", without.API+"/ready", nil).WantStatus(t, http.StatusOK)
	})
}
