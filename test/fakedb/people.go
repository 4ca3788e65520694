package fakedb

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// Links implements [authstore.Links].
type Links struct {
	*table[auth.TokenHash, auth.Link]
}

// NewLinks returns the links of a database.
func NewLinks(db *Database) *Links { return &Links{db.links} }

// Put implements [authstore.Links].
func (s *Links) Put(ctx context.Context, l auth.Link) error { return s.insert(ctx, l) }

// RemoveAll implements [authstore.Links].
func (s *Links) RemoveAll(ctx context.Context, user auth.UserID, purposes ...auth.LinkPurpose) error {
	_, err := s.removeAll(ctx, func(l auth.Link) bool {
		return l.UserID == user && slices.Contains(purposes, l.Purpose)
	})
	return err
}

// Directory implements [authstore.Directory] and [authstore.Operators].
type Directory struct{ db *Database }

// NewDirectory returns the directory of a database.
func NewDirectory(db *Database) *Directory { return &Directory{db} }

// Search implements [authstore.Directory].
func (s *Directory) Search(ctx context.Context, q authstore.DirectoryQuery) ([]authstore.Person, error) {
	return result(ctx, s.db, func(ctx context.Context) (people []authstore.Person, err error) {
		part := strings.ToLower(q.Part)
		found, err := s.db.accounts.list(ctx, func(a auth.Account) bool {
			return a.Email > q.After && (q.ID == "" || a.ID == q.ID) && (q.State == "" || a.State == q.State) &&
				(q.AdmittedAt.IsZero() || a.AdmittedUntil.After(q.AdmittedAt)) &&
				(strings.Contains(string(a.Email), part) || strings.Contains(strings.ToLower(a.Name), part))
		}, byEmail)
		for _, a := range first(found, q.Limit) {
			person := authstore.Person{Account: a}
			for _, session := range s.db.sessions.rows {
				if session.UserID == a.ID && session.CreatedAt.After(person.LastSignIn) {
					person.LastSignIn = session.CreatedAt
				}
			}
			for _, i := range s.db.identities.rows {
				person.Identities += map[bool]int{true: 1}[i.UserID == a.ID]
			}
			for _, p := range s.db.passkeys.rows {
				person.Passkeys += map[bool]int{true: 1}[p.UserID == a.ID]
			}
			people = append(people, person)
		}
		return people, err
	})
}

// Count implements [authstore.Directory].
func (s *Directory) Count(ctx context.Context, most int) (int, error) {
	return result(ctx, s.db, func(context.Context) (int, error) { return min(len(s.db.accounts.rows), most), nil })
}

// Lock implements [authstore.Operators]: one transaction runs at a time.
func (s *Directory) Lock(ctx context.Context) error { return ctx.Err() }

// Any implements [authstore.Operators].
func (s *Directory) Any(ctx context.Context) (bool, error) {
	return result(ctx, s.db, func(context.Context) (bool, error) {
		for _, g := range s.db.grants.rows {
			a, known := s.db.accounts.rows[auth.UserID(g.Holder)]
			if known && a.State == auth.AccountActive && g.Action == registry.ActionOperate {
				return true, nil
			}
		}
		return false, nil
	})
}
