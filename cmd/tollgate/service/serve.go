// Package service has the commands that run the service, check whether it is ready, and print its
// settings.
package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/eventlog"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/wiring"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// Commands returns the commands that run and examine the service.
func Commands(p cli.Process) []*cobra.Command {
	return []*cobra.Command{newServe(p), newHealth(p), newSettings(p)}
}

func newServe(p cli.Process) *cobra.Command {
	var only []string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the service",
		Long: "Run the service, by default with all its parts, and with embedded storage unless\n" +
			"the settings name other servers. SIGTERM drains the service; a second signal\n" +
			"ends it at once.",
		Example: "  tollgate serve\n" +
			"  DATABASE_URL=postgres://tollgate@localhost/tollgate KVSTORE_URL=localhost:6379 tollgate serve\n" +
			"  tollgate serve --only ratelimit",
	}
	c.Flags().StringSliceVar(&only, "only", nil, "run only these parts: registry, auth, methods, ratelimit, console")
	cli.CompleteValues(c, "only", "registry", "auth", "methods", "ratelimit", "console")
	c.RunE = func(c *cobra.Command, _ []string) error {
		parts, err := settings.ParseParts(only)
		if err != nil {
			return err
		}
		s, err := settings.ReadParts(p.Environ, only)
		if err != nil {
			return err
		}
		return Serve(c.Context(), p, s, parts)
	}
	return c
}

// checkSystem returns an error for a system on which the service cannot run: on Windows it could not
// see who may write to its keys and plugins, and its plugins would not end with it.
func checkSystem(name string) error {
	if name == "windows" {
		return errors.New("the service does not run on Windows: run it on Linux, and use the other commands here with --server URL")
	}
	return nil
}

// Serve runs the service until ctx ends, which happens at the first signal, and then drains it. A
// second signal ends the process at once.
func Serve(ctx context.Context, p cli.Process, s settings.Settings, parts settings.Parts) error {
	if err := checkSystem(runtime.GOOS); err != nil {
		return err
	}
	relaxGarbageCollection(p.Environ)
	log := eventlog.NewLog(p.Stderr, s.Service.LogLevel, s.Service.LogFormat)
	s.Console.Announce = cli.IsTerminal(p.Stderr)
	service, cleanup, err := wiring.Open(ctx, s, parts, p.Build, log)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer cleanup()
	if p.Exit != nil { // only main has a process to end
		go exitOnSecondSignal(ctx, p, log)
	}
	if err := service.Run(ctx); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func exitOnSecondSignal(ctx context.Context, p cli.Process, log *logrus.Entry) {
	<-ctx.Done()
	second := make(chan os.Signal, 1)
	signal.Notify(second, syscall.SIGINT, syscall.SIGTERM)
	<-second
	log.Error("second signal: exiting at once")
	p.Exit(cli.ExitFailed)
}

const (
	// maxHeapGrowthPercent is how much the heap may grow between two garbage collections, in
	// percent of the memory in use.
	maxHeapGrowthPercent = 400
	// maxHeapGrowthBytes limits the growth in bytes, while it is more than half of the memory in
	// use and more than maxHeapGrowthPercent of the memory with pointers.
	maxHeapGrowthBytes = 64 << 20
	// maxScanGrowthBytes limits the growth because of memory with pointers.
	maxScanGrowthBytes = 256 << 20
)

// relaxGarbageCollection lets the heap grow more than Go's default between two collections, unless
// GOGC is set. The service keeps little memory between requests, and with Go's default it would
// collect garbage dozens of times a second under load. A process that keeps a lot of memory, for
// example a million counters, would need several times as much; its heap may grow by less. But the
// more of that memory has pointers, for example that of 100,000 rules, the longer a collection
// takes and the more rarely it should happen.
func relaxGarbageCollection(environ []string) {
	if slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		return
	}
	debug.SetGCPercent(maxHeapGrowthPercent)
	set := maxHeapGrowthPercent
	afterEachCollection(func() {
		sizes := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
		metrics.Read(sizes)
		if wanted := heapGrowthPercent(sizes[0].Value.Uint64(), sizes[1].Value.Uint64()); wanted != set {
			debug.SetGCPercent(wanted)
			set = wanted
		}
	})
}

// heapGrowthPercent returns by how many percent the heap may grow, given the bytes in use and those
// of them that are in objects with pointers. The result is a multiple of 10, because each change of
// the setting stops the process for a moment.
func heapGrowthPercent(inUse, withPointers uint64) int {
	if inUse <= maxHeapGrowthBytes*100/maxHeapGrowthPercent {
		return maxHeapGrowthPercent
	}
	forPointers := min(withPointers*maxHeapGrowthPercent/100, maxScanGrowthBytes)
	return int(max(maxHeapGrowthBytes, inUse/2, forPointers)*10/inUse) *
		10 //nolint:gosec // at most maxHeapGrowthPercent
}

// afterEachCollection calls do after every garbage collection, until the process ends. It creates
// an unreferenced object, whose cleanup runs with the next collection.
func afterEachCollection(do func()) {
	type sentinel struct{ _ *sentinel }
	runtime.AddCleanup(&sentinel{}, func(do func()) {
		do()
		afterEachCollection(do)
	}, do)
}
