package registrystoretest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

func keepsResponsible(t *testing.T, s QuarantineStores) {
	t.Helper()
	save := func(v string, day int, people ...registry.Holder) {
		s.inServer(t, "com.example/a", func(ctx context.Context) error {
			c := published(release(t, "com.example/a", v, day))
			c.People = people
			return s.Writer.Save(ctx, []registrystore.Change{c})
		})
	}
	s.publishServer(t, "com.example/b", "1.0.0")
	save("1.0.0", 0, "cem", "ada", "ada")
	save("2.0.0", 1, "bea")
	save("1.0.0", 0, "dan")
	save("1.0.0", 0)
	s.inServer(t, "com.example/a", func(ctx context.Context) error {
		// of no document
		return s.Writer.Save(ctx, []registrystore.Change{
			{Release: release(t, "com.example/a", "1.0.0", 0), People: []registry.Holder{"eve"}},
		})
	})
	for _, c := range []struct {
		server, version string
		want            []registry.Holder
	}{
		{"com.example/a", "1.0.0", []registry.Holder{"ada", "cem", "dan"}}, {
			"com.example/a", "2.0.0", []registry.Holder{"bea"},
		},
		{"com.example/a", "", []registry.Holder{"ada", "bea", "cem", "dan"}}, {"com.example/a", "3.0.0", nil}, {
			"com.example/b", "", nil,
		},
	} {
		var v registry.Version
		if c.version != "" {
			v = version(t, c.version)
		}
		var got []registry.Holder
		s.inServer(t, c.server, func(ctx context.Context) (err error) {
			got, err = s.Writer.Responsible(ctx, name(t, c.server), v)
			return err
		})
		if !equalLists(got, c.want) {
			t.Errorf("responsible for %s %s are %q, want %q", c.server, c.version, got, c.want)
		}
	}
}

// keepsHidden checks that the store refuses another status than deleted of what is in quarantine,
// also of a new version of a server in quarantine.
func keepsHidden(t *testing.T, s QuarantineStores) {
	t.Helper()
	s.publishServer(t, "com.example/a", "1.0.0", "2.0.0")
	s.publishServer(t, "com.example/b", "1.0.0")
	one, whole := newEntry(t, "com.example/a", "1.0.0"), newEntry(t, "com.example/b", "")
	hide := func(q registry.Quarantined) {
		s.inServer(t, q.Name.String(), func(ctx context.Context) error {
			r := release(t, q.Name.String(), "1.0.0", 0)
			r.Status, r.StatusMessage = registry.StatusDeleted, string(q.Reason)
			return errors.Join(s.Quarantine.Add(ctx, q, nil), s.Writer.Save(ctx, []registrystore.Change{state(r)}))
		})
	}
	hide(one)
	hide(whole)
	save := func(server string, c registrystore.Change) error {
		return s.tryInServer(t, server, func(ctx context.Context) error {
			return s.Writer.Save(ctx, []registrystore.Change{c})
		})
	}
	deprecated := release(t, "com.example/a", "1.0.0", 0)
	deprecated.Status = registry.StatusDeprecated
	for what, c := range map[string]registrystore.Change{
		"a status": state(release(t, "com.example/a", "1.0.0", 0)), "another status": state(deprecated),
		"a document":    published(release(t, "com.example/b", "1.0.0", 0)),
		"a new version": published(release(t, "com.example/b", "2.0.0", 1)),
	} {
		if err := save(c.Release.Name.String(), c); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s of what is in quarantine: %v, want fault.Conflict", what, err)
		}
	}
	if err := save("com.example/a", state(release(t, "com.example/a", "2.0.0", 1))); err != nil {
		t.Errorf("a version beside one in quarantine: %v", err)
	}
	s.inServer(t, "com.example/a", func(ctx context.Context) error {
		return errors.Join(s.Quarantine.Remove(ctx, one.Name, one.Version, nil),
			s.Writer.Save(ctx, []registrystore.Change{state(release(t, "com.example/a", "1.0.0", 0))}))
	})
}

func listsSince(t *testing.T, s QuarantineStores) {
	t.Helper()
	var all []registry.Quarantined
	for i := range 4 {
		q := newEntry(t, fmt.Sprintf("com.example/s%d", 3-i), "")
		q.Since = hour(i)
		s.publishServer(t, q.Name.String(), "1.0.0")
		s.add(t, q)
		all = append([]registry.Quarantined{q}, all...)
	}
	for i, want := range [][]registry.Quarantined{all[:3], all[:2], all[:1], nil} {
		s.requireList(t, registrystore.QuarantineQuery{Patterns: everything(t), Since: hour(i), Limit: 10}, want...)
	}
	s.requireList(t, registrystore.QuarantineQuery{Patterns: everything(t), Since: hour(0), Limit: 2}, all[:2]...)
}
