// Command load measures what the service spends on a call, beside a floor of
// the same run: an empty gRPC handler, and a Fiber handler that returns a
// constant. Floor and candidates take turns, so that a machine whose speed
// drifts treats them alike; what is printed are medians and ratios.
//
// With TEST_VALKEY_URL and TEST_DATABASE_URL set it measures the production
// environment too.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

// plan is how the measurement is done.
type plan struct {
	rounds   int
	duration time.Duration
	warmup   time.Duration
	workers  int
	conns    int
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == floorCommand {
		exit(serveFloor())
	}
	p := plan{}
	flag.IntVar(&p.rounds, "rounds", 5, "interleaved rounds")
	flag.DurationVar(&p.duration, "duration", 2*time.Second, "measured time of one candidate in one round")
	flag.DurationVar(&p.warmup, "warmup", 500*time.Millisecond, "unmeasured time before it")
	flag.IntVar(&p.workers, "workers", 32, "calls in flight")
	flag.IntVar(&p.conns, "conns", 4, "gRPC connections")
	flag.Parse()
	exit(measure(p))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
