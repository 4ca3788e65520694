package ratelimit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// unfinishedMessage is the body of a gRPC call that lacks its last byte: it ends when it is closed.
type unfinishedMessage struct {
	*bytes.Reader
	sent *atomic.Int64 // bytes of all calls
	over context.Context
	end  context.CancelFunc
}

// Read implements [io.Reader].
func (m unfinishedMessage) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.sent.Add(int64(n))
	if errors.Is(err, io.EOF) {
		<-m.over.Done()
	}
	return n, err
}

// Close implements [io.Closer].
func (m unfinishedMessage) Close() error {
	m.end()
	return nil
}

// sendUnfinished begins calls on one connection, each with a message of 1 MiB less a byte, and counts those that fail.
func sendUnfinished(t *testing.T, address string, calls int, sent, failed *atomic.Int64) {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &protocols, MaxConnsPerHost: 1}}
	t.Cleanup(client.CloseIdleConnections)
	const size = 1<<20 - 16
	message := append([]byte{0, 0, size >> 16, size >> 8 & 0xff, size & 0xff}, bytes.Repeat([]byte{'\n'}, size-1)...)
	for range calls {
		body := unfinishedMessage{Reader: bytes.NewReader(message), sent: sent}
		body.over, body.end = context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://"+address+"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", body)
		must.Succeed(t, err)
		r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
		go func() {
			response, err := client.Do(r)
			if err == nil {
				_ = response.Body.Close() // the call failed
			}
			failed.Add(1)
		}()
	}
}

// TestUnfinishedMessages sends 90 MiB of unfinished messages on each of some connections, and 40 MiB on one more. The service,
// which deploy/kubernetes gives 512 MiB, closes the connections that want too much, and serves everybody else meanwhile.
func TestUnfinishedMessages(t *testing.T) {
	if fixture.RaceDetector {
		t.Skip("the race detector multiplies the memory")
	}
	const bound = 200 << 20
	connections, calls := 3, 90
	if !testing.Short() {
		connections = 12
	}
	s := fixture.NewEnvironment(t, "embedded").StartProcess(t, "GOMEMLIMIT=400MiB")
	var sent, failed, held atomic.Int64
	for range connections {
		sendUnfinished(t, s.GRPC, calls, &sent, &failed)
	}
	await.Until(t, "the end of all connections", func() bool { return failed.Load() == int64(connections*calls) })
	sent.Store(0)
	sendUnfinished(t, s.GRPC, 40, &sent, &held)
	await.Until(t, "40 MiB of unfinished messages", func() bool { return sent.Load() > 39<<20 })
	fixture.WantOverallCode(t, s.NewRateLimitClient(t), fixture.NewRateLimitRequest("none", "k", "v"), ratelimitpb.RateLimitResponse_OK)
	apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, http.StatusOK)
	got := s.PeakMemory(t)
	t.Logf("%d MiB after %d unfinished messages", got>>20, connections*calls)
	if got > bound || held.Load() > 0 {
		t.Errorf("%d MiB, want at most %d; %d calls within the budget failed", got>>20, bound>>20, held.Load())
	}
}
