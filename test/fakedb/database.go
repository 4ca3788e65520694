// Package fakedb is a database in the memory of the process, for tests of use cases. It passes the
// contract suites of the stores, so that a use case meets the conflicts, orders and rollbacks of a
// real database. It is not suitable for a service: everything is lost when the process ends, and it
// runs one transaction at a time.
package fakedb

import (
	"context"
	"sync"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Database has the tables that the stores of this package share. It is safe for concurrent use.
type Database struct {
	mu   sync.Mutex
	undo []func() // undoes the changes of the running transaction, last first

	accounts      *table[auth.UserID, auth.Account]
	devices       *table[auth.DeviceID, auth.Device]
	deviceTokens  *table[auth.TokenHash, auth.DeviceToken]
	sessions      *table[auth.SessionID, auth.Session]
	refreshTokens *table[auth.TokenHash, auth.RefreshToken]
	cookies       *table[auth.TokenHash, auth.SessionCookie]
	challenges    *table[auth.ChallengeID, auth.Challenge]
	pendingLogins *table[pendingKey, auth.PendingLogin]
	links         *table[auth.TokenHash, auth.Link]
	lockouts      *table[auth.LockoutKey, lockoutRow]
	events        *table[audit.EventID, eventRow]
	signingKeys   *table[authstore.KeyID, authstore.PublicKey]
	rootSecrets   *table[int, []byte] // one row
	counts        *table[countKey, countRow]
	totals        *table[history.Value, countRow]
	additions     *table[int64, additionRow]
	deferred      *table[auth.SessionID, additionRow]
	apiTokens     *table[auth.APITokenID, auth.APIToken]
	providers     *table[company.Name, company.Provider]
	identities    *table[company.IdentityID, company.Identity]
	passkeys      *table[auth.PasskeyID, auth.Passkey]
	logins        *table[company.LoginID, company.Login]

	requests  *table[auth.TokenHash, oauth.Request]
	families  *table[oauth.FamilyID, familyRow]
	secrets   *table[auth.TokenHash, oauth.Secret]
	consents  *table[consentKey, oauth.Consent]
	sightings *table[oauth.ClientID, oauth.Sighting]

	versions    *table[versionKey, versionRow]
	grants      *table[grantKey, registry.GrantRecord]
	policies    *table[registry.PolicyID, publisher.Policy]
	methods     *table[catalogue.MethodID, catalogue.Method]
	reviews     *table[registry.ReviewID, review.Review]
	rules       *table[review.RuleID, review.Rule]
	notices     *table[registry.Holder, noticeRow]
	quarantined *table[versionKey, registry.Quarantined] // the zero version is the whole server
	priors      *table[versionKey, priorRow]
	toolLists   *table[toolListKey, tools.Stored]
	toolWatches *table[watchKey, watchRow]
	toolSources *table[tools.RemoteSourceName, tools.RemoteSource]
	views       *table[view.Name, view.View]
	viewTokens  *table[viewTokenKey, view.Token]
	webhooks    *table[event.WebhookID, webhookRow]
	deliveries  *table[int64, event.Delivery]
	mirrors     *table[mirror.Name, mirrorRow]
	tracked     *table[trackedKey, trackedRow]
	services    *table[service.Name, service.Account]
	applied     *table[string, registry.AppliedState]
	accessRules *table[access.RuleName, access.Rule]
	clients     *table[oauth.ClientID, oauth.Client]
	resources   *table[oauth.ResourceName, oauth.Resource]

	sequence int64 // the last number of a row; like that of a database, a rollback does not reset it
}

// New returns a database with the methods of the contract and no other records.
func New() *Database {
	db := &Database{}
	db.addAuthTables()
	db.addAuthorizationTables()
	db.addRegistryTables()
	return db
}

func (d *Database) nextNumber() int64 {
	d.sequence++
	return d.sequence
}

// carrier is the context key of the transaction of a database.
type carrier struct{ db *Database }

// running is the state of the transaction in a context.
type running struct {
	failure error // of a nested Atomically: the transaction must not be stored
}

// Atomically implements transaction.Runner. If do fails or panics, a nested call failed, or ctx has
// ended, it undoes all changes.
func (d *Database) Atomically(ctx context.Context, do func(ctx context.Context) error) error {
	t := d.currentTransaction(ctx)
	if t != nil {
		err := d.run(ctx, do)
		if err != nil && t.failure == nil {
			t.failure = err
		}
		return err
	}
	return d.run(ctx, func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		if err := d.currentTransaction(ctx).failure; err != nil {
			return err
		}
		return ctx.Err()
	})
}

// run calls do in the transaction of ctx, or in a new one. If do fails or panics, it undoes the
// changes of do only: the transaction may continue.
func (d *Database) run(ctx context.Context, do func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.currentTransaction(ctx) == nil {
		d.mu.Lock()
		defer func() {
			d.undo = nil
			d.mu.Unlock()
		}()
		ctx = context.WithValue(ctx, carrier{d}, &running{})
	}
	start, done := len(d.undo), false
	defer func() {
		for !done && len(d.undo) > start {
			d.undo[len(d.undo)-1]()
			d.undo = d.undo[:len(d.undo)-1]
		}
	}()
	err := do(ctx)
	done = err == nil
	return err
}

// result is run for a function that returns a value.
func result[T any](ctx context.Context, d *Database, do func(ctx context.Context) (T, error)) (value T, err error) {
	err = d.run(ctx, func(ctx context.Context) error {
		value, err = do(ctx)
		return err
	})
	return value, err
}

func (d *Database) currentTransaction(ctx context.Context) *running {
	t, _ := ctx.Value(carrier{d}).(*running)
	return t
}
