package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// keptCommand is the argument with which this program measures what changes and many different
// requests do to reads that are answered from memory.
const keptCommand = "kept"

// kept is a measurement of lists with and without changes, and of many different requests.
type kept struct {
	callers, distinct int
	duration          time.Duration
}

// measureKept reads the command's flags and prints the latencies of lists without changes and with
// one publication a second, and the memory of the service after many different requests.
func measureKept(args []string) error {
	var k kept
	flags := flag.NewFlagSet(keptCommand, flag.ExitOnError)
	flags.IntVar(&k.callers, "callers", 16, "callers at once")
	flags.IntVar(&k.distinct, "distinct", 1_000_000, "different requests")
	flags.DurationVar(&k.duration, "duration", 10*time.Second, "measured time with changes, and without")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return inEachEnvironment(k.measureEnvironment)
}

func (k kept) measureEnvironment(dir string, e environment) error {
	i, err := e.startService(dir, "serve")
	if err != nil {
		return err
	}
	defer func() { _ = i.Stop() }() // what it stored is not looked at
	token, err := seedService(dir, e, i)
	if err != nil {
		return err
	}
	list := get{address: i.API, path: "/v0.1/servers?limit=100"}
	var all [2]waits
	for round := range all {
		end := make(chan error, 1)
		stop := make(chan struct{})
		go func() { end <- publishEachSecond(i, token, round == 1, stop) }()
		if all[round], err = k.repeat(list); err != nil {
			return err
		}
		close(stop)
		if err := <-end; err != nil {
			return err
		}
	}
	before, after := all[0].at(99), all[1].at(99)
	fmt.Printf("%s, list of 100: 99%% of %d lists within %v without changes, of %d within %v with one a second, %.2f times\n",
		e.records, len(all[0]), before, len(all[1]), after, float64(after)/float64(before))
	return k.measureMemory(e, i)
}

// at returns the time within which a part of the calls, in percent, ended.
func (w waits) at(part int) time.Duration {
	slices.Sort(w)
	return w[(len(w)-1)*part/100].Round(time.Microsecond)
}

// publishEachSecond publishes one version a second, or nothing, until stop is closed.
func publishEachSecond(i *instance.Instance, token string, publish bool, stop chan struct{}) error {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		case <-ticks.C:
			if !publish {
				continue
			}
			if err := postJSONWith(http.DefaultClient, "http://"+i.API+"/v0.1/publish", token,
				newDocument(5_000_000, n), nil); err != nil {
				return err
			}
		}
	}
}

// repeat sends a request for the duration and returns how long the responses took.
func (k kept) repeat(g get) (waits, error) {
	client := newClient(g.address)
	var mu sync.Mutex
	var all waits
	var failed error
	var running sync.WaitGroup
	end := time.Now().Add(k.duration)
	for range k.callers {
		running.Go(func() {
			var own waits
			var err error
			for began := time.Now(); began.Before(end) && err == nil; {
				err = fetchOnce(client, g, 0)
				now := time.Now()
				own, began = append(own, now.Sub(began)), now
			}
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, own...), errors.Join(failed, err)
		})
	}
	running.Wait()
	return all, failed
}

// measureMemory sends many different requests and prints the resident memory before and after.
func (k kept) measureMemory(e environment, i *instance.Instance) error {
	before, _, err := readResident(i)
	if err != nil {
		return err
	}
	client := newClient(i.API)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var running sync.WaitGroup
	for range k.callers {
		running.Go(func() {
			for n := next.Add(1); n <= int64(k.distinct) && failed.Load() == nil; n = next.Add(1) {
				if err := requestVersion(client, i.API, n); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	running.Wait()
	if f := failed.Load(); f != nil {
		return *f
	}
	after, most, err := readResident(i)
	fmt.Printf("%s, %d different requests: resident memory %d MiB before, %d MiB after, at most %d MiB\n", e.records,
		k.distinct, before, after, most)
	return err
}

// requestVersion requests a list that no other number requests: of the servers of one version.
func requestVersion(client *fasthttp.HostClient, address string, n int64) error {
	return fetchOnce(client, get{
		address: address, path: "/v0.1/servers?limit=1&version=1.0." + strconv.FormatInt(n, 10),
	}, 0)
}
