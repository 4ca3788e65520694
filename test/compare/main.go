// Command compare asks Tollgate and the Envoy rate limit service the same questions, and prints
// where their answers or their statistics differ. Rules and requests are random but determined by
// a seed. Both services count on the same Valkey server, whose address is in TEST_VALKEY_URL.
//
// The random rules and requests leave out what is known to differ (docs/from-envoy-ratelimit.md), and
// quota mode: the version in the Makefile, the newest that go install finds, is from January 2026, and
// in February the Envoy service changed what quota mode means to what it means here.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// settings are compared one after the other; each is the environment of both services.
var settings = [][]string{
	nil,
	{"LIMIT_RESPONSE_HEADERS_ENABLED=true", "NEAR_LIMIT_RATIO=0.5"},
	{"LOCAL_CACHE_SIZE_IN_BYTES=1048576"},
	{stopSetting},
	{"SHADOW_MODE=true"},
	{"RESPONSE_DYNAMIC_METADATA=true"},
}

// stopSetting is atomic in Tollgate. The Envoy service reads all counters of a request before it adds
// to any, which differs if two descriptors have the same counter.
const stopSetting = "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"

const (
	root        = "." // of the module: the program is run from there
	callTimeout = 10 * time.Second
	mostPrinted = 20 // differences of one comparison
)

func main() {
	peer := flag.String("peer", "", "program of the Envoy rate limit service")
	calls := flag.Int("calls", 20_000, "requests for each group of settings")
	seed := flag.Uint64("seed", 1, "seed of the rules and requests")
	flag.Parse()
	if err := compareAll(*peer, *calls, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compareAll(peer string, calls int, seed uint64) error {
	if peer == "" || os.Getenv("TEST_VALKEY_URL") == "" {
		return errors.New("-peer and TEST_VALKEY_URL must be set")
	}
	dir, err := os.MkdirTemp("", "tollgate-compare-")
	if err != nil {
		return fmt.Errorf("folder of the services: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := instance.Build(root, dir, false, "cmd/tollgate"); err != nil {
		return err
	}
	differences := 0
	for i := range 2 * len(settings) {
		random := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // repeatable, not secret
		environ := settings[i/2]
		c := comparison{random: random, environ: environ, dir: filepath.Join(dir, strconv.Itoa(i)), sameNames: i%2 == 1}
		if err := c.run(peer, filepath.Join(dir, "tollgate"), calls); err != nil {
			return fmt.Errorf("%q: %w", environ, err)
		}
		fmt.Printf("[%s] %d calls, %d over their limit, %d statistics: %d differences\n",
			strings.Join(environ, " "), calls, c.over, c.statistics, c.differences)
		differences += c.differences
	}
	if differences > 0 {
		return fmt.Errorf("%d differences", differences)
	}
	return nil
}

// comparison compares the two services with one group of settings.
type comparison struct {
	random      *rand.Rand
	environ     []string
	dir         string
	sameNames   bool // only rules whose statistics have the same names in both services
	over        int  // calls that both answered OVER_LIMIT
	statistics  int
	differences int
}

func (c *comparison) run(peer, tollgate string, calls int) error {
	domains := newDomains(c.random, c.sameNames)
	if err := writeRules(filepath.Join(c.dir, "config"), domains); err != nil {
		return err
	}
	services := make([]*service, 0, 2)
	for _, program := range []func() (*service, error){
		func() (*service, error) { return startPeer(peer, c.dir, c.environ) },
		func() (*service, error) { return startTollgate(tollgate, c.dir, c.environ) },
	} {
		s, err := program()
		if err != nil {
			return err
		}
		defer s.stop()
		services = append(services, s)
	}
	distinct := slices.Contains(c.environ, stopSetting)
	for range calls {
		request := newRequest(c.random, domains, distinct)
		waitForMinute()
		var answers [2]string
		for i, s := range services {
			answers[i] = s.ask(request)
		}
		if strings.HasPrefix(answers[0], "OVER_LIMIT") {
			c.over++
		}
		if answers[0] != answers[1] {
			c.print(fmt.Sprintf("request %v\n  Envoy's  %s\n  Tollgate %s", request, answers[0], answers[1]))
		}
	}
	if c.sameNames {
		c.compareStatistics(services[0], services[1])
	}
	return nil
}

// waitForMinute waits for the next minute if it is near, because times to a reset are compared to
// the minute.
func waitForMinute() {
	next := time.Now().Truncate(time.Minute).Add(time.Minute)
	if left := time.Until(next); left < 100*time.Millisecond {
		time.Sleep(left)
	}
}

// compareStatistics compares what the services have counted for their rules.
func (c *comparison) compareStatistics(peer, tollgate *service) {
	theirs, ours := peer.statistics.wait(), tollgate.statistics.wait()
	c.statistics = len(theirs)
	names := maps.Clone(theirs)
	maps.Copy(names, ours)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if ours[name] != theirs[name] {
			c.print(fmt.Sprintf("statistic %s\n  Envoy's  %d\n  Tollgate %d", name, theirs[name], ours[name]))
		}
	}
}

func (c *comparison) print(difference string) {
	if c.differences++; c.differences <= mostPrinted {
		fmt.Println(difference)
	}
}
