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

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	// drainTime is long enough for a balancer that checks every checkInterval to notice that an
	// instance stops, even on a busy machine.
	drainTime     = 2 * time.Second
	checkInterval = 50 * time.Millisecond
	// minSteps is the number of steps of each kind of work between two events.
	minSteps = 10
)

// TestRollingRestart restarts two instances in turn, each as on a new machine, under a load of
// everything that the service does; in a long run, twice. No request fails, and all confirmed
// results exist afterwards.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	rounds := 1
	if !testing.Short() {
		rounds = 2
	}
	e := newRollingEnvironment(t)
	r := newRotation(t, e, 2)
	r.start(t, r.members...)
	c := newWorkload(t, e, r)
	for range rounds {
		for _, m := range r.members {
			c.awaitWork(t, r.members...)
			m.stop(t)
			c.awaitWork(t)
			r.start(t, m)
		}
	}
	c.awaitWork(t, r.members...)
	c.stop()
	c.checkResults(t)
}

// nextMigration is the additional migration of the next version. It takes some time, and fails when
// it is applied twice.
const nextMigration = `SELECT pg_sleep(1);
CREATE TABLE next_version (id bigint PRIMARY KEY);
ALTER TABLE versions ADD COLUMN next_version text NOT NULL DEFAULT '';
CREATE INDEX versions_by_next_version ON versions (next_version);
ALTER TABLE sessions ADD COLUMN next_version text NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN next_version text NOT NULL DEFAULT '';
ALTER TABLE methods ADD COLUMN next_version text NOT NULL DEFAULT '';
`

// TestRollingUpgrade replaces two instances by two of the next version, which has one more
// migration. The new instances start at once; one of them migrates while the old ones serve
// requests, and the old ones continue afterwards.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	program := buildNextVersion(t) // before there is a load, which would last as long as the build
	e := newRollingEnvironment(t)
	r := newRotation(t, e, 4)
	old, next := r.members[:2], r.members[2:]
	r.start(t, old...)
	c := newWorkload(t, e, r)
	c.awaitWork(t, old...)
	for _, m := range next {
		m.program = program
	}
	r.start(t, next...)
	if told := e.RunProgram(t, program, "", "migrate", "status"); strings.Contains(told, "pending") ||
		!strings.Contains(told, "9999_next_version") {
		t.Errorf("after the upgrade the migrations are\n%s", told)
	}
	c.awaitWork(t, r.members...)
	for _, m := range old {
		m.stop(t)
		c.awaitWork(t, next...)
	}
	c.stop()
	c.checkResults(t)
}

// buildNextVersion builds the program of the next version.
func buildNextVersion(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	err := instance.BuildChanged(fixture.Root, dir, fixture.RaceDetector, "cmd/tollgate", map[string]string{
		"adapters/relational/postgres/migrations/9999_next_version.sql": nextMigration,
	})
	must.Succeed(t, err)
	return filepath.Join(dir, "tollgate")
}

// newRollingEnvironment returns an environment without limits on the speed of a person.
func newRollingEnvironment(t *testing.T) *fixture.Environment {
	t.Helper()
	e := fixture.NewProduction(t)
	fixture.WriteFile(t, filepath.Join(e.RulesDir, "rolling.yaml"), rollingRules)
	e.Environ = append(e.Environ, fixture.RegistrySettings()...)
	e.Environ = append(e.Environ, fixture.RelaxedRiskSettings...)
	e.Environ = append(e.Environ, "SHUTDOWN_DRAIN="+drainTime.String())
	return e
}

// The listeners of an instance that a load balancer serves.
const (
	apiListener    = "api"
	limitsListener = "limits"
	grpcListener   = "grpc"
)

// rotation is the state of a load balancer: the instances, and which of them are ready.
type rotation struct {
	members []*member
	cut     atomic.Int64 // connections that an instance closed while the client might have used them again

	mu   sync.Mutex
	last []*member // in rotation
}

// member is an instance with its own addresses, which do not change when it starts again.
type member struct {
	program   string
	environ   []string
	addresses map[string]string // host:port by listener
	process   *instance.Instance
	serves    atomic.Bool // the instance is in rotation
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
		all.Go(func() { m.watchReadiness(watching) })
		t.Cleanup(func() { m.stopAndReport(t) })
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

// start starts instances at once, each without local files of an earlier run, and waits until they
// are in rotation.
func (r *rotation) start(t *testing.T, members ...*member) {
	t.Helper()
	failures := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		environ := append(append([]string{}, m.environ...), "DATA_DIR="+t.TempDir())
		all.Go(func() { m.process, failures[i] = instance.Start(m.program, environ, "serve") })
	}
	all.Wait()
	must.Succeed(t, errors.Join(failures...))
	for _, m := range members {
		apiclient.OtherListeners.Store(m.process.Debug, nil)
		await.Until(t, "an instance in rotation", m.serves.Load)
	}
}

// nextAddress returns the address of a listener of an instance in rotation. The turn selects the
// instance. When no instance is ready, it uses the instances that were in rotation last.
func (r *rotation) nextAddress(listener string, turn int64) string {
	serving := r.servingMembers()
	return serving[turn%int64(len(serving))].addresses[listener]
}

// servingMembers returns the instances in rotation, or the last ones that were when there are none
// now.
func (r *rotation) servingMembers() []*member {
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

// watchReadiness checks the readiness of the instance repeatedly, as a load balancer does, until
// the context ends.
func (m *member) watchReadiness(ctx context.Context) {
	client := &http.Client{Timeout: drainTime / 2, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(checkInterval)
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

// stopAndReport stops the instance after the test, and prints its log when the test failed.
func (m *member) stopAndReport(t *testing.T) {
	if m.process == nil {
		return
	}
	m.stop(t)
	if t.Failed() {
		t.Logf("log of an instance:\n%s", m.process.Log())
	}
}

// countDecisions returns how many calls over gRPC the instance has answered.
func (m *member) countDecisions(t *testing.T) (n int) {
	t.Helper()
	const name = "ratelimit_server.ShouldRateLimit.total_requests: "
	for line := range strings.Lines(string(apiclient.Call(t, "GET", "http://"+m.process.Debug+"/stats", nil).Body)) {
		if value, found := strings.CutPrefix(line, name); found {
			_, _ = fmt.Sscan(value, &n) // 0 where there is no number
		}
	}
	return n
}

// newService returns the instance as a fixture.Service.
func (m *member) newService(t *testing.T) *fixture.Service {
	return &fixture.Service{
		T: t, Process: m.process, GRPC: m.addresses[grpcListener],
		API: "http://" + m.addresses[apiListener], RateLimitAPI: "http://" + m.addresses[limitsListener],
	}
}

// TestReadyWithRules checks that an instance is ready only after its rate limit rules are in force,
// if it has any.
func TestReadyWithRules(t *testing.T) {
	t.Parallel()
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		file := filepath.Join(e.RulesDir, "rules.yaml")
		fixture.WriteFile(t, file, "domain: broken\ndescriptors: [{}]\n")
		s := e.StartWithoutRules(t)
		if a := apiclient.Call(t, "GET", s.API+"/ready", nil).WantStatus(t,
			http.StatusServiceUnavailable); !strings.Contains(string(a.Body), `"rules":"down"`) {
			t.Errorf("/ready with wrong rules: %s", a.Body)
		}
		fixture.WriteFile(t, file, fixture.RateLimitRules)
		awaitReadiness(t, s)
		fixture.WriteFile(t, file, "domain: broken\ndescriptors: [{}]\n")
		await.Until(t, "a refusal", func() bool {
			return strings.Contains(s.Process.Log(), "the previous one stays in force")
		})
		// The answer can be 503 on a busy machine, where a probe of the database takes too long.
		if a := apiclient.Call(t, "GET", s.API+"/ready", nil); !strings.Contains(string(a.Body), `"rules":"ok"`) {
			t.Errorf("/ready with rules in force, after a refusal: %s", a.Body)
		}
		awaitReadiness(t, s)

		must.Succeed(t, os.RemoveAll(e.RulesDir))
		awaitReadiness(t, e.StartWithoutRules(t))
	})
}

// awaitReadiness waits until the instance is ready.
func awaitReadiness(t *testing.T, s *fixture.Service) {
	t.Helper()
	await.Until(t, "readiness", func() bool {
		return apiclient.Call(t, "GET", s.API+"/ready", nil).Status == http.StatusOK
	})
}
