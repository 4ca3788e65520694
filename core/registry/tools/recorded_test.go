package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

const withParts = `{"name":"com.example/a","version":"1.0.0","remotes":[{"type":"streamable-http","url":"https://a.example/mcp"},
	{"type":"sse","url":"HTTPS://B.example:443/sse"}],"packages":[{"registryType":"npm","identifier":"x","version":"1"},
	{"registryType":"npm","identifier":"y","version":"1"}]}`

// TestFindPart checks which part a place names, and that the key of a package is that of what it is.
func TestFindPart(t *testing.T) {
	find := func(document string, p tools.Place) tools.PartKey {
		t.Helper()
		part, err := tools.FindPart([]byte(document), p)
		if err != nil {
			t.Fatal(err)
		}
		if key, err := tools.ParsePartKey(string(part.Key)); err != nil || key != part.Key {
			t.Errorf("the key %q is %q, %v", part.Key, key, err)
		}
		return part.Key
	}
	remote := find(withParts, tools.Place{Remote: "https://b.example/sse"})
	if find(withParts, tools.Place{Remote: "HTTPS://B.example:443/sse"}) != remote {
		t.Error("a remote has two keys")
	}
	y := find(withParts, tools.Place{Package: 1})
	turned := `{"packages":[{"identifier":"y","registryType":"npm","version":"1"},{"registryType":"npm","identifier":"x","version":"2"}]}`
	if find(turned, tools.Place{}) != y || find(turned, tools.Place{Package: 1}) == find(withParts, tools.Place{}) {
		t.Error("a package is not known by what it is")
	}
	for _, p := range []tools.Place{{Remote: "https://a.example/mcp/"}, {Remote: "a"}, {Package: 2}} {
		if _, err := tools.FindPart([]byte(withParts), p); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s is found: %v", p, err)
		}
	}
	if _, err := tools.FindPart([]byte("no document"), tools.Place{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a part is found in no document: %v", err)
	}
}

// TestReceive checks what becomes of a list.
func TestReceive(t *testing.T) {
	lists := map[string]tools.List{"": parse(t), "a": parse(t, `{"name":"a"}`), "b": parse(t, `{"name":"b"}`)}
	one := func(state tools.State, list string) tools.Stored {
		return tools.Stored{Part: "p", Source: tools.Recorded, State: state, List: lists[list], By: tools.Sender{Key: "first"}}
	}
	elsewhere := tools.Stored{Part: "q", Source: tools.Recorded, State: tools.Approved, List: lists["b"]}
	for name, c := range map[string]struct {
		stored   []tools.Stored
		reviewed bool
		want     tools.Change // with Put that is not nil if a list is stored
	}{
		"the first":                {nil, false, tools.Change{Put: &tools.Stored{}, First: true, State: tools.Approved}},
		"the first, with review":   {nil, true, tools.Change{Put: &tools.Stored{}, First: true, State: tools.Pending}},
		"the first of this part":   {[]tools.Stored{elsewhere}, false, tools.Change{Put: &tools.Stored{}, First: true, State: tools.Approved}},
		"the approved one":         {[]tools.Stored{one(tools.Approved, "a")}, true, tools.Change{State: tools.Approved}},
		"another one":              {[]tools.Stored{one(tools.Approved, "b")}, false, tools.Change{Put: &tools.Stored{}, State: tools.Differs}},
		"another one, with review": {[]tools.Stored{one(tools.Approved, "b")}, true, tools.Change{Put: &tools.Stored{}, State: tools.Differs}},
		"again":                    {[]tools.Stored{one(tools.Approved, "b"), one(tools.Differs, "a")}, false, tools.Change{State: tools.Differs}},
		"a third one":              {[]tools.Stored{one(tools.Approved, "b"), one(tools.Differs, "")}, false, tools.Change{Put: &tools.Stored{}, State: tools.Differs}},
		"the approved one comes back": {
			[]tools.Stored{one(tools.Differs, "b"), one(tools.Approved, "a")}, false, tools.Change{Remove: true, State: tools.Approved},
		},
		"one that waits":        {[]tools.Stored{one(tools.Pending, "a")}, true, tools.Change{State: tools.Pending}},
		"one that still waits":  {[]tools.Stored{one(tools.Pending, "a")}, false, tools.Change{State: tools.Pending}},
		"after one that waits":  {[]tools.Stored{one(tools.Pending, "b")}, true, tools.Change{Put: &tools.Stored{}, State: tools.Pending}},
		"after one that waited": {[]tools.Stored{one(tools.Pending, "b")}, false, tools.Change{Put: &tools.Stored{}, State: tools.Pending}},
	} {
		t.Run(name, func(t *testing.T) {
			sent := one("", "a")
			sent.By.Key = "second"
			got := tools.Receive(c.stored, sent, c.reviewed)
			if got.First != c.want.First || got.Remove != c.want.Remove || got.State != c.want.State || (got.Put == nil) != (c.want.Put == nil) {
				t.Fatalf("it becomes %+v, want %+v", got, c.want)
			}
			if got.Put != nil && (got.Put.State != got.State || got.Put.By.Key != "second" || got.Put.List.Mark != lists["a"].Mark) {
				t.Errorf("%+v is stored", got.Put)
			}
		})
	}
	l, err := tools.Parse([]byte(`{"tools":[{"name":"a"}],"instructions":"other"}`))
	if got := tools.Receive([]tools.Stored{one(tools.Approved, "a")}, tools.Stored{Part: "p", Source: tools.Recorded, List: l}, false); err != nil ||
		got.State != tools.Differs {
		t.Errorf("other instructions become %+v, %v", got, err)
	}
}

// TestNeverApproved checks that with reviews no list is approved by being sent, in whatever order lists
// come, and that there is never more than one list that is approved and one that is not.
func TestNeverApproved(t *testing.T) {
	lists := []tools.List{parse(t), parse(t, `{"name":"a"}`), parse(t, `{"name":"b"}`)}
	rapid.Check(t, func(t *rapid.T) {
		var stored []tools.Stored
		withReview := rapid.Bool().Draw(t, "review")
		for range rapid.IntRange(1, 8).Draw(t, "sent") {
			sent := tools.Stored{Part: "p", Source: tools.Recorded, List: rapid.SampledFrom(lists).Draw(t, "list")}
			c := tools.Receive(stored, sent, withReview)
			if withReview && c.State == tools.Approved || c.Put != nil && c.Put.State == tools.Approved && !c.First {
				t.Fatalf("%+v is approved", c)
			}
			var err error
			stored, err = c.Apply(stored, sent)
			if err != nil || len(stored) > 2 || len(stored) == 2 && (stored[0].State != tools.Approved || stored[1].State != tools.Differs) {
				t.Fatalf("%+v are stored, %v", stored, err)
			}
		}
	})
}

// TestStoredListsAreBounded checks that the lists of a version, with those of other parts, have a
// greatest size, and that a list that changes nothing is never refused for it.
func TestStoredListsAreBounded(t *testing.T) {
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprintf(`{"name":"t%d","title":%q}`, i, strings.Repeat("x", 60<<10)))
	}
	large := parse(t, many...)
	var stored []tools.Stored
	for _, part := range []tools.PartKey{"1", "2", "3", "4", "5"} {
		sent := tools.Stored{Part: part, Source: tools.Recorded, List: large}
		after, err := tools.Receive(stored, sent, true).Apply(stored, sent)
		if want := len(stored) == 4; want != fault.Is(err, fault.Conflict) || !want && err != nil {
			t.Fatalf("list %s after %d others: %v", part, len(stored), err)
		}
		if err == nil {
			stored = after
		}
	}
	again := tools.Stored{Part: "1", Source: tools.Recorded, List: large}
	if after, err := tools.Receive(stored, again, true).Apply(stored, again); err != nil || len(after) != 4 {
		t.Errorf("the same list again: %d, %v", len(after), err)
	}
}
