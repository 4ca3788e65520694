package rolling

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/apiclient"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
)

const (
	// pace is how long everybody rests between two pieces of work.
	pace = 25 * time.Millisecond
	// shown is how many failures are shown.
	shown = 20
)

// crowd is people and programs that work all the time.
type crowd struct {
	rotation *rotation
	stop     func() // ends it and waits

	mu       sync.Mutex
	done     map[string]int // by kind of work
	failures []string

	signIns      []*signIn
	publications []*publications
	limits       limits
}

// newCrowd begins to work, each kind of work over both ways through a balancer, until stop or the test's end.
func newCrowd(t *testing.T, e *fixture.Environment, r *rotation) *crowd {
	t.Helper()
	c := &crowd{rotation: r, done: map[string]int{}}
	kinds := map[string]func() error{}
	for _, w := range []way{byCall, byConnection} {
		for kind, step := range c.kinds(t, e, w) {
			kinds[kind+" "+string(w)] = step
		}
	}
	first := r.members[0].service(t)
	apiclient.Call(t, "POST", first.API+"/v0.1/publish", fixture.NewServerDocument(readName, "1.0.0"), c.publications[0].writer.Bearer()...).WantStatus(t, http.StatusOK)
	working, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	c.stop = func() { cancel(); all.Wait() }
	for kind := range kinds {
		c.done[kind] = 0
	}
	for kind, step := range kinds {
		all.Go(func() { c.repeat(working, kind, step) })
	}
	t.Cleanup(c.stop)
	return c
}

// kinds returns the kinds of work, each with its own client.
func (c *crowd) kinds(t *testing.T, e *fixture.Environment, w way) map[string]func() error {
	t.Helper()
	first := c.rotation.members[0].service(t)
	api := func() *visitor { return newVisitor(t, c.rotation, apiListener, w) }
	s := &signIn{visitor: api(), person: e.NewPerson(t, "ada-"+string(w)+"@example.com")}
	writer := e.NewWriter(t, first, "eve-"+string(w)+"@example.com", "publish *")
	p := &publications{visitor: api(), writer: writer, name: "com.example.rolling/" + string(w)}
	c.signIns, c.publications = append(c.signIns, s), append(c.publications, p)
	return map[string]func() error{
		"sign-in":        s.step,
		"publication":    p.step,
		"reading":        reading{api()}.step,
		"methods":        methodsListing{api()}.step,
		"limit by /json": limitByJSON{newVisitor(t, c.rotation, limitsListener, w), &c.limits}.step,
		"limit by gRPC":  limitByGRPC{newLimiter(t, c.rotation, w), &c.limits}.step,
	}
}

// repeat does one kind of work until the context ends.
func (c *crowd) repeat(ctx context.Context, kind string, step func() error) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.note(kind, step())
		}
	}
}

func (c *crowd) note(kind string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[kind]++
	if err != nil {
		c.failures = append(c.failures, fmt.Sprintf("%s: %s: %v", time.Now().Format("15:04:05.000"), kind, err))
	}
}

// works waits until every kind of work was done often and each given instance has taken part in it.
// A client that keeps channels to all instances returns to a restarted one only after a while. An
// operator waits for that too before the next restart.
func (c *crowd) works(t *testing.T, members ...*member) {
	t.Helper()
	before := c.sofar()
	fixture.Await(t, "work of every kind", func() bool {
		for kind, done := range c.sofar() {
			if done < before[kind]+often {
				return false
			}
		}
		return true
	})
	for _, m := range members {
		fixture.Await(t, "work of an instance", func() bool { return m.decisions(t) >= often })
	}
}

func (c *crowd) sofar() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.done)
}

// check checks that no work failed, and that the confirmed results exist on every instance that
// serves. Call it after stop.
func (c *crowd) check(t *testing.T) {
	t.Helper()
	t.Logf("%d failures among %v", len(c.failures), c.done)
	for _, failure := range c.failures[:min(shown, len(c.failures))] {
		t.Error(failure)
	}
	if n := c.rotation.cut.Load(); n > 0 {
		t.Errorf("%d connections were closed that their clients would have used again", n)
	}
	for _, m := range c.rotation.serving() {
		for _, s := range c.signIns {
			s.check(t, m.service(t))
		}
		for _, p := range c.publications {
			p.check(t, m.service(t))
		}
		c.limits.check(t, m.service(t))
	}
}
