package registryrecords

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

var errNoTransaction = errors.New("servers can be changed only in a transaction")

// Lock implements registrystore.ServerWriter.
func (s *Servers) Lock(ctx context.Context, name registry.Name) ([]registry.Release, error) {
	tx, ok := s.db.Transaction(ctx)
	if !ok {
		return nil, errNoTransaction
	}
	// The first publication of a server has no row to lock, so it inserts one. A second one at the
	// same time waits here until the first one ends.
	if _, err := s.db.ExecStatement(ctx, tx, s.sql.lockServer, name.String()); err != nil {
		return nil, err
	}
	return s.readReleases(ctx, tx, name)
}

func (s *Servers) readReleases(ctx context.Context, db bun.IDB, name registry.Name) ([]registry.Release, error) {
	var facts []string
	err := s.db.ScanInto(ctx, db, &facts,
		"SELECT "+factsOfVersion+" FROM versions AS v WHERE v.name = ? ORDER BY v.published_at", name.String())
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

// Save implements registrystore.ServerWriter. The publication time never changes. It distinguishes
// a new document of a stored version from a second publication of the version.
func (s *Servers) Save(ctx context.Context, changes []registrystore.Change) error {
	tx, ok := s.db.Transaction(ctx)
	if !ok {
		return errNoTransaction
	}
	s.db.AfterCommit(ctx, func() { s.changes.noteSaved(changes) })
	servers := byName(changes)
	names := slices.Sorted(maps.Keys(servers)) // all transactions have one order
	claims, err := s.findClaims(ctx, tx, names, servers)
	if err != nil {
		return err
	}
	// The flag is_latest is removed from one version before it is set on another.
	for _, latest := range []bool{false, true} {
		if err := s.saveVersions(ctx, tx, changes, latest); err != nil {
			return s.explainConflict(err)
		}
	}
	if err := s.saveResponsible(ctx, tx, changes); err != nil {
		return err
	}
	return s.saveRemotes(ctx, tx, names, servers, claims)
}

// saveResponsible stores who is responsible for the documents of changes.
func (s *Servers) saveResponsible(ctx context.Context, tx bun.Tx, changes []registrystore.Change) error {
	for _, c := range changes {
		if c.Document == nil {
			continue
		}
		for _, person := range c.People {
			_, err := s.db.ExecStatement(ctx, tx,
				"INSERT INTO responsible (name, version, person) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
				c.Release.Name.String(), c.Release.Version.String(), string(person))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Responsible implements registrystore.ServerWriter.
func (s *Servers) Responsible(
	ctx context.Context, name registry.Name, version registry.Version,
) ([]registry.Holder, error) {
	tx, ok := s.db.Transaction(ctx)
	if !ok {
		return nil, errNoTransaction
	}
	var people []registry.Holder
	err := s.db.ScanInto(ctx, tx, &people,
		"SELECT DISTINCT person FROM responsible WHERE name = ? AND (version = ? OR ? = '') ORDER BY person",
		name.String(), version.String(), version.String())
	return people, err
}

func byName(changes []registrystore.Change) map[string][]registrystore.Change {
	all := make(map[string][]registrystore.Change, 1)
	for _, c := range changes {
		name := c.Release.Name.String()
		all[name] = append(all[name], c)
	}
	return all
}

// saveVersions stores the changes of the versions that are the latest, or of those that are not.
func (s *Servers) saveVersions(ctx context.Context, tx bun.Tx, changes []registrystore.Change, latest bool) error {
	states := make([]registry.Release, 0, len(changes))
	documents := make([]registrystore.Change, 0, len(changes))
	for _, c := range changes {
		switch {
		case c.Release.Latest != latest:
		case c.Document == nil:
			states = append(states, c.Release)
		default:
			documents = append(documents, c)
		}
	}
	if err := s.saveStates(ctx, tx, states); err != nil {
		return err
	}
	for len(documents) > 0 {
		n := documentsAtOnce(documents)
		if err := s.saveDocuments(ctx, tx, documents[:n]); err != nil {
			return err
		}
		documents = documents[n:]
	}
	return nil
}

// statementBytes is the size of the documents from which on no other is added to a statement.
const statementBytes = 1 << 20

// documentsAtOnce returns how many of the first documents one statement stores: at least one.
func documentsAtOnce(documents []registrystore.Change) int {
	size := 0
	for i, c := range documents {
		if size += len(c.Document); i > 0 && (size > statementBytes || i == atOnce) {
			return i
		}
	}
	return len(documents)
}

// saveStates stores the changes of versions that keep their documents.
func (s *Servers) saveStates(ctx context.Context, tx bun.Tx, states []registry.Release) error {
	for _, u := range s.sql.updateStates(states) {
		changed, err := s.db.ExecStatement(ctx, tx, u.text, u.args...)
		if err != nil {
			return err
		}
		if changed != u.rows {
			return errNoVersion()
		}
	}
	return nil
}

// saveDocuments stores versions with their documents: new versions, or other documents of stored
// publications.
func (s *Servers) saveDocuments(ctx context.Context, tx bun.Tx, documents []registrystore.Change) error {
	const columns = 10
	args := make([]any, 0, columns*len(documents))
	for _, c := range documents {
		r := c.Release
		args = append(args, r.Name.String(), r.Version.String(), string(r.Status), r.StatusMessage,
			database.NewInstant(r.StatusChangedAt),
			database.NewInstant(r.PublishedAt), database.NewInstant(r.UpdatedAt), r.Latest, c.Document,
			formatOrigin(r.Origin))
	}
	changed, err := s.db.ExecStatement(ctx, tx, `INSERT INTO versions
			(name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document, origin)
		`+rowsOf(len(documents), columns)+`
		ON CONFLICT (name, version) DO UPDATE SET status = excluded.status, status_message = excluded.status_message,
			status_changed_at = excluded.status_changed_at, updated_at = excluded.updated_at,
			is_latest = excluded.is_latest, document = excluded.document, origin = excluded.origin
		WHERE versions.published_at = excluded.published_at`, args...)
	if err == nil && changed != int64(len(documents)) {
		return fault.New(fault.Conflict, versionExists)
	}
	return err
}

// The messages of the unique constraints of the versions.
const (
	versionExists     = "this version of the server exists already"
	publicationExists = "another version of the server was published at the same time"
	latestExists      = "another version of the server is the latest"
	versionHidden     = "this version of the server is in quarantine"
)

// inQuarantine is the message of the triggers that keep what is in quarantine deleted.
const inQuarantine = "tollgate: the version is in quarantine"

// explainConflict returns a fault.Conflict with the message of the unique constraint that does not
// allow a change. It returns other errors unchanged.
func (s *Servers) explainConflict(err error) error {
	if !fault.Is(err, fault.Conflict) {
		return err
	}
	text, message := err.Error(), ""
	switch {
	case strings.Contains(text, s.sql.unique.version):
		message = versionExists
	case strings.Contains(text, s.sql.unique.publication):
		message = publicationExists
	case strings.Contains(text, s.sql.unique.latest):
		message = latestExists
	case strings.Contains(text, inQuarantine):
		message = versionHidden
	default:
		return err
	}
	return fault.Wrap(fault.Conflict, message, err)
}
