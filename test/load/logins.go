package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// loginsCommand is the argument with which this program measures a burst of logins.
const loginsCommand = "logins"

// burst is a measurement of many logins at once.
type burst struct{ logins, people, idle int }

// measureLogins reads the command's flags and prints, for each environment, how many logins of a
// burst were accepted and deferred, the peak memory of the service, and how long a reader of the
// registry waited during the burst and at other times.
func measureLogins(args []string) error {
	var b burst
	flags := flag.NewFlagSet(loginsCommand, flag.ExitOnError)
	flags.IntVar(&b.logins, "logins", 200, "logins at once")
	flags.IntVar(&b.people, "people", 200, "people who sign in")
	flags.IntVar(&b.idle, "idle", 500, "reads measured before the burst")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return inEachEnvironment(b.measureBurst)
}

func (b burst) measureBurst(dir string, e environment) error {
	i, err := e.startService(dir, "serve")
	if err != nil {
		return err
	}
	defer func() { _ = i.Stop() }() // what it stored is not looked at
	for n := range b.people {
		if err := runCommand(dir, e, burstPassword, "user", "add", "--email", burstEmail(n), "--name", "Load",
			"--password-stdin"); err != nil {
			return err
		}
	}
	idle, err := readUntil(i, func(n int) bool { return n == b.idle })
	if err != nil {
		return err
	}
	over := make(chan struct{})
	var taken, putOff int
	var failed error
	began := time.Now()
	var took time.Duration
	go func() {
		defer close(over)
		taken, putOff, failed = b.runBurst(i)
		took = time.Since(began)
	}()
	busy, err := readUntil(i, func(int) bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	if err != nil || failed != nil {
		return fmt.Errorf("burst: %w, reads: %w", failed, err)
	}
	_, peak, err := readResident(i)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d logins at once: %d taken and %d put off in %v, at most %d MiB; reads meanwhile %s, before %s\n",
		e.records, b.logins, taken, putOff, took.Round(time.Millisecond), peak, busy, idle)
	return nil
}

const burstPassword = "Correct-Horse-7-Battery"

func burstEmail(n int) string { return "load" + strconv.Itoa(n) + "@example.com" }

// runBurst signs in with all logins at once. A login that is put off is answered 503
// with Retry-After; any other failure is an error.
func (b burst) runBurst(i *instance.Instance) (taken, putOff int, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.logins}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for n := range b.logins {
		all.Go(func() {
			ok, failure := burstLogin(client, i, burstEmail(n%b.people))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case failure != nil:
				err = failure
			case ok:
				taken++
			default:
				putOff++
			}
		})
	}
	all.Wait()
	return taken, putOff, err
}

func burstLogin(client *http.Client, i *instance.Instance, email string) (bool, error) {
	body := fmt.Sprintf(`{"email":%q,"password":%q,"deviceInfo":{"userAgent":"load","language":"en"}}`, email,
		burstPassword)
	resp, err := client.Post("http://"+i.API+"/auth/login", "application/json", bytes.NewBufferString(body))
	if err != nil {
		return false, fmt.Errorf("login: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing more is read
	switch {
	case resp.StatusCode == http.StatusOK:
		return true, nil
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return false, nil
	}
	return false, fmt.Errorf("login answered %s", resp.Status)
}

// waits are how long calls took.
type waits []time.Duration

// String shows the median and the 95th percentile.
func (w waits) String() string {
	slices.Sort(w)
	at := func(part int) time.Duration { return w[(len(w)-1)*part/100].Round(time.Microsecond) }
	return fmt.Sprintf("%v (95%% within %v)", at(50), at(95))
}

// readUntil reads the registry, one call after the other, until done returns true for the number of
// calls. It makes at least one call.
func readUntil(i *instance.Instance, done func(n int) bool) (waits, error) {
	var all waits
	for {
		began := time.Now()
		resp, err := http.Get("http://" + i.API + "/v0.1/servers?limit=1")
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close() // it was read to its end
		if err != nil || resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("read: %s, %w", resp.Status, err)
		}
		all = append(all, time.Since(began))
		if done(len(all)) {
			return all, nil
		}
	}
}
