package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// decisionsCommand is the argument with which this program measures the rate limit service alone.
const decisionsCommand = "decisions"

const (
	within = ratelimit.RateLimitResponse_OK
	over   = ratelimit.RateLimitResponse_OVER_LIMIT
)

// deciders are the rate limit services of one measurement, each in its own process.
type deciders struct {
	*bench
	fourFloor *candidate // the empty handler, called with four descriptors
	likeFloor *candidate // the empty handler with the service's garbage collector settings
	postFloor *candidate
	hotKey    *candidate // decisions of one key, in the process
}

// measureDecisions reads the command's flags and prints the cost of decisions and of their floors,
// by store of counters, number of descriptors and number of rules.
func measureDecisions(args []string) error {
	var p plan
	flags := flag.NewFlagSet(decisionsCommand, flag.ExitOnError)
	p.defineFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	return p.runBench([]string{"cmd/tollgate"}, func(b *bench) error {
		d := &deciders{bench: b}
		for _, start := range []func() error{
			d.startFloors, d.addInProcess, d.addOnValkey, d.compareAlgorithms, d.compareRuleSets,
		} {
			if err := start(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *deciders) startFloors() (err error) {
	d.postFloor = httpCandidate("floor: constant Fiber answer to POST",
		get{address: d.floor.API, path: "/", body: requestBody}, d.floor.PID())
	if d.fourFloor, err = grpcCandidate("floor: empty gRPC handler that returns 4", d.floor, fourDescriptors(),
		d.plan.conns); err != nil {
		return err
	}
	like, err := d.startFloor("", "GOGC=400")
	if err != nil {
		return err
	}
	if d.likeFloor, err = grpcCandidate("floor: empty gRPC handler, GOGC=400", like, newSimpleQuestion(),
		d.plan.conns); err != nil {
		return err
	}
	d.candidates = append(d.candidates, d.likeFloor, d.fourFloor, d.postFloor)
	return nil
}

func (d *deciders) addInProcess() error {
	i, err := d.startAlone("in-process", []byte(rules))
	if err != nil {
		return err
	}
	defer d.setDebugAddress(i)
	if _, err := d.addGRPC("decision, in the process", i, newSimpleQuestion(), d.floorGRPC, d.likeFloor); err != nil {
		return err
	}
	if _, err := d.addGRPC("decision of 4, in the process", i, fourDescriptors(), d.fourFloor); err != nil {
		return err
	}
	if d.hotKey, err = d.addGRPC("decision of one hot key, in the process", i, oneKey(), d.floorGRPC); err != nil {
		return err
	}
	d.candidates = append(d.candidates, httpCandidate("decision by /json, in the process",
		get{address: i.RateLimitHTTP, path: "/json", body: requestBody}, i.PID(), d.postFloor))
	return nil
}

func (d *deciders) addOnValkey() error {
	address := os.Getenv("TEST_VALKEY_URL")
	if address == "" {
		fmt.Fprintln(os.Stderr, "load: decisions on Valkey are left out: TEST_VALKEY_URL is not set")
		return nil
	}
	prefix := "CACHE_KEY_PREFIX=load_" + strconv.FormatInt(time.Now().UnixNano(), 36) + "_"
	plain, err := d.startAlone("valkey", []byte(rules), "KVSTORE_URL="+address, prefix)
	if err != nil {
		return err
	}
	cached, err := d.startAlone("valkey-cached", []byte(tight), "KVSTORE_URL="+address, prefix,
		"LOCAL_CACHE_SIZE_IN_BYTES=4194304")
	if err != nil {
		return err
	}
	store, err := valkeyTime(address)
	if err != nil {
		return err
	}
	one, err := d.addGRPC("decision, on Valkey", plain, newSimpleQuestion(), d.floorGRPC, d.likeFloor)
	if err != nil {
		return err
	}
	four, err := d.addGRPC("decision of 4, on Valkey", plain, fourDescriptors(), d.fourFloor)
	if err != nil {
		return err
	}
	one.store, four.store = store, store
	tightly := newSimpleQuestion()
	tightly.want = over
	if _, err := d.addGRPC("over limit, from the local cache", cached, tightly, d.floorGRPC, d.likeFloor); err != nil {
		return err
	}
	d.setDebugAddress(plain)
	d.setDebugAddress(cached)
	return d.addHotKey(plain, address, store)
}

// addHotKey adds candidates that decide about one key with leases, and without.
func (d *deciders) addHotKey(plain *instance.Instance, address string, store func() (time.Duration, error)) error {
	leased, err := d.startAlone("valkey-leases", []byte(rules), "KVSTORE_URL="+address, "COUNTER_LEASES=auto",
		"CACHE_KEY_PREFIX=leases_"+strconv.FormatInt(time.Now().UnixNano(), 36)+"_")
	if err != nil {
		return err
	}
	defer d.setDebugAddress(leased)
	with, err := d.addGRPC("decision of one hot key, on Valkey with leases", leased, oneKey(), d.hotKey, d.floorGRPC)
	if err != nil {
		return err
	}
	without, err := d.addGRPC("decision of one hot key, on Valkey", plain, oneKey(), d.hotKey, d.floorGRPC)
	if err != nil {
		return err
	}
	uniform, err := d.addGRPC("decision with leases, on Valkey", leased, newSimpleQuestion(), d.floorGRPC)
	if err != nil {
		return err
	}
	with.store, without.store, uniform.store = store, store, store
	return nil
}

// oneKey returns requests for one counter.
func oneKey() question {
	return newQuestion(func(int) []*common.RateLimitDescriptor {
		return []*common.RateLimitDescriptor{newDescriptor("key", "hot")}
	})
}

// form is a kind of rule: the text of the rule with a number, and a value that matches it.
type form struct {
	name        string
	rule, value func(i int) string
	sizes       []int
}

// compareRuleSets compares many rules with ten, all with the same 1,000 counters. The requests
// match either the same ten rules, or rules across the whole set, which are far apart in memory.
func (d *deciders) compareRuleSets() error {
	for _, f := range []form{
		{"values", formatValue, formatValue, []int{1_000, 100_000}},
		{"wildcards", wildcardRule, wildcardValue, []int{10_000}},
	} {
		i, err := d.startAlone("10 "+f.name, formatRules(10, f.rule))
		if err != nil {
			return err
		}
		ten, err := d.addGRPC("decision among 10 "+f.name, i, f.newQuestion(10), d.floorGRPC)
		if err != nil {
			return err
		}
		d.setDebugAddress(i)
		for _, n := range f.sizes {
			if err := d.addManyRules(n, f, ten); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *deciders) addManyRules(n int, f form, ten *candidate) error {
	name := fmt.Sprintf("%d %s", n, f.name)
	i, err := d.startAlone(name, formatRules(n, f.rule))
	if err != nil {
		return err
	}
	defer d.setDebugAddress(i)
	if _, err := d.addGRPC("decision among "+name+", ten asked for", i, f.newQuestion(10), ten,
		d.floorGRPC); err != nil {
		return err
	}
	_, err = d.addGRPC("decision among "+name, i, f.newQuestion(n), ten, d.floorGRPC)
	return err
}

// newQuestion returns requests for 1,000 counters of the first rules, or for as many as there are.
func (f form) newQuestion(rules int) question {
	return newQuestion(func(i int) []*common.RateLimitDescriptor {
		return []*common.RateLimitDescriptor{newDescriptor("user", "u"+strconv.Itoa(i), "path", f.value(i*7919%rules))}
	})
}

// addGRPC adds a candidate that makes gRPC calls.
func (d *deciders) addGRPC(name string, i *instance.Instance, q question, floors ...*candidate) (*candidate, error) {
	c, err := grpcCandidate(name, i, q, d.plan.conns, floors...)
	d.candidates = append(d.candidates, c)
	return c, err
}

// startAlone starts the rate limit service alone with the given rules.
func (b *bench) startAlone(name string, rules []byte, more ...string) (*instance.Instance, error) {
	own := filepath.Join(b.dir, name)
	if err := writeRules(own, rules); err != nil {
		return nil, err
	}
	environ := append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + own, "RUNTIME_ROOT=" + own, "RUNTIME_WATCH_ROOT=false",
		"HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0",
		"LOG_FORMAT=json", "SHUTDOWN_DRAIN=0s",
	}, more...)
	i, err := instance.Start(filepath.Join(b.dir, "tollgate"), environ, "ratelimit")
	if err != nil {
		return nil, err
	}
	b.running = append(b.running, i)
	spent, err := awaitRules(i)
	b.starts = append(b.starts, fmt.Sprintf("%s: rules in force after %v of CPU", name, spent.Round(time.Millisecond)))
	return i, err
}

// awaitRules waits until the rules of a service are in force, and returns the CPU time spent until
// then.
func awaitRules(i *instance.Instance) (time.Duration, error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get("http://" + i.RateLimitHTTP + "/healthcheck")
		if err != nil {
			return 0, fmt.Errorf("request health: %w", err)
		}
		_ = resp.Body.Close() // only the status counts
		if resp.StatusCode == http.StatusOK {
			return cpuTime(i.PID())
		}
	}
	return 0, errors.New("the rules did not come into force in time\n" + i.Log())
}

// tight is a limit of zero.
const tight = `domain: bench
descriptors:
  - key: key
    rate_limit: {unit: year, requests_per_unit: 0}
`

// formatRules returns n rules below one key, each for a value made from its number.
func formatRules(n int, form func(i int) string) []byte {
	text := []byte("domain: bench\ndescriptors:\n  - key: user\n    descriptors:\n")
	for i := range n {
		text = fmt.Appendf(text,
			"      - {key: path, value: %q, rate_limit: {unit: hour, requests_per_unit: 4000000000}}\n", form(i))
	}
	return text
}

func formatValue(i int) string { return fmt.Sprintf("/tenant/%06d", i) }

// wildcardRule returns a pattern, in one of three forms by its number.
func wildcardRule(i int) string {
	return fmt.Sprintf([...]string{"/tenant/%d/*", "*/suffix-%d", "/shared/*/middle-%d/*"}[i%3], i)
}

func wildcardValue(i int) string {
	return fmt.Sprintf([...]string{"/tenant/%d/x", "/x/suffix-%d", "/shared/x/y/middle-%d/z"}[i%3], i)
}

// fourDescriptors returns requests with four descriptors each.
func fourDescriptors() question {
	return newQuestion(func(i int) []*common.RateLimitDescriptor {
		four := make([]*common.RateLimitDescriptor, 4)
		for n := range four {
			four[n] = newDescriptor("key", fmt.Sprintf("v%d-%d", i, n))
		}
		return four
	})
}

// requestBody returns the request of newSimpleQuestion for /json.
func requestBody(n int) []byte {
	return fmt.Appendf(nil, `{"domain":"bench","descriptors":[{"entries":[{"key":"key","value":"v%d"}]}]}`, n%1000)
}

var usedTime = regexp.MustCompile(`(?m)^used_cpu_(?:sys|user):([0-9.]+)`)

// valkeyTime returns a function that reads the CPU time of a Valkey server.
func valkeyTime(address string) (func() (time.Duration, error), error) {
	client, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{address}, DisableCache: true})
	if err != nil {
		return nil, fmt.Errorf("connect to Valkey: %w", err)
	}
	return func() (time.Duration, error) {
		told, err := client.Do(context.Background(), client.B().Info().Section("cpu").Build()).ToString()
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of Valkey: %w", err)
		}
		var spent time.Duration
		for _, part := range usedTime.FindAllStringSubmatch(told, -1) {
			d, err := time.ParseDuration(part[1] + "s")
			if err != nil {
				return 0, fmt.Errorf("read the CPU time of Valkey: %w", err)
			}
			spent += d
		}
		return spent, nil
	}, nil
}
