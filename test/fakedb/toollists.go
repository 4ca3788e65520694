package fakedb

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// toolListKey identifies a stored list.
type toolListKey struct {
	versionKey
	part     tools.PartKey
	source   tools.Source
	review   registry.ReviewID
	approved bool
}

func keyOfToolList(l tools.Stored) toolListKey {
	return toolListKey{versionKey{l.Name, l.Version}, l.Part, l.Source, l.Review, l.State == tools.Approved}
}

// ToolLists implements [registrystore.ToolLists].
type ToolLists struct {
	*table[toolListKey, tools.Stored]
}

// NewToolLists returns the tool lists of a database.
func NewToolLists(db *Database) *ToolLists { return &ToolLists{db.toolLists} }

// OfVersion implements [registrystore.ToolLists]. Lists whose version is gone are gone.
func (s *ToolLists) OfVersion(ctx context.Context, name registry.Name, version registry.Version) ([]tools.Stored, error) {
	of := versionKey{name, version}
	return s.list(ctx, func(l tools.Stored) bool {
		return versionKey{l.Name, l.Version} == of && l.Review == "" && s.db.versions.has(of)
	}, byPart)
}

// Servers implements [registrystore.ToolLists].
func (s *ToolLists) Servers(ctx context.Context) ([]registry.Name, error) {
	all, err := s.list(ctx, func(l tools.Stored) bool { return l.Review == "" && s.db.versions.has(versionKey{l.Name, l.Version}) },
		func(a, b tools.Stored) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	names := make([]registry.Name, len(all))
	for i, l := range all {
		names[i] = l.Name
	}
	return slices.Compact(names), err
}

// OfReview implements [registrystore.ToolLists].
func (s *ToolLists) OfReview(ctx context.Context, id registry.ReviewID) ([]tools.Stored, error) {
	return s.list(ctx, func(l tools.Stored) bool { return l.Review == id && id != "" }, byPart)
}

// Named implements [registrystore.ToolLists].
func (s *ToolLists) Named(ctx context.Context, other registry.Name, words []string) (tools.Listed, error) {
	return result(ctx, s.db, func(context.Context) (tools.Listed, error) {
		found := tools.Listed{Servers: map[string]bool{}, Tools: map[string]string{}}
		for _, v := range s.db.versions.rows {
			if name := v.Name.String(); v.Latest && v.Name != other && v.Status != registry.StatusDeleted && slices.Contains(words, name) {
				found.Servers[name] = true
			}
		}
		for _, l := range s.rows {
			v, ok := s.db.versions.rows[versionKey{l.Name, l.Version}]
			for _, t := range l.List.Tools {
				first := found.Tools[t.Name] == "" || l.Name.String() < found.Tools[t.Name]
				if ok && v.Latest && l.State == tools.Approved && l.Name != other && first && slices.Contains(words, t.Name) {
					found.Tools[t.Name] = l.Name.String()
				}
			}
		}
		return found, nil
	})
}

func byPart(a, b tools.Stored) int {
	return cmp.Or(strings.Compare(string(a.Part), string(b.Part)), strings.Compare(string(a.Source), string(b.Source)),
		cmp.Compare(rank(a), rank(b)))
}

func rank(l tools.Stored) int {
	if l.State == tools.Approved {
		return 0
	}
	return 1
}

// Withdraw implements [registrystore.ToolLists].
func (s *ToolLists) Withdraw(ctx context.Context, l tools.Stored) error {
	l.State = ""
	return s.remove(ctx, keyOfToolList(l))
}
