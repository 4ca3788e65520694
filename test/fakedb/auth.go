package fakedb

import (
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// authTables contains the records of authentication.
type authTables struct {
	accounts      map[auth.UserID]auth.Account
	devices       map[auth.DeviceID]auth.Device
	deviceTokens  map[auth.TokenHash]auth.DeviceToken
	sessions      map[auth.SessionID]auth.Session
	refreshTokens map[auth.TokenHash]auth.RefreshToken
	cookies       map[auth.TokenHash]auth.SessionCookie
	challenges    map[auth.ChallengeID]auth.Challenge
	events        map[auth.EventID]storedEvent
	lockouts      map[auth.LockoutKey]auth.Lockout
	pendingLogins map[pendingKey]auth.PendingLogin
	signingKeys   map[authstore.KeyID]authstore.PublicKey
	rootSecret    []byte
	counts        map[countKey]history.Count
	totals        map[history.Value]history.Count
	additions     map[int]deferral // that are not gathered in totals yet
	deferred      map[auth.SessionID]deferral
}

func newAuthTables() authTables {
	return authTables{
		accounts:      map[auth.UserID]auth.Account{},
		devices:       map[auth.DeviceID]auth.Device{},
		deviceTokens:  map[auth.TokenHash]auth.DeviceToken{},
		sessions:      map[auth.SessionID]auth.Session{},
		refreshTokens: map[auth.TokenHash]auth.RefreshToken{},
		cookies:       map[auth.TokenHash]auth.SessionCookie{},
		challenges:    map[auth.ChallengeID]auth.Challenge{},
		events:        map[auth.EventID]storedEvent{},
		lockouts:      map[auth.LockoutKey]auth.Lockout{},
		pendingLogins: map[pendingKey]auth.PendingLogin{},
		signingKeys:   map[authstore.KeyID]authstore.PublicKey{},
		counts:        map[countKey]history.Count{},
		totals:        map[history.Value]history.Count{},
		additions:     map[int]deferral{},
		deferred:      map[auth.SessionID]deferral{},
	}
}

func (t authTables) clone() authTables {
	return authTables{
		accounts:      maps.Clone(t.accounts),
		devices:       maps.Clone(t.devices),
		deviceTokens:  maps.Clone(t.deviceTokens),
		sessions:      maps.Clone(t.sessions),
		refreshTokens: maps.Clone(t.refreshTokens),
		cookies:       maps.Clone(t.cookies),
		challenges:    maps.Clone(t.challenges),
		events:        maps.Clone(t.events),
		lockouts:      maps.Clone(t.lockouts),
		pendingLogins: maps.Clone(t.pendingLogins),
		signingKeys:   maps.Clone(t.signingKeys),
		rootSecret:    t.rootSecret,
		counts:        maps.Clone(t.counts),
		totals:        maps.Clone(t.totals),
		additions:     maps.Clone(t.additions),
		deferred:      maps.Clone(t.deferred),
	}
}

// selectRows returns the rows for which fits returns true, in order, at most limit of them.
func selectRows[K comparable, V any](rows map[K]V, fits func(V) bool, order func(a, b V) int, limit int) []V {
	var found []V
	for _, v := range rows {
		if fits(v) {
			found = append(found, v)
		}
	}
	slices.SortFunc(found, order)
	return found[:min(len(found), max(limit, 0))]
}

// cutPage returns one page of a list, and the length of the list.
func cutPage[V any](list []V, page auth.PageRequest) (entries []V, total int) {
	from := min(max(page.Offset, 0), len(list))
	return list[from:min(from+max(page.Limit, 0), len(list))], len(list)
}

// deleteRows deletes the rows for which fits returns true, and returns their number.
func deleteRows[K comparable, V any](rows map[K]V, fits func(V) bool) int {
	before := len(rows)
	maps.DeleteFunc(rows, func(_ K, v V) bool { return fits(v) })
	return before - len(rows)
}

func errNotFound(what string) error {
	return fault.Newf(fault.NotFound, "the %s does not exist", what).WithCode(auth.CodeNotFound)
}

func errConflict(sentence string) error { return fault.New(fault.Conflict, sentence) }

// errMissing returns the error for a row that refers to a missing row, as a foreign key does.
func errMissing(what string) error {
	return fault.Newf(fault.Internal, "the %s that it refers to does not exist", what)
}
