package registryrecords

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// versionsToClaim returns the versions whose addresses the server must own after the changes, and
// perhaps did not own before: those with another document, and those that leave the status deleted
// (contract R-32). It must be called before the changes are stored.
func (s *Servers) versionsToClaim(ctx context.Context, tx bun.Tx, name string, changes []registrystore.Change) ([]string, error) {
	if !s.uniqueURLs {
		return nil, nil
	}
	var claiming, same []string
	for _, c := range changes {
		version := c.Release.Version.String()
		switch {
		case c.Release.Status == registry.StatusDeleted:
		case c.Document == nil:
			same = append(same, version)
		case len(c.Remotes) > 0:
			claiming = append(claiming, version)
		}
	}
	if len(same) == 0 {
		return claiming, nil
	}
	var back []string
	err := s.db.ScanInto(ctx, tx, &back, "SELECT version FROM versions WHERE name = ? AND version IN (?) AND status = 'deleted'", name, bun.List(same))
	return append(claiming, back...), err
}

// saveRemotes updates the addresses of the changed versions of a server, and which of them it owns.
// The server gives up addresses that it no longer uses before it claims new ones. Addresses are
// stored even if they need not be unique, so that the rule can be turned on later.
func (s *Servers) saveRemotes(ctx context.Context, tx bun.Tx, name string, changes []registrystore.Change, claiming []string) error {
	var deleted []string
	for _, c := range changes {
		if c.Document != nil {
			if err := s.replaceRemotes(ctx, tx, c); err != nil {
				return err
			}
		}
		if c.Release.Status == registry.StatusDeleted {
			deleted = append(deleted, c.Release.Version.String())
		}
	}
	if len(deleted) > 0 {
		_, err := s.db.ExecStatement(ctx, tx, "UPDATE remotes SET claim = NULL WHERE name = ? AND version IN (?) AND claim IS NOT NULL", name, bun.List(deleted))
		if err != nil {
			return err
		}
	}
	// The other statements are sent to the database together.
	var last strings.Builder
	var args []any
	if len(claiming) > 0 {
		claimed, err := s.claimAddresses(ctx, tx, name, claiming)
		if err != nil {
			return err
		}
		if claimed {
			last.WriteString("UPDATE remotes SET claim = url WHERE name = ? AND version IN (?) AND claim IS NULL; ")
			args = append(args, name, bun.List(claiming))
		}
	}
	last.WriteString(`DELETE FROM remote_owners WHERE name = ? AND NOT EXISTS (
		SELECT 1 FROM remotes AS r WHERE r.claim = remote_owners.url AND r.name = remote_owners.name)`)
	_, err := s.db.ExecStatement(ctx, tx, last.String(), append(args, name)...)
	return err
}

// replaceRemotes stores the addresses of a new document. They are not claimed yet.
func (s *Servers) replaceRemotes(ctx context.Context, tx bun.Tx, c registrystore.Change) error {
	name, version := c.Release.Name.String(), c.Release.Version.String()
	text := strings.Builder{}
	text.WriteString("DELETE FROM remotes WHERE name = ? AND version = ?")
	args := []any{name, version}
	urls := slices.Clone(c.Remotes)
	slices.Sort(urls)
	for i, url := range slices.Compact(urls) {
		if i == 0 {
			text.WriteString("; INSERT INTO remotes (name, version, url) VALUES (?, ?, ?)")
		} else {
			text.WriteString(", (?, ?, ?)")
		}
		args = append(args, name, version, indexKey(url))
	}
	_, err := s.db.ExecStatement(ctx, tx, text.String(), args...)
	return err
}

// claimAddresses makes the server the owner of the addresses of the versions that are not claimed
// yet, and reports whether there are any. Every transaction claims addresses in the same order.
func (s *Servers) claimAddresses(ctx context.Context, tx bun.Tx, name string, versions []string) (found bool, err error) {
	var urls []string
	err = s.db.ScanInto(ctx, tx, &urls, "SELECT DISTINCT url FROM remotes WHERE name = ? AND version IN (?) AND claim IS NULL ORDER BY url",
		name, bun.List(versions))
	if err != nil {
		return false, err
	}
	for _, url := range urls {
		if err := s.claimAddress(ctx, tx, name, url); err != nil {
			return false, err
		}
	}
	return len(urls) > 0, nil
}

// claimAddress makes the server the owner of the address. It returns fault.Conflict if another
// server has the address. It writes the row of the owner in both cases, so that it waits for a
// transaction that gives the address up at the same time.
func (s *Servers) claimAddress(ctx context.Context, tx bun.Tx, name, url string) error {
	var owner string
	err := s.db.ScanInto(ctx, tx, &owner, `INSERT INTO remote_owners (url, name) VALUES (?, ?)
		ON CONFLICT (url) DO UPDATE SET name = remote_owners.name RETURNING name`, url, name)
	if err != nil {
		return err
	}
	if owner != name {
		return addressTaken(url)
	}
	// An address that was stored while addresses did not have to be unique has no owner.
	var others int
	err = s.db.ScanInto(ctx, tx, &others, `SELECT count(*) FROM remotes AS r JOIN versions AS v ON v.name = r.name AND v.version = r.version
		WHERE r.url = ? AND r.name <> ? AND v.status <> 'deleted'`, url, name)
	if err != nil {
		return err
	}
	if others > 0 {
		return addressTaken(url)
	}
	return nil
}

// CheckRemotes implements registrystore.ServerWriter.
func (s *Servers) CheckRemotes(ctx context.Context, name registry.Name, remotes []registry.RemoteURL) error {
	tx, ok := s.db.Transaction(ctx)
	if !ok {
		return errNoTransaction
	}
	if !s.uniqueURLs || len(remotes) == 0 {
		return nil
	}
	urls := make([]string, len(remotes))
	for i, url := range remotes {
		urls[i] = indexKey(url)
	}
	var taken []string
	err := s.db.ScanInto(ctx, tx, &taken, `SELECT r.url FROM remotes AS r JOIN versions AS v ON v.name = r.name AND v.version = r.version
		WHERE r.url IN (?) AND r.name <> ? AND v.status <> 'deleted' ORDER BY r.url LIMIT 1`, bun.List(urls), name.String())
	if err != nil || len(taken) == 0 {
		return err
	}
	return addressTaken(taken[0])
}

// maxIndexed is the maximum length in bytes of an address that is stored in plain form. PostgreSQL
// cannot index a longer one together with a name and a version.
const maxIndexed = 1000

// hashed is the prefix of the hash that is stored for a longer address. No address has this prefix.
const hashed = "sha256:"

// indexKey returns the form of an address in the tables: the address, or its hash.
func indexKey(url registry.RemoteURL) string {
	if len(url) <= maxIndexed {
		return string(url)
	}
	sum := sha256.Sum256([]byte(url))
	return hashed + hex.EncodeToString(sum[:])
}

func addressTaken(url string) error {
	if strings.HasPrefix(url, hashed) {
		return fault.Newf(fault.Conflict, "a remote URL of more than %d bytes belongs to another server", maxIndexed)
	}
	return fault.Newf(fault.Conflict, "the remote URL %s belongs to another server", url)
}
