package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// candidate is one thing to measure: calls to one process.
type candidate struct {
	name   string
	floors []*candidate // what it is compared with; none for a floor
	pid    int
	debug  string // where its process can be profiled; empty for a floor
	call   func(worker, n int) error
	costs  []float64 // CPU of the process per call in µs, one a round
	rates  []float64 // calls per second, one a round
}

// grpcCandidate calls ShouldRateLimit with one descriptor over 1,000 values.
func grpcCandidate(name, address string, pid int, p plan, floors ...*candidate) (*candidate, error) {
	clients := make([]ratelimit.RateLimitServiceClient, p.conns)
	for i := range clients {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
		clients[i] = ratelimit.NewRateLimitServiceClient(conn)
	}
	requests := make([]*ratelimit.RateLimitRequest, 1000)
	for i := range requests {
		requests[i] = &ratelimit.RateLimitRequest{Domain: "bench", Descriptors: []*common.RateLimitDescriptor{{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: "key", Value: "v" + strconv.Itoa(i)}},
		}}}
	}
	call := func(worker, n int) error {
		_, err := clients[worker%len(clients)].ShouldRateLimit(context.Background(), requests[n%len(requests)])
		return err
	}
	return &candidate{name: name, floors: floors, pid: pid, call: call}, nil
}

// get is one GET request.
type get struct {
	address string // host:port
	path    string
	token   string // access token; empty for none
}

// httpCandidate sends one request again and again.
func httpCandidate(name string, g get, pid int, floors ...*candidate) *candidate {
	client := newClient(g.address)
	call := func(int, int) error { return fetchOnce(client, g) }
	return &candidate{name: name, floors: floors, pid: pid, call: call}
}

func newClient(address string) *fasthttp.HostClient {
	return &fasthttp.HostClient{Addr: address, MaxConns: 1024, DisablePathNormalizing: true}
}

// fetchOnce sends a request and wants 200 for an answer.
func fetchOnce(client *fasthttp.HostClient, g get) error {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.URI().DisablePathNormalizing = true // a server's name has an encoded slash
	req.SetRequestURI("http://" + g.address + g.path)
	if g.token != "" {
		req.Header.Set("Authorization", "Bearer "+g.token)
	}
	if err := client.Do(req, resp); err != nil {
		return err
	}
	if resp.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("%s answered %d: %s", g.path, resp.StatusCode(), resp.Body())
	}
	return nil
}

// round keeps the plan's number of calls in flight for its duration and adds
// what one call cost the process.
func (c *candidate) round(p plan) error {
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
	before, err := cpuTime(c.pid)
	if err != nil {
		return err
	}
	began := time.Now()
	phase.Store(1)
	time.Sleep(p.duration)
	phase.Store(2)
	took := time.Since(began)
	after, err := cpuTime(c.pid)
	if err != nil {
		return err
	}
	wg.Wait()
	if f := failed.Load(); f != nil {
		return fmt.Errorf("%s: %w", c.name, *f)
	}
	if calls.Load() == 0 {
		return errors.New(c.name + ": no call came back")
	}
	c.costs = append(c.costs, float64((after-before).Microseconds())/float64(calls.Load()))
	c.rates = append(c.rates, float64(calls.Load())/took.Seconds())
	return nil
}

// clockTick is the unit of CPU times in /proc (USER_HZ, 100 on all Linux
// systems that Go runs on).
const clockTick = 10 * time.Millisecond

// cpuTime returns the CPU time, user and system, that a process has spent.
func cpuTime(pid int) (time.Duration, error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	// pid (name) state …; the name may hold anything but its last ')'.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, errors.New("read CPU time: unknown form of /proc/<pid>/stat")
	}
	var ticks int64
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}
