package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// bench is one measurement with the processes that it runs.
type bench struct {
	plan       plan
	dir        string
	floorGRPC  *candidate
	floorHTTP  *candidate
	candidates []*candidate
	running    []*instance.Instance
	starts     []string // how long each service took to be ready
}

// measure builds and starts everything, runs the rounds and prints the table.
func measure(p plan) (err error) {
	b := &bench{plan: p}
	if b.dir, err = os.MkdirTemp("", "tollgate-load-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(b.dir) }() // a temporary folder; what stays is the system's to sweep
	defer b.stop()
	if err := instance.Build(".", b.dir, false, "cmd/tollgate", "plugins/otp-log"); err != nil {
		return err
	}
	if err := b.startFloor(); err != nil {
		return err
	}
	for _, e := range environments(b.dir) {
		if err := b.startService(e); err != nil {
			return err
		}
	}
	for range p.rounds {
		for _, c := range append([]*candidate{b.floorGRPC, b.floorHTTP}, b.candidates...) {
			if err := c.round(p); err != nil {
				return err
			}
		}
	}
	return b.print()
}

func (b *bench) stop() {
	for _, i := range b.running {
		if err := i.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
		}
	}
}

func (b *bench) startFloor() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	i, err := instance.Start(self, os.Environ(), floorCommand)
	if err != nil {
		return err
	}
	b.running = append(b.running, i)
	b.floorHTTP = httpCandidate("floor: constant Fiber answer", get{address: i.API, path: "/"}, i.PID(), nil)
	b.floorGRPC, err = grpcCandidate("floor: empty gRPC handler", i.GRPC, i.PID(), b.plan, nil)
	return err
}

// startService starts one service and adds what there is to measure of it.
func (b *bench) startService(e environment) error {
	if err := e.writeRules(); err != nil {
		return err
	}
	i, err := instance.Start(filepath.Join(b.dir, "tollgate"), e.environ, "serve")
	if err != nil {
		return err
	}
	b.running = append(b.running, i)
	b.starts = append(b.starts, fmt.Sprintf("%s: ready in %v", e.name, i.StartedIn.Round(time.Millisecond)))
	token, err := seed(b.dir, e, i)
	if err != nil {
		return fmt.Errorf("fill %s: %w", e.name, err)
	}
	decision, err := grpcCandidate("decision, "+e.counters, i.GRPC, i.PID(), b.plan, b.floorGRPC)
	if err != nil {
		return err
	}
	b.candidates = append(b.candidates, decision,
		httpCandidate("registry, latest version, "+e.records, get{address: i.API, path: "/v0.1/servers/com.example%2Fs0/versions/latest"}, i.PID(), b.floorHTTP),
		httpCandidate("registry, list of 100, "+e.records, get{address: i.API, path: "/v0.1/servers?limit=100"}, i.PID(), b.floorHTTP),
		httpCandidate("checked token, "+e.name, get{address: i.API, path: "/auth/session", token: token}, i.PID(), b.floorHTTP),
	)
	return nil
}

// print writes medians over the rounds, and ratios of CPU to the floor.
func (b *bench) print() error {
	for _, s := range b.starts {
		fmt.Println(s)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "\tCPU µs/call\tcalls/s\t× floor\t") // Flush tells of any failure
	for _, c := range append([]*candidate{b.floorGRPC, b.floorHTTP}, b.candidates...) {
		ratio := ""
		if c.floor != nil {
			ratio = fmt.Sprintf("%.2f", medianRatio(c.costs, c.floor.costs))
		}
		_, _ = fmt.Fprintf(w, "%s\t%.1f\t%.0f\t%s\t\n", c.name, median(c.costs), median(c.rates), ratio) // likewise
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// medianRatio returns the median of the ratios of each round.
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
