package registrystoretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// RightStores is an empty store of requests for rights, with two people.
type RightStores struct {
	Requests registrystore.RightRequests
	Runner   transaction.Runner
	People   [2]registry.Holder
	Emails   [2]string
}

// RunRightRequests checks an adapter. open is called for every part of the contract.
func RunRightRequests(t *testing.T, open func(t *testing.T) RightStores) {
	t.Helper()
	for name, part := range map[string]func(t *testing.T, s RightStores){
		"a request has the values of all fields, before and after its decision": keepsRights,
		"a person asks once for a right, and for a bounded number at a time":    boundsRights,
		"the bounds hold for parallel requests":                                 boundsParallelRights,
		"one of several parallel decisions is stored, and none of the person":   decidesRightOnce,
		"the last decided requests of a person are kept":                        keepsDecidedRights,
		"a failed transaction stores no request":                                rollsRightsBack,
	} {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

// ask returns a request of a person.
func (s RightStores) ask(t *testing.T, person, n int, pattern string) registry.RightRequest {
	t.Helper()
	g, err := registry.ParseRight(s.People[person], "publish", pattern)
	succeed(t, err)
	return registry.RightRequest{
		Grant: g, ID: registry.RightRequestID(fmt.Sprintf("%d-%02d", person, n)), Email: s.Emails[person], Reason: "é'\u202e",
		AskedAt: epoch.Add(time.Duration(n) * time.Second), State: registry.RightOpen,
	}
}

func (s RightStores) decided(r registry.RightRequest, by int) registry.RightRequest {
	r.State, r.DecidedBy, r.Comment, r.DecidedAt = registry.RightDeclined, s.People[by], "no", r.AskedAt.Add(time.Minute)
	return r
}

func (s RightStores) want(t *testing.T, q registrystore.RightQuery, want ...registry.RightRequest) {
	t.Helper()
	q.Limit = 100
	got, err := s.Requests.List(t.Context(), q)
	succeed(t, err)
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("List(%+v) = %+v, want %+v", q, got, want)
	}
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantConflict(t *testing.T, err error, what string) {
	t.Helper()
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("%s: %v, want a fault of kind Conflict", what, err)
	}
}

func keepsRights(t *testing.T, s RightStores) {
	t.Helper()
	a, b := s.ask(t, 0, 1, "com.example/*"), s.ask(t, 1, 2, "*")
	for _, r := range []registry.RightRequest{b, a} {
		succeed(t, s.Requests.Add(t.Context(), r))
	}
	s.want(t, registrystore.RightQuery{Open: true}, a, b)
	s.want(t, registrystore.RightQuery{}, b, a)
	s.want(t, registrystore.RightQuery{ID: b.ID}, b)
	s.want(t, registrystore.RightQuery{ID: "none"})
	s.want(t, registrystore.RightQuery{Who: s.People[0]}, a)
	granted := s.decided(a, 1)
	granted.State, granted.Given = registry.RightGranted, parsePattern(t, "com.example/a")
	succeed(t, s.Requests.Decide(t.Context(), granted))
	s.want(t, registrystore.RightQuery{ID: a.ID}, granted)
	s.want(t, registrystore.RightQuery{Open: true}, b)
	if got, err := s.Requests.List(t.Context(), registrystore.RightQuery{Limit: 1}); err != nil || len(got) != 1 {
		t.Errorf("List with a limit = %v, %v", got, err)
	}
}

func parsePattern(t *testing.T, text string) registry.Pattern {
	t.Helper()
	p, err := registry.ParsePattern(text)
	succeed(t, err)
	return p
}

func boundsRights(t *testing.T, s RightStores) {
	t.Helper()
	first := s.ask(t, 0, 0, "com.example/a0")
	for n := range registry.MaxOpenRights {
		succeed(t, s.Requests.Add(t.Context(), s.ask(t, 0, n, fmt.Sprint("com.example/a", n))))
		if n == 0 {
			wantConflict(t, s.Requests.Add(t.Context(), s.ask(t, 0, 50, "com.example/a0")), "the same again")
		}
	}
	wantConflict(t, s.Requests.Add(t.Context(), s.ask(t, 0, 51, "com.example/b")), "one too many")
	succeed(t, s.Requests.Add(t.Context(), s.ask(t, 1, 52, "com.example/a0"))) // another person
	succeed(t, s.Requests.Decide(t.Context(), s.decided(first, 1)))
	succeed(t, s.Requests.Add(t.Context(), s.ask(t, 0, 53, "com.example/a0")))
	wantConflict(t, s.Requests.Add(t.Context(), s.ask(t, 0, 54, "com.example/c")), "one too many again")
}

func boundsParallelRights(t *testing.T, s RightStores) {
	t.Helper()
	var wg sync.WaitGroup
	for n := range 4 * registry.MaxOpenRights {
		r := s.ask(t, 0, n, fmt.Sprint("com.example/a", n/2))
		wg.Go(func() {
			if err := s.Requests.Add(t.Context(), r); err != nil && !fault.Is(err, fault.Conflict) {
				t.Errorf("Add: %v", err)
			}
		})
	}
	wg.Wait()
	got, err := s.Requests.List(t.Context(), registrystore.RightQuery{Open: true, Limit: 100})
	succeed(t, err)
	patterns := map[registry.Pattern]bool{}
	for _, r := range got {
		patterns[r.Pattern] = true
	}
	if len(got) == 0 || len(got) > registry.MaxOpenRights || len(patterns) != len(got) {
		t.Errorf("open are %+v", got)
	}
}

func decidesRightOnce(t *testing.T, s RightStores) {
	t.Helper()
	r := s.ask(t, 0, 1, "com.example/*")
	succeed(t, s.Requests.Add(t.Context(), r))
	wantConflict(t, s.Requests.Decide(t.Context(), s.decided(r, 0)), "the own request")
	var wg sync.WaitGroup
	var stored atomic.Int32
	for range 4 {
		wg.Go(func() {
			if err := s.Requests.Decide(t.Context(), s.decided(r, 1)); err == nil {
				stored.Add(1)
			} else if !fault.Is(err, fault.Conflict) {
				t.Errorf("Decide: %v", err)
			}
		})
	}
	wg.Wait()
	if stored.Load() != 1 {
		t.Errorf("%d decisions were stored", stored.Load())
	}
	wantConflict(t, s.Requests.Decide(t.Context(), s.decided(s.ask(t, 0, 9, "*"), 1)), "no such request")
}

func keepsDecidedRights(t *testing.T, s RightStores) {
	t.Helper()
	for n := range registry.MaxDecidedRights + 5 {
		r := s.ask(t, 0, n, "com.example/*")
		succeed(t, s.Requests.Add(t.Context(), r))
		succeed(t, s.Requests.Decide(t.Context(), s.decided(r, 1)))
	}
	succeed(t, s.Requests.Add(t.Context(), s.ask(t, 0, 60, "com.example/*")))
	got, err := s.Requests.List(t.Context(), registrystore.RightQuery{Who: s.People[0], Limit: 100})
	if err != nil || len(got) != registry.MaxDecidedRights+1 || !strings.HasSuffix(string(got[len(got)-1].ID), "-05") {
		t.Errorf("%d are kept: %+v, %v", len(got), got, err)
	}
}

func rollsRightsBack(t *testing.T, s RightStores) {
	t.Helper()
	failed := errors.New("failed")
	r := s.ask(t, 0, 1, "com.example/*")
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		return errors.Join(failed, s.Requests.Add(ctx, r))
	})
	if !errors.Is(err, failed) {
		t.Errorf("Atomically = %v", err)
	}
	s.want(t, registrystore.RightQuery{})
}
