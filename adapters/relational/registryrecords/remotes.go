package registryrecords

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// claim is an address that a server must own.
type claim struct{ url, name string }

// versionKey identifies a version.
type versionKey struct{ name, version string }

// claims are the addresses that servers must own after changes, and perhaps did not own before:
// those of versions with another document, and of versions that leave the status deleted (contract
//
type claims struct {
	versions  []versionKey
	addresses []claim
}

// findClaims returns the claims of changes, by server. It must be called before the changes are
// stored. What a mirror brings claims nothing.
func (s *Servers) findClaims(
	ctx context.Context, tx bun.Tx, names []string, servers map[string][]registrystore.Change,
) (c claims, err error) {
	if !s.uniqueURLs {
		return c, nil
	}
	for _, name := range names {
		var same []string
		for _, change := range servers[name] {
			version := change.Release.Version.String()
			switch {
			case change.Release.Status == registry.StatusDeleted, change.Release.Origin != registry.Origin{}:
			case change.Document == nil:
				same = append(same, version)
			case len(change.Remotes) > 0:
				c.versions = append(c.versions, versionKey{name, version})
				for _, url := range change.Remotes {
					c.addresses = append(c.addresses, claim{indexKey(url), name})
				}
			}
		}
		if err := s.findRestored(ctx, tx, name, same, &c); err != nil {
			return claims{}, err
		}
	}
	return c, nil
}

// findRestored adds the claims of versions of a server that are deleted now and not after the
// changes.
func (s *Servers) findRestored(ctx context.Context, tx bun.Tx, name string, versions []string, c *claims) error {
	if len(versions) == 0 {
		return nil
	}
	var restored []string
	err := s.db.ScanInto(ctx, tx, &restored,
		"SELECT version FROM versions WHERE name = ? AND version IN (?) AND status = 'deleted'", name,
		bun.List(versions))
	if err != nil || len(restored) == 0 {
		return err
	}
	var urls []string
	err = s.db.ScanInto(ctx, tx, &urls, "SELECT DISTINCT url FROM remotes WHERE name = ? AND version IN (?)", name,
		bun.List(restored))
	for _, version := range restored {
		c.versions = append(c.versions, versionKey{name, version})
	}
	for _, url := range urls {
		c.addresses = append(c.addresses, claim{url, name})
	}
	return err
}

// saveRemotes updates the addresses of the changed versions, and which of them their servers own. A
// server gives up addresses that it no longer uses after it claimed new ones. Addresses are stored
// even if they need not be unique, so that the rule can be turned on later.
func (s *Servers) saveRemotes(
	ctx context.Context, tx bun.Tx, names []string, servers map[string][]registrystore.Change, c claims,
) error {
	var documents []registrystore.Change
	for _, name := range names {
		var deleted []string
		for _, change := range servers[name] {
			if change.Document != nil {
				documents = append(documents, change)
			}
			if change.Release.Status == registry.StatusDeleted {
				deleted = append(deleted, change.Release.Version.String())
			}
		}
		if err := s.giveUp(ctx, tx, name, deleted); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(documents, atOnce) {
		if err := s.replaceRemotes(ctx, tx, part); err != nil {
			return err
		}
	}
	if err := s.claimAddresses(ctx, tx, c.addresses); err != nil {
		return err
	}
	// The other statements are sent to the database together.
	var last strings.Builder
	var args []any
	for part := range slices.Chunk(c.versions, atOnce) {
		last.WriteString(
			"UPDATE remotes SET claim = url WHERE (name, version) IN (" + rowsOf(len(part), 2) +
				") AND claim IS NULL; ")
		for _, v := range part {
			args = append(args, v.name, v.version)
		}
	}
	last.WriteString(`DELETE FROM remote_owners WHERE name IN (?) AND NOT EXISTS (
		SELECT 1 FROM remotes AS r WHERE r.claim = remote_owners.url AND r.name = remote_owners.name)`)
	_, err := s.db.ExecStatement(ctx, tx, last.String(), append(args, bun.List(names))...)
	return err
}

// atOnce is the greatest number of versions or addresses in one statement.
const atOnce = 100

// rowsOf returns the text of rows of parameters, with the given number of columns.
func rowsOf(rows, columns int) string {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	return "VALUES " + row + strings.Repeat(", "+row, rows-1)
}

// giveUp makes a server own nothing for versions that are deleted.
func (s *Servers) giveUp(ctx context.Context, tx bun.Tx, name string, versions []string) error {
	if len(versions) == 0 {
		return nil
	}
	_, err := s.db.ExecStatement(ctx, tx,
		"UPDATE remotes SET claim = NULL WHERE name = ? AND version IN (?) AND claim IS NOT NULL", name,
		bun.List(versions))
	return err
}

// replaceRemotes stores the addresses of new documents. They are not claimed yet.
func (s *Servers) replaceRemotes(ctx context.Context, tx bun.Tx, documents []registrystore.Change) error {
	text := "DELETE FROM remotes WHERE (name, version) IN (" + rowsOf(len(documents), 2) + ")"
	var args, rows []any
	count := 0
	for _, c := range documents {
		name, version := c.Release.Name.String(), c.Release.Version.String()
		args = append(args, name, version)
		urls := slices.Clone(c.Remotes)
		slices.Sort(urls)
		for _, url := range slices.Compact(urls) {
			rows = append(rows, name, version, indexKey(url))
			count++
		}
	}
	if count > 0 {
		text += "; INSERT INTO remotes (name, version, url) " + rowsOf(count, 3)
	}
	_, err := s.db.ExecStatement(ctx, tx, text, append(args, rows...)...)
	return err
}

// claimAddresses makes servers the owners of addresses. Every transaction claims addresses in the
// same order. It returns fault.Conflict if another server has one of them.
func (s *Servers) claimAddresses(ctx context.Context, tx bun.Tx, all []claim) error {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b claim) int { return cmp.Or(cmp.Compare(a.url, b.url), cmp.Compare(a.name, b.name)) })
	all = slices.Compact(all)
	for i := 1; i < len(all); i++ {
		if all[i].url == all[i-1].url {
			return addressTaken(all[i].url)
		}
	}
	for part := range slices.Chunk(all, atOnce) {
		if err := s.claimPart(ctx, tx, part); err != nil {
			return err
		}
	}
	return nil
}

// claimPart claims addresses, each of which is for one server. It writes the rows of the owners
// also if they are others, so that it waits for a transaction that gives an address up at the same
// time.
func (s *Servers) claimPart(ctx context.Context, tx bun.Tx, part []claim) error {
	wanted := make(map[string]string, len(part))
	urls := make([]string, len(part))
	var args []any
	for i, c := range part {
		wanted[c.url], urls[i] = c.name, c.url
		args = append(args, c.url, c.name)
	}
	statement := "INSERT INTO remote_owners (url, name) " + rowsOf(len(part), 2) +
		" ON CONFLICT (url) DO UPDATE SET name = remote_owners.name RETURNING url, name"
	var owners, users []owner
	if err := s.db.ScanInto(ctx, tx, &owners, statement, args...); err != nil {
		return err
	}
	if checkOwners(owners, wanted) != nil {
		if err := s.releaseMirrored(ctx, tx, urls); err != nil {
			return err
		}
		owners = nil
		if err := s.db.ScanInto(ctx, tx, &owners, statement, args...); err != nil {
			return err
		}
	}
	if err := checkOwners(owners, wanted); err != nil {
		return err
	}
	// An address that was stored while addresses did not have to be unique has no owner.
	err := s.db.ScanInto(ctx, tx, &users,
		`SELECT DISTINCT r.url, r.name FROM remotes AS r JOIN versions AS v ON v.name = r.name AND v.version = r.version
		WHERE r.url IN (?) AND `+usesAddress+` ORDER BY r.url`, bun.List(urls))
	if err != nil {
		return err
	}
	return checkOwners(users, wanted)
}

// usesAddress is the condition for versions that keep others from using their addresses: those of
// mirrors do not (contract R-32).
const usesAddress = "v.status <> 'deleted' AND v.origin IS NULL"

// releaseMirrored takes addresses from mirrored servers: instances of former versions made those
// owners too.
func (s *Servers) releaseMirrored(ctx context.Context, tx bun.Tx, urls []string) error {
	_, err := s.db.ExecStatement(ctx, tx, `UPDATE remotes SET claim = NULL WHERE claim IN (?) AND EXISTS (
			SELECT 1 FROM versions AS v WHERE v.name = remotes.name AND v.version = remotes.version AND v.origin IS NOT NULL);
		DELETE FROM remote_owners WHERE url IN (?) AND NOT EXISTS (
			SELECT 1 FROM remotes AS r WHERE r.claim = remote_owners.url AND r.name = remote_owners.name)`,
		bun.List(urls), bun.List(urls))
	return err
}

// owner names the server to which a remote address belongs.
type owner struct{ URL, Name string }

// checkOwners returns fault.Conflict if an address belongs to another server than the wanted one.
func checkOwners(owners []owner, wanted map[string]string) error {
	for _, o := range owners {
		if wanted[o.URL] != o.Name {
			return addressTaken(o.URL)
		}
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
	urls := each.Map(remotes, indexKey)
	var taken []string
	err := s.db.ScanInto(ctx, tx, &taken,
		`SELECT r.url FROM remotes AS r JOIN versions AS v ON v.name = r.name AND v.version = r.version
		WHERE r.url IN (?) AND r.name <> ? AND `+usesAddress+` ORDER BY r.url LIMIT 1`, bun.List(urls), name.String())
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
