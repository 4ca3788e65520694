package rolling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // lets the clients watch the servers' health
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/must"
)

// balancing is the way in which a load balancer distributes calls.
type balancing string

const (
	byCall balancing = "by-call" // each call goes to the next instance, as with an ingress or Envoy
	// each new connection goes to the next instance, as with a Service of Kubernetes
	byConnection balancing = "by-connection"
)

// balancedClient is a client of a listener that calls through the load balancer. It reuses its
// connections and never repeats a call.
type balancedClient struct {
	rotation  *rotation
	listener  string
	balancing balancing
	client    *http.Client
	turn      atomic.Int64
}

func newBalancedClient(t *testing.T, r *rotation, listener string, w balancing) *balancedClient {
	t.Helper()
	v := &balancedClient{rotation: r, listener: listener, balancing: w}
	transport := &http.Transport{}
	if w == byConnection {
		transport.DialContext = v.dial
	}
	t.Cleanup(transport.CloseIdleConnections)
	v.client = &http.Client{Transport: singleAttempt{transport}}
	apiclient.OtherListeners.Store(limitsListener, nil)
	return v
}

// decodeCall sends a request that must return 200, and decodes the JSON response.
func (v *balancedClient) decodeCall(into any, method, path string, body any, header ...string) error {
	a, err := v.send(method, path, body, header...)
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("%s %s is answered %d %s", method, path, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// send sends a request once.
func (v *balancedClient) send(method, path string, body any, header ...string) (apiclient.Response, error) {
	host := v.listener // dial knows it
	if v.balancing == byCall {
		host = v.nextAddress()
	}
	return apiclient.TryCallWith(v.client, method, "http://"+host+path, body, header...)
}

// dial connects to the next instance.
func (v *balancedClient) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := v.dialTarget(ctx, "")
	if err != nil {
		return nil, err
	}
	return &countedConn{c, &v.rotation.cut}, nil
}

// dialTarget does what dial does, for protocols that announce the end of a connection.
func (v *balancedClient) dialTarget(ctx context.Context, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", v.nextAddress())
}

// nextAddress returns the address of the instance whose turn it is.
func (v *balancedClient) nextAddress() string {
	return v.rotation.nextAddress(v.listener, v.turn.Add(1))
}

// countedConn is a connection that counts the times when the server closes it without an
// announcement. A client that was warned does not read any more; a client that was not may be
// sending its next request at that moment.
type countedConn struct {
	net.Conn
	cut *atomic.Int64
}

// Read implements net.Conn.
func (k *countedConn) Read(p []byte) (int, error) {
	n, err := k.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		k.cut.Add(1)
	}
	return n, err
}

// singleAttempt returns an error when the transport has repeated a request over another connection.
// A transport repeats requests that it considers safe.
type singleAttempt struct{ transport *http.Transport }

// RoundTrip implements http.RoundTripper.
func (o singleAttempt) RoundTrip(r *http.Request) (*http.Response, error) {
	var connections atomic.Int64
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connections.Add(1) }}
	response, err := o.transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err == nil && connections.Load() > 1 {
		_ = response.Body.Close() // the response is not used
		return nil, errors.New("a connection failed, and the request was sent again over another")
	}
	return response, err
}

// newRateLimitClient returns a client with long-lived channels: one to each instance, whose health
// it watches, or a single one that the balancer places.
func newRateLimitClient(t *testing.T, r *rotation, w balancing) ratelimit.RateLimitServiceClient {
	t.Helper()
	servers := manual.NewBuilderWithScheme("rolling")
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(), grpc.WithResolvers(servers),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: pace, Multiplier: 2, MaxDelay: time.Second},
			MinConnectTimeout: drainTime,
		}),
	}
	var known resolver.State
	for _, m := range r.members {
		known.Addresses = append(known.Addresses, resolver.Address{Addr: m.addresses[grpcListener]})
	}
	if w == byCall {
		options = append(options,
			grpc.WithDefaultServiceConfig(
				`{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":"ratelimit"}}`))
	} else {
		known.Addresses = known.Addresses[:1] // any; the balancer decides
		placed := &balancedClient{rotation: r, listener: grpcListener}
		options = append(options, grpc.WithContextDialer(placed.dialTarget))
	}
	servers.InitialState(known)
	conn, err := grpc.NewClient("rolling:///service", options...)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the test is over
	return ratelimit.NewRateLimitServiceClient(conn)
}
