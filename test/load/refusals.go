package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// refusalsCommand is the argument with which this program measures whether the time of a refused
// login reveals who has an account.
const refusalsCommand = "refusals"

// refusals is a measurement of wrong passwords for people with and without an account. The lockout
// threshold has its maximum, which no person reaches. Password hashes use little memory, so that
// they do not hide other differences.
type refusals struct{ people, tries, hashMemory int }

func measureRefusals(args []string) error {
	var r refusals
	flags := flag.NewFlagSet(refusalsCommand, flag.ExitOnError)
	flags.IntVar(&r.people, "people", 10, "people with an account, and as many without")
	flags.IntVar(&r.tries, "tries", 90, "wrong passwords for each, at most 99")
	flags.IntVar(&r.hashMemory, "hash-memory", 19456, "ARGON2_MEMORY_KIB of the service")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if r.people < 1 || r.tries < 1 || r.tries > 99 {
		return fmt.Errorf("people must be 1 or more, tries 1 to 99")
	}
	return inEachEnvironment(r.measureTimes)
}

func (r refusals) measureTimes(dir string, e environment) error {
	e.environ = append(e.environ, "LOCKOUT_THRESHOLD=100", "ARGON2_MEMORY_KIB="+strconv.Itoa(r.hashMemory))
	i, err := e.startService(dir, "serve")
	if err != nil {
		return err
	}
	defer func() { _ = i.Stop() }() // the stored records are not checked
	for n := range r.people {
		if err := runCommand(dir, e, burstPassword, "user", "add", "--email", burstEmail(n), "--name", "Load",
			"--password-stdin"); err != nil {
			return err
		}
	}
	if _, err := timeRefusal(i, "warm@example.com"); err != nil {
		return err
	}
	var known, unknown waits
	for _, n := range r.shuffledOrder() {
		email, of := burstEmail(n), &known
		if n >= r.people {
			of = &unknown
		}
		took, err := timeRefusal(i, email)
		if err != nil {
			return err
		}
		*of = append(*of, took)
	}
	fmt.Printf("%s, %d refusals each: known %s, unknown %s, apart by %+.1f (within ±2.6 in 99 of 100 measurements of what is alike)\n",
		e.records, len(known), known, unknown, compareTimes(known, unknown))
	return nil
}

// shuffledOrder returns the sequence of attempts; people with an account have the first numbers.
// The sequence is random, because a fixed pattern could coincide with another one, for example with
// the garbage collections after a few hashes.
func (r refusals) shuffledOrder() []int {
	all := make([]int, 0, 2*r.people*r.tries)
	for n := range 2 * r.people * r.tries {
		all = append(all, n%(2*r.people))
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func timeRefusal(i *instance.Instance, email string) (time.Duration, error) {
	body := fmt.Appendf(nil, `{"email":%q,"password":"wrong","deviceInfo":{"userAgent":"load","language":"en"}}`, email)
	began := time.Now()
	resp, err := http.Post("http://"+i.API+"/auth/login", "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("login: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read to its end
	_, err = io.Copy(io.Discard, resp.Body)
	took := time.Since(began)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return 0, fmt.Errorf("login answered %s, %w", resp.Status, err)
	}
	return took, nil
}

// compareTimes compares two samples with the Mann-Whitney test. The result is about normal with
// variance 1 if they are alike, and positive if a is slower.
func compareTimes(a, b waits) float64 {
	type took struct {
		time time.Duration
		ofA  bool
	}
	var all []took
	for _, t := range a {
		all = append(all, took{t, true})
	}
	for _, t := range b {
		all = append(all, took{t, false})
	}
	slices.SortFunc(all, func(x, y took) int { return cmp.Compare(x.time, y.time) })
	var wins, below float64
	for _, t := range all {
		if t.ofA {
			wins += below
		} else {
			below++
		}
	}
	n, m := float64(len(a)), float64(len(b))
	return (wins - n*m/2) / math.Sqrt(n*m*(n+m+1)/12)
}
