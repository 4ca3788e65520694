package managing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/ports/management"
)

// note is the simplest object.
type note struct{ name, text, owner string }

var noteKind = kinds.Kind{
	Name: "note", List: "stickyNotes", Fields: []kinds.Field{{Name: "name", Required: true}, {Name: "text"}},
}

// notes are a store and a use case in one.
type notes []note

func (n *notes) objects() management.Objects {
	parse := func(f audit.Details) (note, error) {
		if f.Text("text") == "" {
			return note{}, fault.In("text", fault.New(fault.Invalid, "text is missing"))
		}
		return note{name: f.Text("name"), text: f.Text("text")}, nil
	}
	find := func(name string) *note {
		if i := slices.IndexFunc(*n, func(one note) bool { return one.name == name }); i >= 0 {
			return &(*n)[i]
		}
		return nil
	}
	return managing.Of[note]{
		Of: &noteKind, From: parse,
		Show: func(one *note) management.Object {
			return management.Object{Object: audit.Object{Kind: "note", Key: one.name, Fields: audit.Details{
				"name": audit.Text(one.name), "text": audit.Text(one.text),
			}}, Owner: one.owner}
		},
		All: managing.PageOf(func(context.Context) ([]note, error) { return slices.Clone(*n), nil },
			func(one *note) string { return one.name }),
		One: func(_ context.Context, key string) (note, error) {
			if one := find(key); one != nil {
				return *one, nil
			}
			return note{}, fault.New(fault.NotFound, "there is no note")
		},
		Store: func(_ context.Context, c management.Change, check func(*note) error) (note, bool, error) {
			one, err := parse(c.Fields)
			current := find(one.name)
			if err == nil && check != nil {
				err = check(current)
			}
			if err != nil {
				return note{}, false, err
			}
			one.owner = c.Owner
			*n = append(slices.DeleteFunc(*n, func(o note) bool { return o.name == one.name }), one)
			return one, current == nil, nil
		},
		Drop: func(_ context.Context, key string, c management.Change, check func(*note) error) error {
			if check != nil {
				return check(find(key))
			}
			*n = slices.DeleteFunc(*n, func(o note) bool { return o.name == key || c.Force })
			return nil
		},
	}
}

// TestOf: objects of a kind are those of its use case, and a check sees what is stored.
func TestOf(t *testing.T) {
	ctx, o := t.Context(), new(notes).objects()
	put := func(name, text string, check management.Check) (management.Object, bool, error) {
		return o.Put(ctx, management.Change{Owner: "platform", Check: check, Fields: audit.Details{
			"name": audit.Text(name), "text": audit.Text(text),
		}})
	}
	if _, err := o.Parse(audit.Details{"name": audit.Text("a")}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a note without text: %v", err)
	}
	for _, name := range []string{"c", "a", "b"} {
		if got, created, err := put(name, "x", nil); err != nil || !created || got.Key != name || got.Owner != "platform" {
			t.Errorf("%s: %+v, created %t, %v", name, got, created, err)
		}
	}
	errSeen := errors.New("seen")
	_, _, err := put("a", "y", func(current *management.Object) error {
		return fmt.Errorf("%w: %s", errSeen, current.Fields.Text("text"))
	})
	if !errors.Is(err, errSeen) || err.Error() != "seen: x" {
		t.Errorf("a check of a stored note: %v", err)
	}
	if _, created, err := put("d", "x", func(current *management.Object) error {
		if current != nil {
			return errSeen
		}
		return nil
	}); err != nil || !created {
		t.Errorf("a check of a new note: %v", err)
	}
	page, err := o.List(ctx, "a", 2)
	if err != nil || len(page) != 2 || page[0].Key != "b" || page[1].Key != "c" {
		t.Errorf("the page after a is %v, %v", page, err)
	}
	if err := o.Remove(ctx, "b", management.Change{}); err != nil {
		t.Errorf("remove b: %v", err)
	}
	if _, err := o.Get(ctx, "b"); !fault.Is(err, fault.NotFound) {
		t.Errorf("b is there: %v", err)
	}
	if got, err := o.Get(ctx, "c"); err != nil || got.Fields.Text("text") != "x" {
		t.Errorf("c is %v, %v", got, err)
	}
	if path := o.Kind().Path(); path != "sticky-notes" {
		t.Errorf("the path is %s", path)
	}
}
