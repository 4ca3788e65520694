package outages

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	valkey "github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// node is one of the three nodes of a cluster.
type node struct {
	*instance.Valkey
	id     string
	client valkey.Client
}

// startCluster starts a cluster of three nodes, each with a third of the slots.
func startCluster(t *testing.T) []*node {
	t.Helper()
	var nodes []*node
	var buses []string
	for i := range 3 {
		bus := instance.FreePort()
		v := startValkey(t, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000",
			"--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no")
		must.Succeed(t, v.MustSend(fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1)))
		must.Succeed(t, v.MustSend(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*5461, min((i+1)*5461-1+i/2, 16383))))
		c, err := valkey.NewClient(valkey.ClientOption{
			InitAddress: []string{v.Address}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
		})
		must.Succeed(t, err)
		t.Cleanup(c.Close)
		n := &node{Valkey: v, client: c}
		n.id = n.runCommand(t, "CLUSTER", "MYID")
		nodes, buses = append(nodes, n), append(buses, bus)
	}
	for i, n := range nodes[1:] {
		host, port := n.HostPort()
		must.Succeed(t, nodes[0].MustSend("CLUSTER MEET "+host+" "+port+" "+buses[i+1]))
	}
	await.Until(t, "a cluster of which every node knows all slots", func() bool {
		for _, n := range nodes {
			info := n.runCommand(t, "CLUSTER", "INFO")
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") {
				return false
			}
		}
		return true
	})
	return nodes
}

// runCommand sends a command to the node and returns the response.
func (n *node) runCommand(t *testing.T, words ...string) string {
	t.Helper()
	answer, err := n.client.Do(t.Context(), n.client.B().Arbitrary(words[0]).Args(words[1:]...).Build()).ToAny()
	if err != nil {
		t.Fatalf("%v: %v", words, err)
	}
	return fmt.Sprint(answer)
}

// listKeys returns the node's keys that match a pattern.
func (n *node) listKeys(t *testing.T, pattern string) []string {
	t.Helper()
	keys, err := n.client.Do(t.Context(), n.client.B().Keys().Pattern(pattern).Build()).AsStrSlice()
	must.Succeed(t, err)
	return keys
}

// findHolder returns the node that stores a counter, and the counter's key, which contains part.
func findHolder(t *testing.T, nodes []*node, part string) (*node, string) {
	t.Helper()
	for _, n := range nodes {
		if keys := n.listKeys(t, "*"+part+"*"); len(keys) == 1 {
			return n, keys[0]
		}
	}
	t.Fatalf("no node has the counter of %s", part)
	return nil, ""
}

func nodeURLs(nodes []*node) string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Address)
	}
	return strings.Join(list, ",")
}

// moveSlot moves a slot from one node to another, in the steps of the operators' tools.
func moveSlot(t *testing.T, nodes []*node, slot string, from, to *node) {
	t.Helper()
	to.runCommand(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.id)
	from.runCommand(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
	host, port := to.HostPort()
	for {
		keys, err := from.client.Do(t.Context(),
			from.client.B().Arbitrary("CLUSTER", "GETKEYSINSLOT", slot, "10").Build()).AsStrSlice()
		must.Succeed(t, err)
		if len(keys) == 0 {
			break
		}
		from.runCommand(t, append([]string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}, keys...)...)
	}
	to.runCommand(t, "CLUSTER", "SETSLOT", slot, "NODE", to.id)
	from.runCommand(t, "CLUSTER", "SETSLOT", slot, "NODE", to.id)
	for _, n := range nodes {
		if n != from && n != to {
			n.runCommand(t, "CLUSTER", "SETSLOT", slot, "NODE", to.id)
		}
	}
}

// TestSlotsMove moves the slot of a counter between nodes under load. Every call gets a response,
// and every hit is counted once.
func TestSlotsMove(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	s := startService(t, "KVSTORE_TYPE=cluster", "KVSTORE_URL="+nodeURLs(nodes))
	conns := dialService(t, callers, s.GRPC)
	l := startLoad(t, conns, func(caller int) *ratelimit.RateLimitRequest {
		return newRequest("steady", fmt.Sprint(caller), fmt.Sprint(caller, "b"), fmt.Sprint(caller, "c"),
			fmt.Sprint(caller, "d"))
	})
	l.awaitOutcomes(enough, counted)
	l.resetTally()
	first := newRequest("exact", "moving")
	if got := formatOutcome(newRateLimitClient(t, s).ShouldRateLimit(t.Context(), first)); got != counted {
		t.Fatal(got)
	}
	from, key := findHolder(t, nodes, "moving")
	slot := from.runCommand(t, "CLUSTER", "KEYSLOT", key)
	var allowed, asked atomic.Int64
	allowed.Store(1)
	answered := make([]atomic.Int64, len(conns)) // by caller
	var all sync.WaitGroup
	for caller, conn := range conns {
		c := ratelimit.NewRateLimitServiceClient(conn)
		all.Go(func() {
			for ; asked.Add(1) <= 3500; answered[caller].Add(1) {
				switch got := formatOutcome(c.ShouldRateLimit(t.Context(), first)); got {
				case counted:
					allowed.Add(1)
				case over:
				default:
					t.Errorf("a call while its slot moved: %s", got)
				}
			}
		})
	}
	moves := 0
	for ; asked.Load() <= 3500; moves++ {
		to := nodes[0]
		for i, n := range nodes {
			if n == from {
				to = nodes[(i+1)%len(nodes)]
			}
		}
		moveSlot(t, nodes, slot, from, to)
		from = to
		// A redirected call must not reach the node while the slot moves back to it: the node would
		// treat the call as part of the new move and count it separately. Operators leave hours
		// between moves.
		for caller := range answered {
			before := answered[caller].Load()
			await.Until(t, "two answers", func() bool {
				return asked.Load() > 3500 || answered[caller].Load() >= before+2
			})
		}
	}
	all.Wait()
	if allowed.Load() != 3000 || moves < 3 {
		t.Errorf("%d calls got through a limit of 3000 within %d moves", allowed.Load(), moves)
	}
	l.stop()
	if got := l.presentTally(); !got.hasOnly(counted) {
		t.Errorf("calls of other counters: %v", got)
	}
	t.Logf("%d moves", moves)
}

// TestDescriptorsOnAllNodes counts descriptors of one request on all nodes, each exactly, with and
// without STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT (contract L-10).
func TestDescriptorsOnAllNodes(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	for _, stop := range []string{"false", "true"} {
		s := startService(t, "KVSTORE_TYPE=cluster", "KVSTORE_URL="+nodeURLs(nodes),
			"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT="+stop)
		var values []string
		for i := range 30 {
			values = append(values, "spread"+stop+strconv.Itoa(i))
		}
		c := newRateLimitClient(t, s)
		for n := uint32(1); n <= 6; n++ {
			r, err := c.ShouldRateLimit(t.Context(), newRequest("few", values...))
			must.Succeed(t, err)
			for _, status := range r.GetStatuses() {
				if remaining := status.GetLimitRemaining(); remaining != 5-min(n, 5) ||
					(status.GetCode() == ratelimit.RateLimitResponse_OVER_LIMIT) != (n > 5) {
					t.Fatalf("call %d of a limit of 5: %v", n, status)
				}
			}
		}
		for i, n := range nodes {
			if len(n.listKeys(t, "*spread"+stop+"*")) == 0 {
				t.Errorf("node %d has no counter", i)
			}
		}
	}
}

// TestNodeFails stops one node. Only the calls that need this node fail.
func TestNodeFails(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	s := startService(t, "KVSTORE_TYPE=cluster", "KVSTORE_URL="+nodeURLs(nodes),
		"KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION=true", impatient)
	conns := dialService(t, callers, s.GRPC)
	c := ratelimit.NewRateLimitServiceClient(conns[0])
	lost, others := nodes[2], []string(nil)
	var own []string
	for i := 0; len(own) < 3 || len(others) < 6; i++ {
		value := fmt.Sprintf("value-%d-", i)
		if got := formatOutcome(c.ShouldRateLimit(t.Context(), newRequest("steady", value))); got != counted {
			t.Fatal(got)
		}
		if n, _ := findHolder(t, nodes, value); n == lost {
			own = append(own, value)
		} else {
			others = append(others, value)
		}
	}
	near := startLoad(t, conns[:6], func(caller int) *ratelimit.RateLimitRequest {
		return newRequest("steady", others[caller])
	})
	far := startLoad(t, conns[6:], func(caller int) *ratelimit.RateLimitRequest {
		return newRequest("steady", own[caller%len(own)])
	})
	for name, fault := range map[string]struct{ begin, end func() error }{
		"frozen": {lost.Freeze, lost.Thaw},
		"killed": {func() error { lost.Kill(); return nil }, lost.Start},
	} {
		far.awaitOutcomes(enough, counted)
		near.resetTally()
		must.Succeed(t, fault.begin())
		far.awaitOutcomes(3*enough, "Unavailable")
		if healthy, body := getPage(t, "http://"+s.RateLimitHTTP+"/healthcheck"); healthy != 200 {
			t.Errorf("%s: /healthcheck: %d %s", name, healthy, body)
		}
		if ready, body := getPage(t, "http://"+s.API+"/ready"); ready != 200 {
			t.Errorf("%s: /ready: %d %s", name, ready, body)
		}
		if both := formatOutcome(c.ShouldRateLimit(t.Context(),
			newRequest("steady", own[0], others[0]))); both != "Unavailable" {
			t.Errorf("%s: a call of both nodes: %s", name, both)
		}
		got := near.resetTally()
		if !got.hasOnly(counted) {
			t.Errorf("%s: calls of the other nodes: %v", name, got)
		}
		t.Logf("%s: calls of the other nodes: %v", name, got)
		must.Succeed(t, fault.end())
		far.awaitOutcomes(enough, counted)
		if got := near.resetTally(); !got.hasOnly(counted) {
			t.Errorf("%s and back: calls of the other nodes: %v", name, got)
		}
	}
}
