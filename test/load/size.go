package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// sizeCommand is the argument with which this program measures how reads grow with the registry.
const sizeCommand = "size"

// sizes is a measurement of the same reads on a small and a large registry.
type sizes struct {
	plan         plan
	small, large int
	dir          string
	calls        int
}

// measureSizes reads the command's flags and prints times and ratios.
func measureSizes(args []string) (err error) {
	s := sizes{}
	flags := flag.NewFlagSet(sizeCommand, flag.ExitOnError)
	flags.IntVar(&s.small, "small", 10_000, "versions of the small registry")
	flags.IntVar(&s.large, "large", 1_000_000, "versions of the large registry")
	flags.IntVar(&s.plan.rounds, "rounds", 5, "interleaved rounds")
	flags.IntVar(&s.calls, "calls", 300, "calls of one read in one round, one after another")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "tollgate-size-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(s.dir) }() // a temporary folder; the system removes what is left
	if err := instance.Build(".", s.dir, false, "cmd/tollgate"); err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "\t%d\t%d\t×\t\n", s.small, s.large) // Flush reports any failure
	for _, records := range []string{"SQLite", "PostgreSQL"} {
		if err := s.compareAll(w, records); err != nil {
			return err
		}
	}
	return w.Flush()
}

// compareAll measures all reads on one kind of database.
func (s *sizes) compareAll(w *tabwriter.Writer, records string) error {
	if records == "PostgreSQL" && os.Getenv("TEST_DATABASE_URL") == "" {
		fmt.Fprintln(os.Stderr, "load: PostgreSQL is left out: TEST_DATABASE_URL is not set")
		return nil
	}
	var both [2]*instance.Instance
	for i, n := range []int{s.small, s.large} {
		e := newEnvironment(s.dir, s.plan, fmt.Sprintf("%s-%d", records, n), "", records)
		if records == "PostgreSQL" {
			own, err := postgrestest.Create(context.Background())
			if err != nil {
				return err
			}
			e.database = own
			e.environ = append(e.environ, "DATABASE_URL="+own)
		}
		e.environ = append(e.environ, "REGISTRY_CACHE_BYTES=0") // an answer that is kept takes no query
		began := time.Now()
		if err := fillDatabase(e.database, n); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		fmt.Fprintf(os.Stderr, "load: %s with %d versions filled in %v\n", records, n,
			time.Since(began).Round(time.Second))
		for _, v := range sizedViews {
			if err := runCommand(s.dir, e, "", "view", "add", v.name, v.option, v.value); err != nil {
				return err
			}
		}
		running, err := e.startService(s.dir, "serve", "--only", "registry")
		if err != nil {
			return err
		}
		defer func() { _ = running.Stop() }() // the result does not depend on how it ends
		both[i] = running
	}
	for _, r := range newReads() {
		if err := s.compareRead(w, records, r, both); err != nil {
			return err
		}
	}
	return nil
}

// sizedView is a view with the options of "tollgate view add".
type sizedView struct{ name, option, value string }

// sizedViews show a 256th of the servers, 15 of 16, and those that are not deprecated, which are
// all.
var sizedViews = []sizedView{
	{"narrow", "--include", "io.github.org00*"},
	{"wide", "--exclude", "io.github.org0*"},
	{"current", "--deprecated", "hide"},
}

// sizedRead is one read: the path of the n-th call on a registry of the given size.
type sizedRead struct {
	name string
	path func(n, servers int) string
	view string // empty for the registry itself
}

func newReads() []sizedRead {
	anyServer := func(n, servers int) string { return url.PathEscape(newGeneratedServer(n * 7919 % servers).name) }
	reads := []sizedRead{
		{name: "list of 100", path: func(int, int) string { return "?limit=100" }},
		{name: "list of 100, latest only", path: func(int, int) string { return "?limit=100&version=latest" }},
		{name: "list of 100, of one version", path: func(int, int) string { return "?limit=100&version=1.3.0" }},
		{name: "get latest", path: func(n, s int) string { return "/" + anyServer(n, s) + "/versions/latest" }},
		{name: "versions", path: func(n, s int) string { return "/" + anyServer(n, s) + "/versions" }},
		{
			name: "search, 1 of 1000 matches, page of 10", path: func(int, int) string {
				return "?limit=10&search=" + needle
			},
		},
		{
			name: "search, upper case, page of 10", path: func(int, int) string {
				return "?limit=10&search=" + strings.ToUpper(needle)
			},
		},
		{
			name: "updated since, none", path: func(int, int) string {
				return "?limit=100&updated_since=2100-01-01T00:00:00Z"
			},
		},
	}
	for _, v := range sizedViews {
		for _, of := range []sizedRead{
			{name: "list of 5", path: func(int, int) string { return "?limit=5" }},
			{name: "list of 5, latest only", path: func(int, int) string { return "?limit=5&version=latest" }},
			{name: "search `weather`, page of 1", path: func(int, int) string { return "?limit=1&search=weather" }},
			{
				name: "updated since, none", path: func(int, int) string {
					return "?limit=5&updated_since=2100-01-01T00:00:00Z"
				},
			},
		} {
			reads = append(reads, sizedRead{"view " + v.name + ": " + of.name, of.path, v.name})
		}
	}
	return reads
}

// root returns the path of the servers that are read.
func (r sizedRead) root() string {
	if r.view == "" {
		return "/v0.1/servers"
	}
	return "/registries/" + r.view + "/v0.1/servers"
}

func (s *sizes) compareRead(w *tabwriter.Writer, records string, r sizedRead, both [2]*instance.Instance) error {
	var times [2][]float64
	for range s.plan.rounds {
		for i, n := range []int{s.small, s.large} {
			took, err := s.timeRead(both[i], r, n/versionsEach)
			if err != nil {
				return err
			}
			times[i] = append(times[i], took)
		}
	}
	// Flush reports any failure
	_, _ = fmt.Fprintf(w, "%s, %s\t%.0f µs\t%.0f µs\t%.2f\t\n", r.name, records, median(times[0]), median(times[1]),
		medianRatio(times[1], times[0]))
	return nil
}

// timeRead returns the median time of a call in µs.
func (s *sizes) timeRead(i *instance.Instance, r sizedRead, servers int) (float64, error) {
	client := newClient(i.API)
	all := make([]float64, s.calls)
	for n := range all {
		began := time.Now()
		if err := fetchOnce(client, get{address: i.API, path: r.root() + r.path(n, servers)}, n); err != nil {
			return 0, err
		}
		all[n] = float64(time.Since(began).Nanoseconds()) / 1000
	}
	return median(all), nil
}
