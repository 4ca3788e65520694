// Command compare sends the same requests to Tollgate and to the Envoy rate limit service, and
// prints where their answers or their statistics differ. Rules and requests are random but
// determined by a seed. Both services count on the same Valkey server, whose address is in
// TEST_VALKEY_URL.
//
// The services get the rules from files, and from a management server over xDS. The random rules
// and requests leave out what is known to differ (docs/from-envoy-ratelimit.md).
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// settings are compared one after the other; each is the environment of both services.
var settings = [][]string{
	nil,
	{headerSetting, "NEAR_LIMIT_RATIO=0.5"},
	{"LOCAL_CACHE_SIZE_IN_BYTES=1048576"},
	{stopSetting},
	{"SHADOW_MODE=true"},
	{"RESPONSE_DYNAMIC_METADATA=true"},
	{"QUOTA_MODE=true"},
}

// The sources of rules.
const (
	fromFiles  = "files"
	fromServer = "xds"
)

// headerSetting adds response headers. Of a request with quotas the services describe different
// descriptors.
const headerSetting = "LIMIT_RESPONSE_HEADERS_ENABLED=true"

// stopSetting is atomic in Tollgate. The Envoy service reads all counters of a request before it
// adds to any, which differs if two descriptors have the same counter.
const stopSetting = "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"

const (
	root        = "." // of the module: the program is run from there
	callTimeout = 10 * time.Second
	mostPrinted = 20 // differences of one comparison
)

func main() {
	peer := flag.String("peer", "", "program of the Envoy rate limit service")
	calls := flag.Int("calls", 20_000, "requests for each group of settings")
	source := flag.String("rules", "", "where the services get their rules: files or xds; both if it is not set")
	seed := flag.Uint64("seed", 1, "seed of the rules and requests")
	flag.Parse()
	sources := []string{fromFiles, fromServer}
	if *source != "" {
		sources = []string{*source}
	}
	if err := compareAll(*peer, sources, *calls, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compareAll(peer string, sources []string, calls int, seed uint64) error {
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
	differences, all := 0, 0
	for _, source := range sources {
		for i := range 2 * len(settings) {
			stream := uint64(i) //nolint:gosec // small
			if source == fromServer {
				stream += 1000 // other rules and requests than from files
			}
			random := rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // repeatable, not secret
			environ := settings[i/2]
			c := comparison{
				random: random, environ: environ, source: source, dir: filepath.Join(dir, source+strconv.Itoa(i)),
				sameNames: i%2 == 1,
			}
			if err := c.run(peer, filepath.Join(dir, "tollgate"), calls); err != nil {
				return fmt.Errorf("rules from %s, %q: %w", source, environ, err)
			}
			fmt.Printf("rules from %s [%s] %d calls, %d over their limit, %d statistics: %d differences\n",
				source, strings.Join(environ, " "), calls, c.over, c.statistics, c.differences)
			differences += c.differences
			all += calls
		}
	}
	fmt.Printf("%d calls: %d differences\n", all, differences)
	if differences > 0 {
		return fmt.Errorf("%d differences", differences)
	}
	return nil
}

// comparison compares the two services with one group of settings.
type comparison struct {
	random      *rand.Rand
	environ     []string
	source      string // of the rules
	dir         string
	sameNames   bool // only rules whose statistics have the same names in both services
	over        int  // calls that both answered OVER_LIMIT
	statistics  int
	differences int
}

func (c *comparison) run(peer, tollgate string, calls int) error {
	domains := newDomains(c.random, words{
		sameNames: c.sameNames, noSharing: c.source == fromServer, noQuota: slices.Contains(c.environ, headerSetting),
	})
	environ, stop, err := c.offerRules(domains)
	if err != nil {
		return err
	}
	defer stop()
	services := make([]*service, 0, 2)
	for _, program := range []func() (*service, error){
		func() (*service, error) { return startPeer(peer, c.dir, environ) },
		func() (*service, error) { return startTollgate(tollgate, c.dir, environ) },
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
		began := time.Now()
		var answers [2]string
		for i, s := range services {
			answers[i] = s.ask(request)
		}
		if strings.HasPrefix(answers[0], "OVER_LIMIT") {
			c.over++
		}
		if minuteOfResets(began) != minuteOfResets(time.Now()) { // it turned between the answers
			for i := range answers {
				answers[i] = resets.ReplaceAllString(answers[i], "$1")
			}
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

// offerRules puts the rules where the services read them, and returns the environment of the
// services.
func (c *comparison) offerRules(domains []domain) (environ []string, stop func(), err error) {
	switch c.source {
	case fromFiles:
		environ = []string{
			"RUNTIME_ROOT=" + c.dir, "RUNTIME_SUBDIRECTORY=", "RUNTIME_APPDIRECTORY=config", "RUNTIME_WATCH_ROOT=false",
		}
		stop, err = func() {}, writeRules(filepath.Join(c.dir, "config"), domains)
	case fromServer:
		if err := os.MkdirAll(c.dir, 0o700); err != nil {
			return nil, nil, fmt.Errorf("folder of the services: %w", err)
		}
		environ, stop, err = serveRules(domains)
	default:
		return nil, nil, fmt.Errorf("-rules: %q is neither %s nor %s", c.source, fromFiles, fromServer)
	}
	return append(environ, c.environ...), stop, err
}

// resets are the times to a reset in the text of an answer.
var resets = regexp.MustCompile(`(?i)(reset=)-?[0-9]+m`)

// minuteOfResets returns the minute that determines the minutes of a reset: the seconds to a reset
// are those to a full minute until one second of the minute has passed.
func minuteOfResets(t time.Time) time.Time { return t.Add(-time.Second).Truncate(time.Minute) }

// waitForMinute waits for the next minute if it is near, because times to a reset are compared to
// the minute.
func waitForMinute() {
	now := time.Now()
	if next := now.Add(100 * time.Millisecond); minuteOfResets(next) != minuteOfResets(now) {
		time.Sleep(time.Until(next))
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
