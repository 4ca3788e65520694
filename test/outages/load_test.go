package outages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// The outcomes of a call, in addition to the names of gRPC codes.
const (
	counted = "counted" // within a limit, with remaining hits
	open    = "open"    // OK without a limit
	over    = "over"    // over the limit
)

// pace is the pause of a caller between two calls.
const pace = 20 * time.Millisecond

// callers is the number of connections. Each makes one call after the other.
const callers = 12

// formatOutcome returns the outcome of a call.
func formatOutcome(r *ratelimit.RateLimitResponse, err error) string {
	switch {
	case err != nil:
		return status.Code(err).String()
	case r.GetOverallCode() == ratelimit.RateLimitResponse_OVER_LIMIT:
		return over
	case r.GetStatuses()[0].GetCurrentLimit() == nil:
		return open
	default:
		return counted
	}
}

// tally holds the outcomes of the calls in a period.
type tally struct {
	outcomes map[string]int
	longest  time.Duration
	failure  error // an example
}

func (t tally) sumOutcomes() int {
	n := 0
	for _, count := range t.outcomes {
		n += count
	}
	return n
}

// hasOnly reports whether there were calls and all had one of the given outcomes.
func (t tally) hasOnly(outcomes ...string) bool {
	for o := range t.outcomes {
		if !slices.Contains(outcomes, o) {
			return false
		}
	}
	return len(t.outcomes) > 0
}

func (t tally) String() string {
	text := fmt.Sprintf("%v, the longest of %v", t.outcomes, t.longest.Round(time.Millisecond))
	if t.failure != nil {
		text += ", such as " + t.failure.Error()
	}
	return text
}

// load is a steady load of calls.
type load struct {
	t    *testing.T
	stop func() // stops the load and waits for its end

	mu  sync.Mutex
	now tally
}

// startLoad begins calls over their own connections, until stop is called or the test ends. ask
// returns the request of a caller.
func startLoad(t *testing.T, conns []*grpc.ClientConn, ask func(caller int) *ratelimit.RateLimitRequest) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: t}
	l.resetTally()
	var all sync.WaitGroup
	for caller, conn := range conns {
		c, request := ratelimit.NewRateLimitServiceClient(conn), ask(caller)
		all.Go(func() {
			ticker := time.NewTicker(pace)
			defer ticker.Stop()
			for ctx.Err() == nil {
				began := time.Now()
				r, err := c.ShouldRateLimit(context.Background(), request)
				l.recordCall(formatOutcome(r, err), time.Since(began), err)
				<-ticker.C
			}
		})
	}
	l.stop = func() {
		cancel()
		all.Wait()
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) recordCall(outcome string, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.outcomes[outcome]++
	l.now.longest = max(l.now.longest, took)
	if err != nil {
		l.now.failure = err
	}
}

// resetTally begins a new tally and returns the previous one.
func (l *load) resetTally() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.now
	l.now = tally{outcomes: map[string]int{}}
	return before
}

// presentTally returns the present tally.
func (l *load) presentTally() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	copied := l.now
	copied.outcomes = maps.Clone(l.now.outcomes)
	return copied
}

// awaitOutcomes waits until at least n consecutive calls have only the given outcomes.
func (l *load) awaitOutcomes(n int, outcomes ...string) {
	l.t.Helper()
	l.resetTally()
	await.Until(l.t, "answers that are only "+strings.Join(outcomes, " or "), func() bool {
		now := l.presentTally()
		if !now.hasOnly(outcomes...) {
			l.resetTally()
		}
		return now.hasOnly(outcomes...) && now.sumOutcomes() >= n
	})
}

// awaitCalls waits for n further calls with any outcome.
func (l *load) awaitCalls(n int) {
	l.t.Helper()
	before := l.presentTally().sumOutcomes()
	await.Until(l.t, "further calls", func() bool { return l.presentTally().sumOutcomes() >= before+n })
}

// dialService returns connections to an instance.
func dialService(t *testing.T, n int, target string, options ...grpc.DialOption) []*grpc.ClientConn {
	t.Helper()
	conns := make([]*grpc.ClientConn, n)
	for i := range conns {
		conn, err := grpc.NewClient(target,
			append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		must.Succeed(t, err)
		t.Cleanup(func() { _ = conn.Close() }) // the test is over
		conns[i] = conn
	}
	return conns
}

// newRateLimitClient returns a client of an instance.
func newRateLimitClient(t *testing.T, s *service) ratelimit.RateLimitServiceClient {
	t.Helper()
	return ratelimit.NewRateLimitServiceClient(dialService(t, 1, s.GRPC)[0])
}

// newRequest returns a request with a descriptor of one entry for each value.
func newRequest(key string, values ...string) *ratelimit.RateLimitRequest {
	r := &ratelimit.RateLimitRequest{Domain: "faults"}
	for _, value := range values {
		r.Descriptors = append(r.Descriptors, &common.RateLimitDescriptor{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}},
		})
	}
	return r
}
