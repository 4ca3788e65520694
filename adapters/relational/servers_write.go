package relational

import (
	"context"
	"errors"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// maxBatch is the most rows of one statement.
const maxBatch = 500

var errNoTransaction = errors.New("servers are changed inside a transaction only")

// Lock answers registrystore.ServerWriter.
func (s *Servers) Lock(ctx context.Context, name registry.Name) ([]registry.Release, error) {
	t := s.db.carriedTransaction(ctx)
	if t == nil {
		return nil, errNoTransaction
	}
	// A first publication has no row to lock: it makes one, and a second one at
	// the same time waits here for the first to end.
	text := "INSERT INTO servers (name) VALUES (?0) ON CONFLICT (name) DO NOTHING"
	if s.db.dialect.Name == PostgreSQL { // SQLite has one writer at a time
		text += "; SELECT name FROM servers WHERE name = ?0 FOR UPDATE"
	}
	if _, err := s.db.execStatement(ctx, t.tx, text, name.String()); err != nil {
		return nil, err
	}
	return s.readReleases(ctx, t.tx, name)
}

func (s *Servers) readReleases(ctx context.Context, db bun.IDB, name registry.Name) ([]registry.Release, error) {
	var facts []string
	err := s.db.scanInto(ctx, db, &facts, "SELECT facts FROM versions WHERE name = ? ORDER BY published_at", name.String())
	if err != nil {
		return nil, err
	}
	all := make([]registry.Release, len(facts))
	for i, text := range facts {
		if all[i], err = parseFacts(text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Save answers registrystore.ServerWriter. The publication time, which never changes,
// tells a new document of a version that is stored from a second publication
// of it.
func (s *Servers) Save(ctx context.Context, changes []registrystore.Change) error {
	t := s.db.carriedTransaction(ctx)
	if t == nil {
		return errNoTransaction
	}
	for name, those := range byName(changes) {
		if err := s.saveOf(ctx, t.tx, name, those); err != nil {
			return err
		}
	}
	return nil
}

func byName(changes []registrystore.Change) map[string][]registrystore.Change {
	all := make(map[string][]registrystore.Change, 1)
	for _, c := range changes {
		name := c.Release.Name.String()
		all[name] = append(all[name], c)
	}
	return all
}

// saveOf stores the changes of one server.
func (s *Servers) saveOf(ctx context.Context, tx bun.Tx, name string, changes []registrystore.Change) error {
	claiming, err := s.versionsToClaim(ctx, tx, name, changes)
	if err != nil {
		return err
	}
	// The flag of the latest version leaves one before another takes it.
	for _, latest := range []bool{false, true} {
		if err := s.saveThose(ctx, tx, changes, latest); err != nil {
			return brokenRule(err)
		}
	}
	return s.saveRemotes(ctx, tx, name, changes, claiming)
}

func (s *Servers) saveThose(ctx context.Context, tx bun.Tx, changes []registrystore.Change, latest bool) error {
	states := make([]registry.Release, 0, len(changes))
	for _, c := range changes {
		if c.Document == nil && c.Release.Latest == latest {
			states = append(states, c.Release)
		}
	}
	if err := s.saveStates(ctx, tx, states); err != nil {
		return err
	}
	for _, c := range changes {
		if c.Document != nil && c.Release.Latest == latest {
			if err := s.saveDocument(ctx, tx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// saveStates stores what changed of versions that keep their documents.
func (s *Servers) saveStates(ctx context.Context, tx bun.Tx, states []registry.Release) error {
	if s.db.dialect.Name == SQLite {
		return s.saveStatesOneByOne(ctx, tx, states)
	}
	for len(states) > 0 {
		batch := states[:min(maxBatch, len(states))]
		states = states[len(batch):]
		var rows strings.Builder
		args := make([]any, 0, 8*len(batch))
		for i, r := range batch {
			if i > 0 {
				rows.WriteByte(',')
			}
			rows.WriteString("(?,?,?,?,?,?,?,?)")
			args = append(args, r.Name.String(), r.Version.String(), string(r.Status), r.StatusMessage,
				newInstant(r.StatusChangedAt), newInstant(r.PublishedAt), newInstant(r.UpdatedAt), r.Latest)
		}
		time := s.db.timeType()
		changed, err := s.db.execStatement(ctx, tx, `WITH d (name, version, status, message, changed, published, updated, latest) AS (VALUES `+rows.String()+`)
			UPDATE versions SET status = d.status, status_message = d.message,
				status_changed_at = CAST(d.changed AS `+time+`), updated_at = CAST(d.updated AS `+time+`), is_latest = d.latest
			FROM d WHERE versions.name = d.name AND versions.version = d.version AND versions.published_at = CAST(d.published AS `+time+`)`, args...)
		if err != nil {
			return err
		}
		if changed != int64(len(batch)) {
			return errNoVersion()
		}
	}
	return nil
}

// saveStatesOneByOne is saveStates for SQLite, which writes a row with its document anew to change
// it. A statement that changes many rows would keep all of those in memory, to take them back if one
// fails.
func (s *Servers) saveStatesOneByOne(ctx context.Context, tx bun.Tx, states []registry.Release) error {
	for _, r := range states {
		err := mustChange(s.db.execStatement(ctx, tx, `UPDATE versions SET status = ?, status_message = ?, status_changed_at = ?, updated_at = ?, is_latest = ?
			WHERE name = ? AND version = ? AND published_at = ?`,
			string(r.Status), r.StatusMessage, newInstant(r.StatusChangedAt), newInstant(r.UpdatedAt), r.Latest, r.Name.String(), r.Version.String(), newInstant(r.PublishedAt)))
		if err != nil {
			return err
		}
	}
	return nil
}

// saveDocument stores a version with its document: a new one, or another
// document for the publication that is stored.
func (s *Servers) saveDocument(ctx context.Context, tx bun.Tx, c registrystore.Change) error {
	r := c.Release
	changed, err := s.db.execStatement(ctx, tx, `INSERT INTO versions
			(name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (name, version) DO UPDATE SET status = excluded.status, status_message = excluded.status_message,
			status_changed_at = excluded.status_changed_at, updated_at = excluded.updated_at,
			is_latest = excluded.is_latest, document = excluded.document
		WHERE versions.published_at = excluded.published_at`,
		r.Name.String(), r.Version.String(), string(r.Status), r.StatusMessage, newInstant(r.StatusChangedAt), newInstant(r.PublishedAt), newInstant(r.UpdatedAt),
		r.Latest, c.Document)
	if err == nil && changed == 0 {
		return fault.New(fault.Conflict, "", rules[0].sentence)
	}
	return err
}

// rules are the unique constraints of the versions, by the words in which the
// drivers name them, PostgreSQL's first.
var rules = [...]struct{ constraint, columns, sentence string }{
	{"versions_exist_once", "versions.name, versions.version", "this version of the server exists already"},
	{"versions_publication", "versions.name, versions.published_at", "another version of the server was published at the same time"},
	{"versions_one_latest", "versions.name", "another version of the server is the latest"},
}

// brokenRule names the unique constraint that stands against a change.
func brokenRule(err error) error {
	if !fault.Is(err, fault.Conflict) {
		return err
	}
	text := err.Error()
	for _, r := range rules {
		if strings.Contains(text, r.constraint) || strings.Contains(text, "UNIQUE constraint failed: "+r.columns) {
			return fault.Wrap(fault.Conflict, "", r.sentence, err)
		}
	}
	return err
}
