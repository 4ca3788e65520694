package rolling

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const (
	// pace is the pause between two steps of work.
	pace = 100 * time.Millisecond
	// shown is the number of failures that the test prints.
	shown = 20
)

// workload is a continuous load of people and programs.
type workload struct {
	rotation *rotation
	stop     func() // stops the load and waits for its end

	mu       sync.Mutex
	done     map[string]int // by kind of work
	failures []string

	signIns      []*loginCycle
	publications []*publications
	limits       limitCounts
}

// newWorkload starts the work, each kind with both ways of balancing. It runs until stop is called
// or the test ends.
func newWorkload(t *testing.T, e *fixture.Environment, r *rotation) *workload {
	t.Helper()
	c := &workload{rotation: r, done: map[string]int{}}
	kinds := map[string]func() error{}
	for _, w := range []balancing{byCall, byConnection} {
		for kind, step := range c.newWork(t, e, w) {
			kinds[kind+" "+string(w)] = step
		}
	}
	first := r.members[0].newService(t)
	apiclient.Call(t, "POST", first.API+"/v0.1/publish", fixture.NewServerDocument(readName, "1.0.0"),
		c.publications[0].writer.Bearer()...).WantStatus(t, http.StatusOK)
	working, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	c.stop = func() { cancel(); all.Wait() }
	for kind := range kinds {
		c.done[kind] = 0
	}
	for kind, step := range kinds {
		all.Go(func() { c.repeatStep(working, kind, step) })
	}
	t.Cleanup(c.stop)
	return c
}

// newWork returns the kinds of work, each with its own client.
func (c *workload) newWork(t *testing.T, e *fixture.Environment, w balancing) map[string]func() error {
	t.Helper()
	first := c.rotation.members[0].newService(t)
	api := func() *balancedClient { return newBalancedClient(t, c.rotation, apiListener, w) }
	s := &loginCycle{client: api(), person: e.NewPerson(t, "ada-"+string(w)+"@example.com")}
	writer := e.NewWriter(t, first, "eve-"+string(w)+"@example.com", "publish *")
	p := &publications{client: api(), writer: writer, name: "com.example.rolling/" + string(w)}
	c.signIns, c.publications = append(c.signIns, s), append(c.publications, p)
	return map[string]func() error{
		"sign-in":        s.step,
		"publication":    p.step,
		"reading":        registryReads{api()}.step,
		"methods":        methodsReads{api()}.step,
		"limit by /json": limitByJSON{newBalancedClient(t, c.rotation, limitsListener, w), &c.limits}.step,
		"limit by gRPC":  limitByGRPC{newRateLimitClient(t, c.rotation, w), &c.limits}.step,
	}
}

// repeatStep repeats a step of one kind of work until the context ends.
func (c *workload) repeatStep(ctx context.Context, kind string, step func() error) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.recordStep(kind, step())
		}
	}
}

func (c *workload) recordStep(kind string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[kind]++
	if err != nil {
		c.failures = append(c.failures, fmt.Sprintf("%s: %s: %v", time.Now().Format("15:04:05.000"), kind, err))
	}
}

// awaitWork waits until every kind of work was done often and each given instance has taken part in
// it. A client that keeps channels to all instances returns to a restarted one only after a while.
// An operator waits for that too before the next restart.
func (c *workload) awaitWork(t *testing.T, members ...*member) {
	t.Helper()
	before := c.countDone()
	await.Until(t, "work of every kind", func() bool {
		for kind, done := range c.countDone() {
			if done < before[kind]+minSteps {
				return false
			}
		}
		return true
	})
	for _, m := range members {
		await.Until(t, "work of an instance", func() bool { return m.countDecisions(t) >= minSteps })
	}
}

func (c *workload) countDone() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.done)
}

// checkResults checks that no work failed, and that the confirmed results exist on every instance
// that serves. Call it after stop.
func (c *workload) checkResults(t *testing.T) {
	t.Helper()
	t.Logf("%d failures among %v", len(c.failures), c.done)
	for _, failure := range c.failures[:min(shown, len(c.failures))] {
		t.Error(failure)
	}
	if n := c.rotation.cut.Load(); n > 0 {
		t.Errorf("%d connections were closed that their clients would have used again", n)
	}
	for _, m := range c.rotation.servingMembers() {
		for _, s := range c.signIns {
			s.checkLogins(t, m.newService(t))
		}
		for _, p := range c.publications {
			p.checkVersions(t, m.newService(t))
		}
		c.limits.checkCounts(t, m.newService(t))
	}
}
