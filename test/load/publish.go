package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// publishCommand is the argument with which this program measures publication.
const publishCommand = "publish"

// publication is a measurement of concurrent publishers.
type publication struct {
	publishers int
	duration   time.Duration
	profiles   string
}

// measurePublication reads the command's flags and prints the number of versions per second that
// the services accept. Each publisher has its own servers and sends one request at a time.
func measurePublication(args []string) error {
	var p publication
	flags := flag.NewFlagSet(publishCommand, flag.ExitOnError)
	flags.IntVar(&p.publishers, "publishers", 20, "publishers at work at once")
	flags.DurationVar(&p.duration, "duration", 10*time.Second, "measured time")
	flags.StringVar(&p.profiles, "profiles", "", "folder to keep a CPU profile of each service in")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return inEachEnvironment(p.measureRate)
}

func (p publication) measureRate(dir string, e environment) error {
	i, err := e.startService(dir, "serve")
	if err != nil {
		return err
	}
	defer func() { _ = i.Stop() }() // the stored versions are not checked
	token, err := signIn(dir, e, i)
	if err != nil {
		return err
	}
	profiled := make(chan error, 1)
	if p.profiles == "" {
		profiled <- nil
	} else {
		go func() { profiled <- fetchPage(i.Debug, filepath.Join(p.profiles, "publish-"+e.name+".pprof")) }()
	}
	before, err := cpuTime(i.PID())
	if err != nil {
		return err
	}
	n, took, err := p.publishVersions("http://"+i.API+"/v0.1/publish", token)
	if err != nil {
		return err
	}
	after, err := cpuTime(i.PID())
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d publishers: %.0f publications/s, %d µs of the service's CPU each\n",
		e.records, p.publishers, float64(n)/took.Seconds(), (after-before).Microseconds()/n)
	return <-profiled
}

// publishVersions publishes until the time is over and returns the number of accepted versions.
func (p publication) publishVersions(address, token string) (n int64, took time.Duration, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: p.publishers}}
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	began := time.Now()
	for publisher := range p.publishers {
		all.Go(func() {
			for i := 0; time.Since(began) < p.duration && failed.Load() == nil; i++ {
				// Ten versions of a server, then the next server.
				d := newDocument(publisher*1_000_000+i/10, i%10)
				if err := postJSONWith(client, address, token, d, nil); err != nil {
					failed.Store(&err)
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	if f := failed.Load(); f != nil {
		return 0, 0, *f
	}
	if done.Load() == 0 {
		return 0, 0, errors.New("nothing was published in " + strconv.Itoa(int(p.duration.Seconds())) + " s")
	}
	return done.Load(), time.Since(began), nil
}
