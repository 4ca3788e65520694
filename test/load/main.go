// Command load measures the cost of a call to the service, and compares it with a floor of the same
// run: an empty gRPC handler, a Fiber handler that returns a constant, and for reads of the
// registry a Fiber handler that makes one prepared query for the same rows and writes their bytes.
// Floors and candidates take turns, so that a change in the speed of the machine affects both. The
// output has medians and ratios.
//
// With TEST_VALKEY_URL and TEST_DATABASE_URL it measures the production environment too.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
)

// plan is how the measurement is done.
type plan struct {
	rounds   int
	duration time.Duration
	warmup   time.Duration
	workers  int
	conns    int
	only     string // part of the names of what is measured; empty = all
	limit    uint64 // REGISTRY_RATE_LIMIT; 0 = no limit
	profiles string // folder for CPU profiles; empty = no profiles
}

func main() {
	if len(os.Args) > 1 {
		switch args := os.Args[2:]; os.Args[1] {
		case floorCommand:
			exitWith(serveFloor(strings.Join(args, "")))
		case generateCommand:
			exitWith(generateData(args))
		case sizeCommand:
			exitWith(measureSizes(args))
		case publishCommand:
			exitWith(measurePublication(args))
		case keptCommand:
			exitWith(measureKept(args))
		case proofsCommand:
			exitWith(measureProofs(args))
		case decisionsCommand:
			exitWith(measureDecisions(args))
		case accessCommand:
			exitWith(measureAccess(args))
		case loginsCommand:
			exitWith(measureLogins(args))
		case refusalsCommand:
			exitWith(measureRefusals(args))
		case memoryCommand:
			exitWith(measureMemory(args))
		}
	}
	p := plan{}
	p.defineFlags(flag.CommandLine)
	flag.Uint64Var(&p.limit, "registry-limit", 0, "REGISTRY_RATE_LIMIT of the services, 0 = reads are not counted")
	flag.Parse()
	exitWith(measureCalls(p))
}

// defineFlags declares the flags of a plan.
func (p *plan) defineFlags(flags *flag.FlagSet) {
	flags.IntVar(&p.rounds, "rounds", 5, "interleaved rounds")
	flags.DurationVar(&p.duration, "duration", 2*time.Second, "measured time of one candidate in one round")
	flags.DurationVar(&p.warmup, "warmup", 500*time.Millisecond, "unmeasured time before it")
	flags.IntVar(&p.workers, "workers", 32, "calls in flight")
	flags.IntVar(&p.conns, "conns", 4, "gRPC connections")
	flags.StringVar(&p.only, "only", "",
		"measure only candidates with this text in the name, for example \"list of 100\"")
	flags.StringVar(&p.profiles, "profiles", "",
		"folder to keep CPU profiles in, one of each measured call of a service")
}

func exitWith(err error) {
	err = errors.Join(err, postgrestest.Close())
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
