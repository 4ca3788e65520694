package registrystoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

func hasNoServers(t *testing.T, o opened) {
	t.Helper()
	o.lists(t, registrystore.Query{})
	if got := o.versions(t, "com.example/none", true); len(got) != 0 {
		t.Errorf("an empty store has the versions %v", got)
	}
	if _, err := o.Reader.Version(t.Context(), name(t, "com.example/none"), version(t, "1.0.0"), true); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("a version of an empty store: %v", err)
	}
	if _, err := o.Reader.Latest(t.Context(), name(t, "com.example/none"), true); !fault.Is(err, fault.NotFound) {
		t.Errorf("the latest version of an empty store: %v", err)
	}
	if got := o.locked(t, "com.example/none"); len(got) != 0 {
		t.Errorf("a name that was never published has the releases %v", got)
	}
}

func returnsStoredVersion(t *testing.T, o opened) {
	t.Helper()
	change := published(
		latest(status(release(t, "com.example/a", "1.0.0", 0), registry.StatusDeprecated,
			"use b; it's \"better\" \\ ü ?", 3)))
	o.saved(t, change)
	want := registry.Record{Release: change.Release, Document: change.Document}
	byVersion := o.version(t, change.Release)
	byLatest, err := o.Reader.Latest(t.Context(), change.Release.Name, false)
	if err != nil {
		t.Fatal(err)
	}
	for how, got := range map[string]registry.Record{
		"version": byVersion, "latest": byLatest,
		"versions": o.versions(t, "com.example/a", false)[0], "list": o.list(t, registrystore.Query{})[0],
	} {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s returns\n%+v, want\n%+v", how, got, want)
		}
	}
	if got := o.locked(t, "com.example/a"); !reflect.DeepEqual(got, []registry.Release{change.Release}) {
		t.Errorf("lock returns\n%+v, want\n%+v", got, change.Release)
	}
}

func documentsKeepTheirBytes(t *testing.T, o opened) {
	t.Helper()
	documents := []string{
		`{"z":1,"a":2.50,"z":1e400}`,
		`{"text":"\u0000 \u00fc ü 🦀 ' \\ ? ?0 $1 %s"}`,
		"{\"broken\":\"\xff\xfe\"}",
		`{"long":"` + strings.Repeat("x", 1<<20) + `"}`,
	}
	for i, d := range documents {
		r := release(t, "com.example/a", fmt.Sprintf("%d.0.0", i), i)
		o.saved(t, registrystore.Change{Release: r, Document: []byte(d)})
		if got := o.version(t, r); !bytes.Equal(got.Document, []byte(d)) {
			t.Errorf("document %d came back as %.80q", i, got.Document)
		}
	}
}

func listsNewestFirst(t *testing.T, o opened) {
	t.Helper()
	o.saved(t, published(release(t, "com.example/a", "2.0.0", 0)), published(release(t, "com.example/a", "1.0.0", 2)),
		published(release(t, "com.example/a", "3.0.0", 1)))
	o.saved(t, published(release(t, "com.example/b", "9.0.0", 3)))
	want := []string{"com.example/a@1.0.0", "com.example/a@3.0.0", "com.example/a@2.0.0"}
	if got := keys(o.versions(t, "com.example/a", false)); !slices.Equal(got, want) {
		t.Errorf("the versions are %q, want %q", got, want)
	}
	if got := o.versions(t, "com.example/A", false); len(got) != 0 {
		t.Errorf("names are not told apart by case: %v", keys(got))
	}
}

func listsOldestFirst(t *testing.T, o opened) {
	t.Helper()
	first, second, third := release(t, "com.example/a", "2.0.0", 0), release(t, "com.example/a", "3.0.0", 1),
		release(t, "com.example/a", "1.0.0", 2)
	second = status(second, registry.StatusDeleted, "", 4)
	o.saved(t, published(third), published(second), published(first))
	if got := o.locked(t, "com.example/a"); !reflect.DeepEqual(got, []registry.Release{first, second, third}) {
		t.Errorf("lock returns\n%+v", got)
	}
}

func changesState(t *testing.T, o opened) {
	t.Helper()
	before := published(latest(release(t, "com.example/a", "1.0.0", 0)))
	o.saved(t, before)
	after := status(before.Release, registry.StatusDeprecated, "old", 5)
	o.saved(t, state(after))
	if got := o.version(t, after); !reflect.DeepEqual(got, registry.Record{Release: after, Document: before.Document}) {
		t.Errorf("stored is\n%+v, want\n%+v", got, after)
	}
	missing := state(release(t, "com.example/a", "2.0.0", 1))
	if err := o.save(t.Context(), missing); !fault.Is(err, fault.NotFound) {
		t.Errorf("a state of a version that is not there: %v", err)
	}
}

func replacesDocument(t *testing.T, o opened) {
	t.Helper()
	r := latest(release(t, "com.example/a", "1.0.0", 0))
	o.saved(t, published(r))
	r.UpdatedAt = hour(7)
	o.saved(t, registrystore.Change{Release: r, Document: []byte(`{"new":true}`)})
	if got := o.version(t, r); !reflect.DeepEqual(got, registry.Record{Release: r, Document: []byte(`{"new":true}`)}) {
		t.Errorf("stored is\n%+v", got)
	}
}

func changesManyStates(t *testing.T, o opened) {
	t.Helper()
	const many = 1201
	documents, states := make([]registrystore.Change, 0, many), make([]registrystore.Change, 0, many)
	for i := range many {
		r := release(t, "com.example/a", fmt.Sprintf("1.%d.0", i), i)
		r.Latest = i == many-1
		documents = append(documents, published(r))
		states = append(states, state(status(r, registry.StatusDeleted, fmt.Sprintf("no %d", i), many+i)))
	}
	o.saved(t, documents...)
	o.saved(t, states...)
	got := o.locked(t, "com.example/a")
	for i := range got {
		if !reflect.DeepEqual(got[i], states[i].Release) {
			t.Fatalf("version %d is\n%+v, want\n%+v", i, got[i], states[i].Release)
		}
	}
	if len(got) != many {
		t.Errorf("%d versions are stored, want %d", len(got), many)
	}
}

func hidesDeleted(t *testing.T, o opened) {
	t.Helper()
	gone := latest(status(release(t, "com.example/a", "1.0.0", 0), registry.StatusDeleted, "", 3))
	there := release(t, "com.example/a", "2.0.0", 1)
	o.saved(t, published(gone), published(there))
	if _, err := o.Reader.Version(t.Context(), gone.Name, gone.Version, false); !fault.Is(err, fault.NotFound) {
		t.Errorf("a deleted version: %v", err)
	}
	if _, err := o.Reader.Latest(t.Context(), gone.Name, false); !fault.Is(err, fault.NotFound) {
		t.Errorf("a latest version that is deleted: %v", err)
	}
	if got, err := o.Reader.Latest(t.Context(), gone.Name, true); err != nil || got.Version != gone.Version {
		t.Errorf("the latest version, deleted ones too: %v %v", got, err)
	}
	if got := keys(o.versions(t, "com.example/a", false)); !slices.Equal(got, []string{"com.example/a@2.0.0"}) {
		t.Errorf("the versions are %q", got)
	}
	if got := o.versions(t, "com.example/a", true); len(got) != 2 {
		t.Errorf("the versions, deleted ones too, are %q", keys(got))
	}
	o.lists(t, registrystore.Query{}, "com.example/a@2.0.0")
	o.lists(t, registrystore.Query{Deleted: true}, "com.example/a@1.0.0", "com.example/a@2.0.0")
}

func refusesEndedContext(t *testing.T, o opened) {
	t.Helper()
	r := release(t, "com.example/a", "1.0.0", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, list := o.Reader.List(ctx, registrystore.Query{Limit: 10})
	_, versions := o.Reader.Versions(ctx, registrystore.VersionsQuery{Name: r.Name, Deleted: true})
	_, outline := o.Reader.Outline(ctx, r.Name, true)
	_, one := o.Reader.Version(ctx, r.Name, r.Version, true)
	_, last := o.Reader.Latest(ctx, r.Name, true)
	for call, err := range map[string]error{
		"list": list, "versions": versions, "outline": outline, "version": one, "latest": last,
		"save": o.save(ctx, published(r)),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", call, err)
		}
	}
	o.lists(t, registrystore.Query{})
}
