package review_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/test/must"
)

// changes returns the differences at paths from 1 to 2.
func changes(paths ...string) (all []review.Difference) {
	for _, p := range paths {
		d := review.Difference{Path: p, Before: jsonvalue.Exact("1"), After: jsonvalue.Exact("2")}
		if p == "/version" {
			d.Before, d.After = jsonvalue.Text("1"), jsonvalue.Text("2")
		}
		all = append(all, d)
	}
	return all
}

// TestOrdered checks the order in which a document is shown.
func TestOrdered(t *testing.T) {
	t.Parallel()
	for document, want := range map[string][2]string{
		`{}`: {`{}`, ``},
		`{"_meta":{"x":1.0},"name":"a/b","$schema":"s","version":"1","packages":[{"z":1,"a":2}],"é<":null,"remotes":[]}`: {
			`{"remotes":[],"packages":[{"z":1,"a":2}],"$schema":"s","name":"a/b","version":"1","é\u003c":null}`,
			`{"x":1.0}`},
		`{"a":1,"a":2}`:         {`{"a":1,"a":2}`, ``},
		`{"_meta":1,"_meta":2}`: {`{"_meta":2}`, `1`}, // nothing is left out
	} {
		main, meta, err := review.Ordered([]byte(document))
		if err != nil || string(main) != want[0] || string(meta) != want[1] {
			t.Errorf("Ordered(%s) = %s, %s, %v, want %s", document, main, meta, err, want)
		}
	}
	for _, bad := range []string{``, `[]`, `{`, `{"a":`, `null`} {
		if _, _, err := review.Ordered([]byte(bad)); !fault.Is(err, fault.Invalid) {
			t.Errorf("Ordered(%q) = %v, want fault.Invalid", bad, err)
		}
	}
	for path, want := range map[string]bool{
		"/_meta": true, "/_meta/x": true, "/_metax": false, "/packages/0/_meta": false, "": false,
	} {
		if (review.Difference{Path: path}).IsMeta() != want {
			t.Errorf("%q is in _meta: %v", path, !want)
		}
	}
}

// TestUnifiedOfChains checks that lines of which each is found once only between two others take no work that grows with
// the square of the document: anybody may compare two versions. What is not found is removed and added.
func TestUnifiedOfChains(t *testing.T) {
	t.Parallel()
	var before, after []string
	for i := range 2000 {
		before = append(before, strconv.Itoa(i+1), strconv.Itoa(i), "-7")
		after = append(after, strconv.Itoa(i+1), "-8", strconv.Itoa(i))
	}
	lines, _, err := review.Unified([]byte(`{"x":[`+strings.Join(before, ",")+`]}`), []byte(`{"x":[0,`+strings.Join(after, ",")+`]}`))
	must.Succeed(t, err)
	kept := 0
	for _, l := range lines {
		if l.Kind == review.LineKept {
			kept++
		}
	}
	if kept > 200 {
		t.Errorf("%d of %d lines are found one after the other", kept, len(lines))
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		want          []review.Difference
	}{
		{`{"a":1}`, `{"a":1}`, nil},
		{`{"a":1.0}`, `{"a":1}`, []review.Difference{{"/a", jsonvalue.Exact("1.0"), jsonvalue.Exact("1")}}},
		{`{"version":"1","_meta":{"a":1},"A":1,"packages":[1],"repository":1,"icons":1,"websiteUrl":1,"~":1,"remotes":[1]}`,
			`{"_meta":{"a":2},"A":2,"packages":[2],"repository":2,"icons":2,"version":"2","websiteUrl":2,"~":2,"remotes":[2]}`, changes(
				"/remotes/0", "/packages/0", "/repository", "/websiteUrl", "/icons", "/A", "/version", "/~0",
				"/_meta/a")},
		{`{"version":"1","b":true}`, `{"b":true,"version":"2"}`, []review.Difference{{"/version", jsonvalue.Text("1"), jsonvalue.Text("2")}}},
		{`{"a":1}`, `{"b":1}`, []review.Difference{{"/a", jsonvalue.Exact("1"), nil}, {"/b", nil, jsonvalue.Exact("1")}}},
		{`{"a/b":{"~":1}}`, `{"a/b":{"~":2}}`, []review.Difference{{"/a~1b/~0", jsonvalue.Exact("1"), jsonvalue.Exact("2")}}},
		{`{"l":[1,2]}`, `{"l":[1]}`, []review.Difference{{"/l/1", jsonvalue.Exact("2"), nil}}},
		{`{"l":[1]}`, `{"l":[1,{"x":"y"}]}`, []review.Difference{{"/l/1", nil, jsonvalue.Object{"x": jsonvalue.Text("y")}}}},
		{`{"l":[{"u":"a"},{"u":"b"}]}`, `{"l":[{"u":"a"},{"u":"c"}]}`, []review.Difference{{"/l/1/u", jsonvalue.Text("b"), jsonvalue.Text("c")}}},
		{
			`{"v":{"x":1}}`, `{"v":[1]}`, []review.Difference{
				{"/v", jsonvalue.Object{"x": jsonvalue.Exact("1")}, jsonvalue.List{jsonvalue.Exact("1")}},
			},
		},
		{`{"v":"x"}`, `{"v":["x"]}`, []review.Difference{{"/v", jsonvalue.Text("x"), jsonvalue.List{jsonvalue.Text("x")}}}},
		{`{"v":null}`, `{}`, nil}, // null is the same as a value that is not there (contract R-9)
	} {
		got, err := review.Diff([]byte(c.before), []byte(c.after))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Diff(%s, %s) = %v, %v, want %v", c.before, c.after, got, err, c.want)
		}
	}
	if got, err := review.Diff(nil, []byte(`{}`)); err != nil || got != nil {
		t.Errorf("without a document before: %v, %v, want none", got, err)
	}
	if _, err := review.Diff([]byte(`{`), []byte(`{}`)); !fault.Is(err, fault.Invalid) {
		t.Errorf("of text that is not JSON: %v, want fault.Invalid", err)
	}
}

// drawJSON returns any JSON value of a few levels.
func drawJSON(depth int) *rapid.Generator[jsonvalue.Value] {
	scalars := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"a", "b", ""}), func(s string) jsonvalue.Value {
			return jsonvalue.Text(s)
		}),
		rapid.Map(rapid.IntRange(0, 3), func(n int) jsonvalue.Value { return jsonvalue.Number(n) }),
		rapid.Map(rapid.Bool(), func(b bool) jsonvalue.Value { return jsonvalue.Flag(b) }),
	)
	if depth == 0 {
		return scalars
	}
	inner := drawJSON(depth - 1)
	return rapid.OneOf(scalars,
		rapid.Map(rapid.SliceOfN(inner, 0, 3), func(l []jsonvalue.Value) jsonvalue.Value {
			return jsonvalue.List(l)
		}),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"x", "y/", "~z"}), inner, 0, 3),
			func(m map[string]jsonvalue.Value) jsonvalue.Value { return jsonvalue.Object(m) }),
	)
}

// TestDiffProperties checks that equal documents have no differences and others some, that no value
// is reported twice, and that the difference the other way round is the same with its sides
// changed.
func TestDiffProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := make([][]byte, 2)
		for i := range texts {
			var err error
			if texts[i], err = json.Marshal(jsonvalue.Object{"root": drawJSON(3).Draw(t, "document")}); err != nil {
				t.Fatal(err)
			}
		}
		forth, err := review.Diff(texts[0], texts[1])
		must.Succeed(t, err)
		back, err := review.Diff(texts[1], texts[0])
		must.Succeed(t, err)
		if (len(forth) == 0) != (string(texts[0]) == string(texts[1])) {
			t.Fatalf("Diff(%s, %s) = %v", texts[0], texts[1], forth)
		}
		for i, d := range forth {
			if !reflect.DeepEqual(back[i], review.Difference{Path: d.Path, Before: d.After, After: d.Before}) {
				t.Fatalf("back is %v, want %v with its sides changed", back, forth)
			}
			if !strings.HasPrefix(d.Path, "/root") ||
				slices.IndexFunc(forth, func(o review.Difference) bool { return o.Path == d.Path }) != i {
				t.Fatalf("%v has the path %s twice or wrong", forth, d.Path)
			}
		}
	})
}
