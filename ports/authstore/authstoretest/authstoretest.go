// Package authstoretest has the contract tests of the record stores of authentication. They test
// what every store promises, and no rule of authentication.
package authstoretest

import (
	"context"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Stores are the stores under test, over one empty database.
type Stores struct {
	Accounts      authstore.Accounts
	Devices       authstore.Devices
	DeviceTokens  authstore.DeviceTokens
	Sessions      Sessions
	RefreshTokens authstore.RefreshTokens
	Cookies       authstore.SessionCookies
	Challenges    authstore.Challenges
	PendingLogins authstore.PendingLogins
	Lockouts      authstore.Lockouts
	AuditLog      authstore.AuditLog
	Keys          authstore.KeyRing
	History       History
	Links         authstore.Links
	Directory     authstore.Directory
	Operators     authstore.Operators
	// Operate gives a person the grant operate.
	Operate   func(ctx context.Context, user auth.UserID) error
	APITokens APITokens
	Companies Companies
	Passkeys  authstore.Passkeys
	// AddService adds a service account, which is active or disabled.
	AddService func(t *testing.T, name string, active bool)
	Runner     transaction.Runner
}

// Sessions are the ports that one adapter implements over its sessions.
type Sessions interface {
	authstore.Sessions
	authstore.SessionHistory
	authstore.SessionLevels
	authstore.SessionRetention
}

// Run runs all suites. open returns stores over an empty database and registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	for name, suite := range map[string]func(t *testing.T, open func(t *testing.T) Stores){
		"accounts": runAccounts, "devices": runDevices, "sessions": runSessions, "session cookies": runCookies,
		"challenges":     runChallenges,
		"pending logins": runPendingLogins, "lockouts": runLockouts, "history": runHistory, "audit log": RunAuditLog,
		"keys": runKeys, "tokens": runAPITokens, "links": runLinks, "directory": runDirectory, "operators": runOperators,
		"companies": runCompanies, "passkeys": runPasskeys,
	} {
		t.Run(name, func(t *testing.T) { suite(t, open) })
	}
}

// testCases runs each test with stores of its own.
func testCases(t *testing.T, open func(t *testing.T) Stores, tests map[string]func(t *testing.T, s Stores)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// withAccounts returns open with two accounts in the stores.
func withAccounts(open func(t *testing.T) Stores) func(t *testing.T) Stores {
	return func(t *testing.T) Stores {
		s := open(t)
		for n := range people {
			recordtest.OK(t, s.Accounts.Create(t.Context(), Account(n)))
		}
		return s
	}
}
