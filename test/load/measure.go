package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// bench is one measurement with its processes.
type bench struct {
	plan       plan
	dir        string
	floor      *instance.Instance
	floorGRPC  *candidate
	floorHTTP  *candidate
	candidates []*candidate // includes floors
	running    []*instance.Instance
	starts     []string // start time of each service
}

// measureCalls starts all processes, runs the rounds and prints the table.
func measureCalls(p plan) error {
	return p.runBench([]string{"cmd/tollgate", "plugins/otp-log"}, func(b *bench) error {
		for _, e := range newEnvironments(b.dir, p) {
			if err := b.startService(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// runBench builds packages, starts the floors, calls start for the services, runs the rounds and
// prints the table.
func (p plan) runBench(packages []string, start func(*bench) error) (err error) {
	b := &bench{plan: p}
	if b.dir, err = os.MkdirTemp("", "tollgate-load-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(b.dir) }() // a temporary folder; the system removes what is left
	defer b.stopAll()
	if err := instance.Build(".", b.dir, false, packages...); err != nil {
		return err
	}
	if err := b.startFloors(); err != nil {
		return err
	}
	if err := start(b); err != nil {
		return err
	}
	chosen := b.chosenCandidates()
	for range p.rounds {
		for _, c := range chosen {
			if err := c.runRound(p); err != nil {
				return err
			}
		}
	}
	for _, c := range chosen {
		if err := c.countAllocations(); err != nil {
			return err
		}
	}
	if err := b.printResults(chosen); err != nil {
		return err
	}
	return b.profileCandidates(chosen)
}

// chosenCandidates returns the candidates that the plan selects, with their floors.
func (b *bench) chosenCandidates() []*candidate {
	wanted := map[*candidate]bool{}
	for _, c := range b.candidates {
		if len(c.floors) > 0 && strings.Contains(c.name, b.plan.only) {
			wanted[c] = true
			for _, f := range c.floors {
				wanted[f] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(b.candidates), func(c *candidate) bool { return !wanted[c] })
}

func (b *bench) stopAll() {
	for _, i := range b.running {
		if err := i.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
		}
	}
}

// startFloor runs this program as a floor, with additional environment variables.
func (b *bench) startFloor(database string, more ...string) (*instance.Instance, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	i, err := instance.Start(self, append(os.Environ(), more...), floorCommand, database)
	if err != nil {
		return nil, err
	}
	b.running = append(b.running, i)
	return i, nil
}

func (b *bench) startFloors() error {
	i, err := b.startFloor("")
	if err != nil {
		return err
	}
	b.floorHTTP = httpCandidate("floor: constant Fiber answer", get{address: i.API, path: "/"}, i.PID())
	b.floor = i
	b.floorGRPC, err = grpcCandidate("floor: empty gRPC handler", i, newSimpleQuestion(), b.plan.conns)
	b.candidates = append(b.candidates, b.floorGRPC, b.floorHTTP)
	return err
}

// startService starts a service and adds its candidates.
func (b *bench) startService(e environment) error {
	i, err := e.startService(b.dir, "serve")
	if err != nil {
		return err
	}
	b.running = append(b.running, i)
	b.starts = append(b.starts, fmt.Sprintf("%s: ready in %v", e.name, i.StartedIn.Round(time.Millisecond)))
	token, err := seedService(b.dir, e, i)
	if err != nil {
		return fmt.Errorf("fill %s: %w", e.name, err)
	}
	decision, err := grpcCandidate("decision, "+e.counters, i, newSimpleQuestion(), b.plan.conns, b.floorGRPC)
	if err != nil {
		return err
	}
	b.candidates = append(b.candidates, decision)
	if err := b.addReads(e, i); err != nil {
		return err
	}
	b.candidates = append(b.candidates,
		httpCandidate("checked token, "+e.name, get{address: i.API, path: "/auth/session", token: token}, i.PID(),
			b.floorHTTP))
	b.setDebugAddress(i)
	return nil
}

// setDebugAddress stores the debug address of a process in its candidates, for profiles.
func (b *bench) setDebugAddress(i *instance.Instance) {
	for _, c := range b.candidates {
		if c.pid == i.PID() {
			c.debug = i.Debug
		}
	}
}

// addReads adds the reads of the registry, each with a floor that reads the same rows of the same
// database.
func (b *bench) addReads(e environment, i *instance.Instance) error {
	floor, err := b.startFloor(e.database, copiedService+"=http://"+i.API)
	if err != nil {
		return err
	}
	rows := func(name, path string) *candidate {
		c := httpCandidate("floor: "+name+", "+e.records, get{address: floor.API, path: path}, floor.PID())
		b.candidates = append(b.candidates, c)
		return c
	}
	read := func(name, path string, g get, floors ...*candidate) {
		g.address, g.path = floor.API, copyPath+"/v0.1/servers"+path
		copied := httpCandidate("floor: copy of "+name+", "+e.records, g, floor.PID())
		b.candidates = append(b.candidates, copied)
		g.address, g.path = i.API, "/v0.1/servers"+path
		b.candidates = append(b.candidates,
			httpCandidate(name+", "+e.records, g, i.PID(), append([]*candidate{copied}, floors...)...))
	}
	const latest, list = "/com.example%2Fs0/versions/latest", "?limit=100"
	read("get latest", latest, get{}, rows("rows of get latest", floorLatest))
	read("list of 100", list, get{}, rows("rows of list of 100", floorList))
	read("compressed list of 100", list, get{coding: "gzip"})
	tag, err := fetchTag("http://" + i.API + "/v0.1/servers" + list)
	if err != nil {
		return err
	}
	read("list of 100, not modified", list, get{tag: tag})
	read("20 versions", "/com.example%2Fs0/versions", get{}, rows("rows of 20 versions", floorVersions))
	read("search of 11 among 319", "?limit=100&search=s29", get{})
	return nil
}

// fetchTag returns the entity tag of a response.
func fetchTag(address string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("read the entity tag: %w", err)
	}
	req.Header.Set("Accept-Encoding", "identity") // the compressed form has another tag
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("read the entity tag: %w", err)
	}
	_ = resp.Body.Close() // it is not read
	return resp.Header.Get("ETag"), nil
}

// profileCandidates saves a CPU profile of each candidate's process under its load.
func (b *bench) profileCandidates(chosen []*candidate) error {
	if b.plan.profiles == "" {
		return nil
	}
	for _, c := range chosen {
		if c.debug == "" {
			continue
		}
		failed := make(chan error, 1)
		go func() {
			failed <- fetchPage(c.debug,
				filepath.Join(b.plan.profiles, strings.NewReplacer(" ", "-", "/", "").Replace(c.name)+".pprof"))
		}()
		again := *c // its numbers are not used
		long := b.plan
		long.duration = profileTime + time.Second
		if err := again.runRound(long); err != nil {
			return err
		}
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// profileTime is the duration of a profile.
const profileTime = 4 * time.Second

func fetchPage(debug, path string) error {
	resp, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", debug, int(profileTime.Seconds())))
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing else is read
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return nil
}

// printResults writes medians over the rounds, and ratios of CPU to the floors.
func (b *bench) printResults(chosen []*candidate) error {
	for _, s := range b.starts {
		fmt.Println(s)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\tCPU µs/call\tcalls/s\t× its floors") // Flush reports any failure
	for _, c := range chosen {
		ratios := make([]string, len(c.floors))
		for i, f := range c.floors {
			ratios[i] = fmt.Sprintf("%.2f × %s", medianRatio(c.costs, f.costs), strings.TrimPrefix(f.name, "floor: "))
		}
		if c.allocations != nil && len(c.floors) > 0 {
			ratios = append(ratios, fmt.Sprintf("%.1f allocations more than the %.1f of the floor", c.each-c.floors[0].each, c.floors[0].each))
		}
		if c.store != nil {
			ratios = append(ratios, fmt.Sprintf("CPU of Valkey %.1f µs, %.2f × %s",
				median(c.stores), medianRatio(c.stores, c.floors[0].costs),
				strings.TrimPrefix(c.floors[0].name, "floor: ")))
		}
		// Flush reports any failure
		_, _ = fmt.Fprintf(w, "%s\t%.1f\t%.0f\t%s\n", c.name, median(c.costs), median(c.rates),
			strings.Join(ratios, "; "))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// medianRatio returns the median over the rounds of the ratio of two values.
func medianRatio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
