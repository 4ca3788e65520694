package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// Passwords of the group, for the servers and for the sentinels.
const (
	serverPassword   = "of-the-servers"
	sentinelPassword = "of-the-sentinels"
)

// group is a primary with its replica, watched by three sentinels, all with passwords.
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
		must(t, v.Start())
		watching = append(watching, v)
		g.sentinels = append(g.sentinels, v.Address)
	}
	for _, v := range watching {
		// A sentinel looks for replicas every ten seconds, and for its like every two.
		hurry := "SENTINEL DEBUG info-period 200 publish-period 200"
		if told := v.AskAll("AUTH "+sentinelPassword, hurry); !strings.HasPrefix(told, "+OK\n+OK") {
			t.Fatalf("%s: %q", hurry, told)
		}
	}
	for _, v := range watching {
		eventually(t, "a sentinel that knows the whole group", func() bool {
			told := v.AskAll("AUTH "+sentinelPassword, "SENTINEL MASTER main")
			return field(told, "num-slaves") == "1" && field(told, "num-other-sentinels") == "2"
		})
	}
	return g
}

// field returns the value of a field in the list that a sentinel answers: each is a length, then the text.
func field(told, name string) string {
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
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// TestSentinelFailsOver kills the primary under load; decisions come back by themselves, from the replica.
func TestSentinelFailsOver(t *testing.T) {
	g := startGroup(t)
	stranger := start(t, "KVSTORE_TYPE=sentinel", "KVSTORE_URL=main,"+strings.Join(g.sentinels, ","),
		"KVSTORE_AUTH="+serverPassword, "KVSTORE_SENTINEL_AUTH=wrong")
	if got := outcome(limiter(t, stranger).ShouldRateLimit(t.Context(), asking("few", "one"))); got != "Unavailable" {
		t.Errorf("with a wrong password for the sentinels: %s", got)
	}
	s := start(t, "KVSTORE_TYPE=sentinel", "KVSTORE_URL=main,"+strings.Join(g.sentinels, ","),
		"KVSTORE_AUTH="+serverPassword, "KVSTORE_SENTINEL_AUTH="+sentinelPassword)
	l := press(t, dial(t, callers, s.GRPC), func(caller int) *ratelimit.RateLimitRequest {
		return asking("steady", fmt.Sprint(caller))
	})
	l.settles(enough, counted)
	l.reset()
	g.primary.Kill()
	eventually(t, "calls that fail", func() bool { return l.sofar().outcomes["Unavailable"] > 0 })
	l.settles(enough, counted)
	s.wantQuick()
	first := limiter(t, s)
	r, err := first.ShouldRateLimit(t.Context(), asking("few", "failed-over"))
	if err != nil || r.GetStatuses()[0].GetLimitRemaining() != 4 {
		t.Errorf("a new counter: %v, %v", r, err)
	}
	if told := g.replica.AskAll("AUTH "+serverPassword, "KEYS *failed-over*"); !strings.Contains(told, "\n*1\n") {
		t.Errorf("the new primary answers %q", told)
	}
	// The old primary comes back as a replica, and changes nothing.
	l.reset()
	must(t, g.primary.Start())
	eventually(t, "the old primary as a replica", func() bool {
		return strings.Contains(g.primary.AskAll("AUTH "+serverPassword, "ROLE"), "slave")
	})
	l.settles(enough, counted)
	s.wantQuick()
}
