package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/test/dnsserver"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// proofsCommand is the argument with which this program measures what publishing without a person
// costs.
const proofsCommand = "proofs"

// provenDomain is the domain whose key is used. It is the domain of newDocument's names.
const provenDomain = "example.com"

// proofs compares proofs by DNS with checked tokens, and publications with the token of a proof
// with those of a person.
type proofs struct {
	rounds, callers int
	duration        time.Duration
	profiles        string // folder for CPU profiles; empty = no profiles
}

// measureProofs reads the command's flags and prints the CPU time of each kind of call.
func measureProofs(args []string) error {
	var p proofs
	flags := flag.NewFlagSet(proofsCommand, flag.ExitOnError)
	flags.IntVar(&p.rounds, "rounds", 5, "interleaved rounds")
	flags.IntVar(&p.callers, "callers", 16, "callers at once")
	flags.DurationVar(&p.duration, "duration", 2*time.Second, "measured time of one kind of call in one round")
	flags.StringVar(&p.profiles, "profiles", "", "folder to keep a CPU profile of each kind of call in")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return inEachEnvironment(p.measureCosts)
}

// costedCall is a kind of call. call makes one; n is different in each call.
type costedCall struct {
	name string
	call func(n int64) error
	cost []time.Duration // CPU time of the service for one call, by round
}

// median returns the median of the rounds.
func (c *costedCall) median() time.Duration {
	sorted := slices.Sorted(slices.Values(c.cost))
	return sorted[len(sorted)/2]
}

func (p proofs) measureCosts(dir string, e environment) error {
	names, stop, err := dnsserver.Listen()
	if err != nil {
		return err
	}
	defer stop()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	names.SetTXT(provenDomain, "v=MCPv1; k=ed25519; p="+base64.StdEncoding.EncodeToString(public))
	e.environ = append(e.environ, "PUBLISHER_DNS_RESOLVER="+names.Address, "PUBLISHER_PROOF_LIMIT=0",
		"PUBLISHER_DOMAIN_LIMIT=0")
	i, err := e.startService(dir, "serve")
	if err != nil {
		return err
	}
	defer func() { _ = i.Stop() }() // what it stored is not looked at
	calls, err := p.newCalls(dir, e, i, private)
	if err != nil {
		return err
	}
	var n atomic.Int64
	for range p.rounds {
		for _, c := range calls {
			cost, err := p.measureRound(i, c, &n)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			c.cost = append(c.cost, cost)
		}
	}
	if err := p.profileCalls(e, i, calls, &n); err != nil {
		return err
	}
	token, proof, person, policy := calls[0], calls[1], calls[2], calls[3]
	for _, pair := range [][2]*costedCall{{proof, token}, {policy, person}} {
		a, b := pair[0].median(), pair[1].median()
		fmt.Printf("%s: %s %d µs, %s %d µs, %.2f times\n", e.records, pair[0].name, a.Microseconds(), pair[1].name,
			b.Microseconds(), float64(a)/float64(b))
	}
	return nil
}

// newCalls prepares the service and returns the calls: a checked token, a proof, a publication by a
// person, and one with the token of a proof.
func (p proofs) newCalls(
	dir string, e environment, i *instance.Instance, key ed25519.PrivateKey,
) ([]*costedCall, error) {
	person, err := signIn(dir, e, i)
	if err != nil {
		return nil, err
	}
	if err := runCommand(dir, e, "", "publisher", "add", "--method", "dns", "--domain", provenDomain, "--pattern",
		"com.example/*"); err != nil {
		return nil, err
	}
	api := "http://" + i.API
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: p.callers}}
	prove := func(n int64, into any) error {
		// Whole seconds would repeat: the fraction makes each timestamp another one.
		timestamp := time.Now().UTC().Format("2006-01-02T15:04:05") + fmt.Sprintf(".%09dZ", n%1_000_000_000)
		return postJSONWith(client, api+"/v0/auth/dns", "", map[string]string{
			"domain": provenDomain, "timestamp": timestamp,
			"signed_timestamp": hex.EncodeToString(ed25519.Sign(key, []byte(timestamp))),
		}, into)
	}
	var proven struct {
		Token string `json:"registry_token"`
	}
	if err := prove(0, &proven); err != nil {
		return nil, err
	}
	publish := func(token string) func(n int64) error {
		return func(n int64) error {
			return postJSONWith(client, api+"/v0/publish", token, newDocument(int(n), 0), nil)
		}
	}
	return []*costedCall{
		{name: "a checked token", call: func(int64) error { return getWith(client, api+"/auth/session", person) }},
		{name: "a proof by DNS", call: func(n int64) error { return prove(n, nil) }},
		{name: "a publication by a person", call: publish(person)},
		{name: "a publication by policy", call: publish(proven.Token)},
	}, nil
}

func getWith(client *http.Client, address, token string) error {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read to its end
	_, err = io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s, %w", address, resp.Status, err)
	}
	return nil
}

// profileCalls saves a CPU profile of each kind of call.
func (p proofs) profileCalls(e environment, i *instance.Instance, calls []*costedCall, n *atomic.Int64) error {
	if p.profiles == "" {
		return nil
	}
	p.duration = profileTime + time.Second
	for _, c := range calls {
		saved := make(chan error, 1)
		go func() {
			saved <- fetchPage(i.Debug, filepath.Join(p.profiles, e.name+" "+c.name+".pprof"))
		}()
		if _, err := p.measureRound(i, c, n); err != nil {
			return err
		}
		if err := <-saved; err != nil {
			return err
		}
	}
	return nil
}

// measureRound makes calls for one round and returns the CPU time of the service for one of them.
func (p proofs) measureRound(i *instance.Instance, c *costedCall, n *atomic.Int64) (time.Duration, error) {
	before, err := cpuTime(i.PID())
	if err != nil {
		return 0, err
	}
	var made atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	began := time.Now()
	for range p.callers {
		all.Go(func() {
			for time.Since(began) < p.duration && failed.Load() == nil {
				if err := c.call(n.Add(1)); err != nil {
					failed.Store(&err)
					return
				}
				made.Add(1)
			}
		})
	}
	all.Wait()
	if f := failed.Load(); f != nil {
		return 0, *f
	}
	after, err := cpuTime(i.PID())
	return (after - before) / time.Duration(max(made.Load(), 1)), err
}
