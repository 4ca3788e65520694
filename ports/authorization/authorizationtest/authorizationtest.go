// Package authorizationtest has the contract tests of the stores of the authorization server. They test
// what every store promises, and no rule of authorization.
package authorizationtest

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Stores are the stores under test, over one empty database.
type Stores struct {
	Requests  authorization.Requests
	Families  authorization.Families
	Secrets   authorization.Secrets
	Consents  authorization.Consents
	Sightings authorization.Sightings
	Runner    transaction.Runner

	// The records that they refer to.
	Accounts authstore.Accounts
	Devices  authstore.Devices
	Sessions Sessions
}

// Sessions are the ports of sessions that the suite needs.
type Sessions interface {
	authstore.Sessions
	authstore.SessionRetention
}

// Run runs all suites. open returns stores over an empty database and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	for name, tests := range map[string]map[string]func(t *testing.T, s Stores){
		"requests": requestTests(), "families": familyTests(), "secrets": secretTests(), "consents": consentTests(),
		"sightings": sightingTests(),
	} {
		t.Run(name, func(t *testing.T) {
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					s := open(t)
					AddPeople(t, s)
					test(t, s)
				})
			}
		})
	}
}

// AddPeople adds the accounts 0 and 1, each with a device and an active session: the samples belong to
// them.
func AddPeople(t *testing.T, s Stores) {
	t.Helper()
	for n := range 2 {
		recordtest.OK(t, s.Accounts.Create(t.Context(), authstoretest.Account(n)))
		if _, _, err := s.Devices.Ensure(t.Context(), authstoretest.Device(n, 2*n)); err != nil {
			t.Fatal(err)
		}
		recordtest.OK(t, s.Sessions.Create(t.Context(), session(n)))
	}
}

// session is the active session of a person, which outlives all families of the samples.
func session(person int) auth.Session {
	s := authstoretest.Living(person, person)
	s.ExpiresAt = later(1000 * time.Hour)
	return s
}

// later is a time after the first of the samples was made.
func later(d time.Duration) time.Time { return recordtest.Epoch().Add(d) }

// minutes is a number of minutes after the first of the samples was made.
func minutes(n int) time.Time { return later(time.Duration(n) * time.Minute) }

// hashOf is a hash that has a number, and bytes that are no text.
func hashOf(n int) auth.TokenHash {
	return auth.TokenHash{0: byte(n), 1: byte(n >> 8), 2: 1, 3: '\'', 31: 0xff}
}

// racing calls a store 20 times at once, half of the calls in transactions, and returns their errors.
func racing(t *testing.T, s Stores, call func(ctx context.Context) error) []error {
	t.Helper()
	return recordtest.Parallel(20, func(i int) error {
		if i%2 == 0 {
			return call(t.Context())
		}
		return s.Runner.Atomically(t.Context(), call)
	})
}

// wantNumber fails the test unless a call returned a number and no error.
func wantNumber(t *testing.T, want int) func(got int, err error) {
	t.Helper()
	return func(got int, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}
}
