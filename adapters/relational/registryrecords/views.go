package registryrecords

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// viewStore stores views and the hashes of their tokens. It implements registrystore.Views.
type viewStore struct {
	db      *database.DB
	changes *changeLog
}

// viewRow is a row of the table registry_views.
type viewRow struct {
	bun.BaseModel `bun:"table:registry_views"`

	Name       view.Name       `bun:"name,pk"`
	Include    string          `bun:"include"` // with a space between the patterns
	Exclude    string          `bun:"exclude"` // likewise
	Deprecated view.Deprecated `bun:"deprecated"`
	Access     view.Access     `bun:"access"`
	ManagedBy  string          `bun:"managed_by"`
	Members    *string         `bun:"members"` // of a view that people may read, a line each; otherwise nil
}

// viewTokenRow is a row of the table registry_view_tokens.
type viewTokenRow struct {
	bun.BaseModel `bun:"table:registry_view_tokens"`

	View      view.Name        `bun:"view,pk"`
	Name      view.TokenName   `bun:"name,pk"`
	Hash      []byte           `bun:"hash"`
	CreatedAt database.Instant `bun:"created_at"`
}

// change runs a change in a transaction. After its commit, this process knows of it.
func (s *viewStore) change(ctx context.Context, do func(ctx context.Context, tx bun.IDB) error) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		s.db.AfterCommit(ctx, func() { s.changes.hint.Add(1) })
		return do(ctx, tx)
	})
}

func (s *viewStore) Put(ctx context.Context, v view.View) error {
	row := &viewRow{
		Name: v.Name, Include: joinPatterns(v.Include), Exclude: joinPatterns(v.Exclude), Deprecated: v.Deprecated,
		Access: v.Access, ManagedBy: v.ManagedBy,
	}
	if v.Access == view.People {
		members := joinMembers(v.Members)
		row.Access, row.Members = view.WithToken, &members
	}
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := s.db.AffectedRows(tx.NewInsert().Model(row).On("CONFLICT (name) DO UPDATE").Exec(ctx))
		return err
	})
}

// replaced returns the assignments of an insertion that replaces some columns of a row.
func replaced(columns ...string) string {
	return strings.Join(each.Map(columns, func(c string) string { return c + " = excluded." + c }), ", ")
}

// replacedBut is replaced for all columns of a row but some.
func replacedBut[R any](db bun.IDB, kept ...string) string {
	var columns []string
	for _, f := range db.Dialect().Tables().Get(reflect.TypeFor[R]()).Fields {
		if !slices.Contains(kept, f.Name) {
			columns = append(columns, f.Name)
		}
	}
	return replaced(columns...)
}

// Remove implements registrystore.Views. The database deletes the tokens of the view.
func (s *viewStore) Remove(ctx context.Context, name view.Name) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewDelete().Model((*viewRow)(nil)).Where("name = ?", name).Exec(ctx))
		return changedOr(n, err, errNoView())
	})
}

func (s *viewStore) List(ctx context.Context) ([]view.View, error) {
	return database.ReadRows(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("name") }, (*viewRow).toView)
}

// toView returns the view of a row. It returns fault.Internal if a value breaks a rule of the
// model.
func (r *viewRow) toView() (view.View, error) {
	d := view.Draft{
		Name: string(r.Name), Include: strings.Fields(r.Include), Exclude: strings.Fields(r.Exclude),
		Deprecated: string(r.Deprecated), Access: string(r.Access), ManagedBy: r.ManagedBy,
	}
	if r.Members != nil && r.Access == view.WithToken {
		d.Access = string(view.People)
		for line := range strings.Lines(*r.Members) {
			kind, member, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			if kind == "group" {
				d.Groups = append(d.Groups, member)
			} else {
				d.People = append(d.People, member)
			}
		}
	}
	v, err := view.New(d)
	return v, checkRow(err)
}

// joinMembers returns members with a line each. No member has a line break.
func joinMembers(m view.Members) string {
	var b strings.Builder
	for _, address := range m.People {
		b.WriteString("person:" + address + "\n")
	}
	for _, group := range m.Groups {
		b.WriteString("group:" + group + "\n")
	}
	return b.String()
}

// AddToken implements registrystore.Views. It locks the view, so that no one removes it meanwhile.
func (s *viewStore) AddToken(ctx context.Context, t view.Token) error {
	row := &viewTokenRow{View: t.View, Name: t.Name, Hash: t.Hash[:], CreatedAt: database.NewInstant(t.CreatedAt)}
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		var locked viewRow
		find := s.db.LockForChange(tx.NewSelect().Model(&locked).Where("name = ?", t.View))
		if err := s.db.ClassifyFind(find.Scan(ctx), errNoView()); err != nil {
			return err
		}
		n, err := s.db.AffectedRows(tx.NewInsert().Model(row).On("CONFLICT DO NOTHING").Exec(ctx))
		return changedOr(n, err, fault.New(fault.Conflict, "the token already exists"))
	})
}

func (s *viewStore) RemoveToken(ctx context.Context, v view.Name, name view.TokenName) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewDelete().Model((*viewTokenRow)(nil)).Where("view = ? AND name = ?", v,
			name).Exec(ctx))
		return changedOr(n, err, fault.New(fault.NotFound, "the token does not exist"))
	})
}

var errTokenHash = errors.New("the hash of a token of a view has another length")

func (s *viewStore) Tokens(ctx context.Context) ([]view.Token, error) {
	return database.ReadRows(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("view", "name") }, (*viewTokenRow).toToken)
}

func (r *viewTokenRow) toToken() (view.Token, error) {
	t := view.Token{View: r.View, Name: r.Name, CreatedAt: r.CreatedAt.Time}
	if copy(t.Hash[:], r.Hash) != len(r.Hash) || len(r.Hash) != len(t.Hash) {
		return view.Token{}, database.BrokenRow(errTokenHash)
	}
	return t, nil
}

func errNoView() error { return fault.New(fault.NotFound, "the view does not exist") }

func joinPatterns(patterns []registry.Pattern) string {
	return strings.Join(each.Texts(patterns), " ")
}
