package outages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// Passwords of the group, for the servers and for the sentinels.
const (
	serverPassword   = "of-the-servers"
	sentinelPassword = "of-the-sentinels"
)

// group is a primary and its replica, watched by three sentinels, all with passwords.
type group struct {
	primary, replica *instance.Valkey
	sentinels        []string // addresses
}

func startGroup(t *testing.T) group {
	t.Helper()
	auth := []string{"--requirepass", serverPassword, "--masterauth", serverPassword, "--repl-diskless-sync-delay", "0"}
	g := group{primary: startValkey(t, auth...)}
	host, port := g.primary.HostPort()
	g.replica = startValkey(t, append(auth, "--replicaof", host+" "+port)...)
	var watching []*instance.Valkey
	for range 3 {
		v := newValkey(t)
		v.Args = []string{sentinelFile(t, v, g.primary), "--sentinel"}
		must.Succeed(t, v.Start())
		watching = append(watching, v)
		g.sentinels = append(g.sentinels, v.Address)
	}
	for _, v := range watching {
		// A sentinel searches for replicas every ten seconds, and for other sentinels every two.
		hurry := "SENTINEL DEBUG info-period 200 publish-period 200"
		if told := v.SendLines("AUTH "+sentinelPassword, hurry); !strings.HasPrefix(told, "+OK\n+OK") {
			t.Fatalf("%s: %q", hurry, told)
		}
	}
	for _, v := range watching {
		await.Until(t, "a sentinel that knows the whole group", func() bool {
			told := v.SendLines("AUTH "+sentinelPassword, "SENTINEL MASTER main")
			return findField(told, "num-slaves") == "1" && findField(told, "num-other-sentinels") == "2"
		})
	}
	return g
}

// findField returns the value of a field in a sentinel's response, where each text follows its
// length.
func findField(told, name string) string {
	_, rest, found := strings.Cut(told, "\n"+name+"\n")
	if !found {
		return ""
	}
	lines := strings.SplitN(rest, "\n", 3)
	if len(lines) < 3 {
		return ""
	}
	return lines[1]
}

func sentinelFile(t *testing.T, own, primary *instance.Valkey) string {
	t.Helper()
	_, ownPort := own.HostPort()
	host, port := primary.HostPort()
	dir := t.TempDir()
	path := filepath.Join(dir, "sentinel.conf")
	lines := []string{
		"port " + ownPort, "bind 127.0.0.1", "dir " + dir,
		"requirepass " + sentinelPassword, "sentinel sentinel-pass " + sentinelPassword,
		fmt.Sprintf("sentinel monitor main %s %s 2", host, port),
		"sentinel auth-pass main " + serverPassword,
		"sentinel down-after-milliseconds main 500",
		"sentinel failover-timeout main 3000",
	}
	must.Succeed(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// TestSentinelFailsOver kills the primary under load. Decisions come from the replica without a
// restart of the service.
func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	g := startGroup(t)
	stranger := startService(t, "KVSTORE_TYPE=sentinel", "KVSTORE_URL=main,"+strings.Join(g.sentinels, ","),
		"KVSTORE_AUTH="+serverPassword, "KVSTORE_SENTINEL_AUTH=wrong", impatient)
	if got := formatOutcome(newRateLimitClient(t, stranger).ShouldRateLimit(t.Context(),
		newRequest("few", "one"))); got != "Unavailable" {
		t.Errorf("with a wrong password for the sentinels: %s", got)
	}
	s := startService(t, "KVSTORE_TYPE=sentinel", "KVSTORE_URL=main,"+strings.Join(g.sentinels, ","),
		"KVSTORE_AUTH="+serverPassword, "KVSTORE_SENTINEL_AUTH="+sentinelPassword, impatient)
	l := startLoad(t, dialService(t, callers, s.GRPC), func(caller int) *ratelimit.RateLimitRequest {
		return newRequest("steady", fmt.Sprint(caller))
	})
	l.awaitOutcomes(enough, counted)
	l.resetTally()
	g.primary.Kill()
	await.Until(t, "calls that fail", func() bool { return l.presentTally().outcomes["Unavailable"] > 0 })
	l.awaitOutcomes(enough, counted)
	first := newRateLimitClient(t, s)
	r, err := first.ShouldRateLimit(t.Context(), newRequest("few", "failed-over"))
	if err != nil || r.GetStatuses()[0].GetLimitRemaining() != 4 {
		t.Errorf("a new counter: %v, %v", r, err)
	}
	if told := g.replica.SendLines("AUTH "+serverPassword, "KEYS *failed-over*"); !strings.Contains(told, "\n*1\n") {
		t.Errorf("the new primary answers %q", told)
	}
	// The old primary comes back as a replica, which changes nothing.
	l.resetTally()
	must.Succeed(t, g.primary.Start())
	await.Until(t, "the old primary as a replica", func() bool {
		return strings.Contains(g.primary.SendLines("AUTH "+serverPassword, "ROLE"), "slave")
	})
	l.awaitOutcomes(enough, counted)
}
