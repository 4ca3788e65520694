package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// candidate is a kind of call to one process, to be measured.
type candidate struct {
	name   string
	floors []*candidate // the candidates to compare with; empty for a floor
	pid    int
	debug  string // the address for profiles; empty for a floor
	call   func(worker, n int) error
	store  func() (time.Duration, error) // returns the CPU time of the store; nil without a store
	costs  []float64                     // CPU time of the process per call in µs, one value per round
	stores []float64                     // CPU time of the store per call in µs, one value per round
	rates  []float64                     // calls per second, one value per round

	allocations func() (uint64, error) // returns how often the process has allocated memory; optional
	each        float64                // allocations of the process per call
}

// question holds gRPC requests, which are sent in turn, and the expected response to each.
type question struct {
	requests []*ratelimit.RateLimitRequest
	want     ratelimit.RateLimitResponse_Code
}

// newQuestion returns a question of 1,000 requests within their limits, each created from its
// number.
func newQuestion(descriptors func(i int) []*common.RateLimitDescriptor) question {
	q := question{requests: make([]*ratelimit.RateLimitRequest, 1000), want: within}
	for i := range q.requests {
		q.requests[i] = &ratelimit.RateLimitRequest{Domain: "bench", Descriptors: descriptors(i)}
	}
	return q
}

// newDescriptor returns a descriptor. entries holds keys and values in turn.
func newDescriptor(entries ...string) *common.RateLimitDescriptor {
	d := &common.RateLimitDescriptor{}
	for i := 0; i < len(entries); i += 2 {
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: entries[i], Value: entries[i+1]})
	}
	return d
}

// newSimpleQuestion returns the simplest question: one key with 1,000 values.
func newSimpleQuestion() question {
	return newQuestion(func(i int) []*common.RateLimitDescriptor {
		return []*common.RateLimitDescriptor{newDescriptor("key", "v"+strconv.Itoa(i))}
	})
}

// grpcCandidate returns a candidate that calls ShouldRateLimit over the plan's number of
// connections.
func grpcCandidate(name string, i *instance.Instance, q question, conns int, floors ...*candidate) (*candidate, error) {
	clients := make([]ratelimit.RateLimitServiceClient, conns)
	for n := range clients {
		conn, err := grpc.NewClient(i.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", i.GRPC, err)
		}
		clients[n] = ratelimit.NewRateLimitServiceClient(conn)
	}
	call := func(worker, n int) error {
		answer, err := clients[worker%len(clients)].ShouldRateLimit(context.Background(), q.requests[n%len(q.requests)])
		if err == nil && answer.OverallCode != q.want {
			return fmt.Errorf("%v was answered, not %v", answer.OverallCode, q.want)
		}
		return err
	}
	return &candidate{name: name, floors: floors, pid: i.PID(), call: call}, nil
}

// get is a GET request, or a POST request if it has a body.
type get struct {
	address string // host:port
	path    string
	token   string             // access token; empty for no token
	coding  string             // Accept-Encoding
	tag     string             // If-None-Match; the response must then be 304
	body    func(n int) []byte // body of the n-th request; nil for no body
}

// httpCandidate returns a candidate that repeats one request.
func httpCandidate(name string, g get, pid int, floors ...*candidate) *candidate {
	client := newClient(g.address)
	call := func(_, n int) error { return fetchOnce(client, g, n) }
	return &candidate{name: name, floors: floors, pid: pid, call: call}
}

func newClient(address string) *fasthttp.HostClient {
	return &fasthttp.HostClient{Addr: address, MaxConns: 1024, DisablePathNormalizing: true}
}

// fetchOnce sends a request and returns an error unless the status is 200.
func fetchOnce(client *fasthttp.HostClient, g get, n int) error {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.URI().DisablePathNormalizing = true // a server's name has an encoded slash
	req.SetRequestURI("http://" + g.address + g.path)
	if g.token != "" {
		req.Header.Set("Authorization", "Bearer "+g.token)
	}
	if g.coding != "" {
		req.Header.Set("Accept-Encoding", g.coding)
	}
	if g.tag != "" {
		req.Header.Set("If-None-Match", g.tag)
	}
	if g.body != nil {
		req.Header.SetMethod(fasthttp.MethodPost)
		req.Header.SetContentType("application/json")
		req.SetBodyRaw(g.body(n))
	}
	if err := client.Do(req, resp); err != nil {
		return err
	}
	want := fasthttp.StatusOK
	if g.tag != "" {
		want = fasthttp.StatusNotModified
	}
	if resp.StatusCode() != want {
		return fmt.Errorf("%s answered %d: %s", g.path, resp.StatusCode(), resp.Body()[:min(len(resp.Body()), 200)])
	}
	return nil
}

// runRound keeps the plan's number of calls in flight for its duration, and appends the cost of one
// call.
func (c *candidate) runRound(p plan) error {
	var phase atomic.Int32 // 0 warming up, 1 measuring, 2 done
	var calls atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for w := range p.workers {
		wg.Go(func() {
			for n := w; phase.Load() < 2; n += p.workers {
				if err := c.call(w, n); err != nil {
					failed.Store(&err)
					return
				}
				if phase.Load() == 1 {
					calls.Add(1)
				}
			}
		})
	}
	time.Sleep(p.warmup)
	before, err := c.readExpense()
	if err != nil {
		return err
	}
	began := time.Now()
	phase.Store(1)
	time.Sleep(p.duration)
	phase.Store(2)
	took := time.Since(began)
	after, err := c.readExpense()
	if err != nil {
		return err
	}
	wg.Wait()
	if f := failed.Load(); f != nil {
		return fmt.Errorf("%s: %w", c.name, *f)
	}
	n := float64(calls.Load())
	if n == 0 {
		return errors.New(c.name + ": no call came back")
	}
	c.costs = append(c.costs, float64((after.process-before.process).Nanoseconds())/1000/n)
	c.stores = append(c.stores, float64((after.store-before.store).Nanoseconds())/1000/n)
	c.rates = append(c.rates, n/took.Seconds())
	return nil
}

// expense is the CPU time spent so far.
type expense struct{ process, store time.Duration }

func (c *candidate) readExpense() (e expense, err error) {
	if e.process, err = cpuTime(c.pid); err != nil || c.store == nil {
		return e, err
	}
	e.store, err = c.store()
	return e, err
}

// cpuTime returns the CPU time of a process, user and system, from the process clock of Linux.
func cpuTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED, the kind of clock of a process (clock_getcpuclockid)
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled),
		&spent); err != nil { //nolint:gosec // a process id is far below 2^28
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(spent.Nano()), nil
}
