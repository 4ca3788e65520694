package review_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/test/must"
)

const summarized = `{"name":"com.example/a","version":"1.0.0","title":"A",
	"repository":{"url":"https://github.com/example/a","source":"github"},
	"remotes":[{"type":"sse","url":"https://a.example.com/mcp","headers":[{"name":"X-Key","isSecret":true}]}],
	"packages":[{"registryType":"npm","identifier":"a","version":"1.0.0","runtimeHint":"npx","transport":{"type":"stdio"},
		"runtimeArguments":[{"type":"positional","value":"-y"}],"environmentVariables":[{"name":"MODE","default":"x"}]},
		{"registryType":"oci","identifier":"ghcr.io/example/a:1.0.0","transport":{"type":"stdio"}}]}`

// TestSummarize checks the words of a summary, and their order.
func TestSummarize(t *testing.T) {
	t.Parallel()
	for label, c := range map[string]struct {
		replace []string
		want    []string
	}{
		"nothing":            {nil, nil},
		"host":               {[]string{"a.example.com", "b.example.net"}, []string{"Changed host:https://a.example.com>https://b.example.net (secret X-Key goes there)"}},
		"host and path":      {[]string{"a.example.com/mcp", "b.example.net/x"}, []string{"Changed host:https://a.example.com>https://b.example.net (secret X-Key goes there)", "Changed address:https://a.example.com/mcp>https://b.example.net/x"}},
		"host and transport": {[]string{`"sse"`, `"streamable-http"`, "a.example.com", "b.example.net"}, []string{"Changed host:https://a.example.com>https://b.example.net (secret X-Key goes there)", "Changed transport https://b.example.net:sse>streamable-http"}},
		"no repository":      {[]string{`"repository":{"url":"https://github.com/example/a","source":"github"},`, ""}, []string{"Removed repository https://github.com/example/a:"}},
		"new command":        {[]string{`"identifier":"ghcr.io/example/a:1.0.0"`, `"identifier":"ghcr.io/example/a:1.0.0","runtimeHint":"docker"`}, []string{"New command docker: (for ghcr.io/example/a:1.0.0)"}},
		"second host":        {[]string{`"remotes":[`, `"remotes":[{"type":"sse","url":"https://b.example.net"},`}, []string{"New host https://b.example.net:", "New transport https://b.example.net:>sse", "New address https://b.example.net:"}},
		"transport of a package": {
			[]string{`"identifier":"ghcr.io/example/a:1.0.0","transport":{"type":"stdio"}`, `"identifier":"ghcr.io/example/a:1.0.0","transport":{"type":"sse","url":"http://localhost:1/sse"}`},
			[]string{"Changed transport oci ghcr.io/example/a:1.0.0:stdio>sse", "New address oci ghcr.io/example/a:1.0.0:>http://localhost:1/sse"},
		},
		"path":           {[]string{"/mcp", "/other"}, []string{"Changed address https://a.example.com:https://a.example.com/mcp>https://a.example.com/other"}},
		"package":        {[]string{`"identifier":"a"`, `"identifier":"evil"`}, []string{"Changed package:npm a>npm evil"}},
		"version":        {[]string{`"version":"1.0.0","runtimeHint"`, `"version":"1.0.1","runtimeHint"`}, []string{"Changed package npm a:1.0.0>1.0.1"}},
		"tag":            {[]string{"a:1.0.0", "a:1.1.0"}, []string{"Changed package:oci ghcr.io/example/a:1.0.0>oci ghcr.io/example/a:1.1.0"}},
		"command":        {[]string{"npx", "docker"}, []string{"Changed command:npx>docker (for a)"}},
		"argument":       {[]string{`"-y"`, `"evil"`}, []string{`Changed argument:"-y">"evil"`}},
		"new argument":   {[]string{`"value":"-y"}`, `"value":"-y"},{"type":"named","name":"--to","value":"x"}`}, []string{`New argument "--to x":`}},
		"variable":       {[]string{`"default":"x"`, `"default":"y"`}, []string{"Changed environment variable MODE:x>y"}},
		"secret":         {[]string{`"name":"MODE"`, `"name":"MODE","isSecret":true`}, []string{"New secret MODE:"}},
		"new variable":   {[]string{`{"name":"MODE"`, `{"name":"TOKEN","isSecret":true},{"name":"MODE"`}, []string{"New environment variable TOKEN:", "New secret TOKEN:"}},
		"header":         {[]string{`"headers":[`, `"headers":[{"name":"X-To","value":"v"},`}, []string{"New header X-To:>v"}},
		"no secret":      {[]string{`"isSecret":true`, `"isSecret":false`}, []string{"Removed secret X-Key:"}},
		"repository":     {[]string{"com/example/a\"", "com/evil/a\""}, []string{"Changed repository:https://github.com/example/a>https://github.com/evil/a"}},
		"source":         {[]string{`"source":"github"`, `"source":"gitlab"`}, []string{"Changed repository https://github.com/example/a:"}},
		"transport":      {[]string{`"sse"`, `"streamable-http"`}, []string{"Changed transport https://a.example.com:sse>streamable-http"}},
		"title":          {[]string{`"title":"A"`, `"title":"B"`}, []string{"Changed property title:A>B"}},
		"unknown":        {[]string{`"title":"A"`, `"x":[1]`}, []string{"New property x:", "Removed property title:A>"}},
		"several, order": {[]string{`"title":"A"`, `"title":"B"`, `"sse"`, `"streamable-http"`, "npx", "uvx"}, []string{"Changed command:npx>uvx (for a)", "Changed transport https://a.example.com:sse>streamable-http", "Changed property title:A>B"}},
	} {
		after := strings.NewReplacer(c.replace...).Replace(summarized)
		points, err := review.Summarize([]byte(summarized), []byte(after))
		must.Succeed(t, err)
		got := words(points)
		if label == "several, order" || strings.HasPrefix(label, "host") {
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %q, want %q", label, got, c.want)
			}
			continue
		}
		for _, want := range c.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %q, want %q", label, got, want)
			}
		}
		if len(c.want) == 0 && len(got) > 0 {
			t.Errorf("%s: %q", label, got)
		}
	}
	if _, err := review.Summarize([]byte(summarized), []byte(`[]`)); !fault.Is(err, fault.Invalid) {
		t.Errorf("a list: %v", err)
	}
}

func words(points []review.Point) (all []string) {
	for _, p := range points {
		text := p.Words()
		if p.Name != "" {
			text += " " + p.Name
		}
		text += ":"
		if p.Before != "" || p.After != "" {
			text += p.Before + ">" + p.After
		}
		if p.Note != "" {
			text += " (" + p.Note + ")"
		}
		all = append(all, text)
	}
	return all
}

// anyDocument draws a document of few values, so that two have some in common.
func anyDocument(t *rapid.T, label string) []byte {
	pick := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	inputs := func() (all []map[string]any) {
		for range rapid.IntRange(0, 2).Draw(t, label) {
			all = append(all, map[string]any{"name": pick("A", "B"), "value": pick("", "x"), "isSecret": pick("", "y") == "y"})
		}
		return all
	}
	doc := map[string]any{"name": "com.example/a", "version": pick("1.0.0", "2.0.0"), "title": pick("a", "b")}
	var remotes, packages []any
	for range rapid.IntRange(0, 3).Draw(t, label) {
		remotes = append(remotes, map[string]any{
			"type": pick("sse", "streamable-http"), "url": "https://" + pick("a", "b", "c") + ".example.com/" + pick("", "x"), "headers": inputs(),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, label) {
		packages = append(packages, map[string]any{
			"registryType": pick("npm", "pypi"), "identifier": pick("a", "b"), "version": pick("1.0.0", "2.0.0"),
			"runtimeHint": pick("", "npx"), "runtimeArguments": inputs(), "environmentVariables": inputs(),
		})
	}
	doc["remotes"], doc["packages"], doc["_meta"] = remotes, packages, map[string]any{"x": pick("1", "2")}
	text, err := json.Marshal(doc)
	must.Succeed(t, err)
	return text
}

// TestSummaryProperties checks that a summary has a point for each property that differs, none for
// equal documents, every new host, and the most dangerous first.
func TestSummaryProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyDocument(t, "before"), anyDocument(t, "after")
		points, err := review.Summarize(before, after)
		diff, diffErr := review.Diff(before, after)
		if err != nil || diffErr != nil {
			t.Fatal(err, diffErr)
		}
		if (len(points) == 0) != (len(diff) == 0) {
			t.Fatalf("%d points of %d differences: %s to %s", len(points), len(diff), before, after)
		}
		text := fmt.Sprint(words(points))
		for _, host := range []string{"https://a.example.com", "https://b.example.com", "https://c.example.com"} {
			isNew := strings.Contains(string(after), host) && !strings.Contains(string(before), host)
			if isNew && !strings.Contains(text, host) {
				t.Fatalf("%s is not in %s", host, text)
			}
		}
		for i := 1; i < len(points); i++ {
			a, b := points[i-1], points[i]
			if a.Removed == b.Removed && a.Topic > b.Topic || a.Removed && !b.Removed {
				t.Fatalf("%+v comes before %+v", a, b)
			}
		}
	})
}

// TestUnifiedProperties checks that the kept and removed lines of a difference are those of the
// document before, the kept and added ones those after, and that parts are the whole line.
func TestUnifiedProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyDocument(t, "before"), anyDocument(t, "after")
		whole, _, err := review.Unified([]byte(`{}`), before)
		must.Succeed(t, err)
		known := map[string]int{}
		for _, l := range whole {
			known[l.Text()]++
		}
		lines, meta, err := review.Unified(before, after)
		must.Succeed(t, err)
		diff, _ := review.Diff(before, after)
		inMeta := slices.ContainsFunc(diff, review.Difference.IsMeta)
		if (len(meta) > 0) != inMeta || (len(lines) > 0) != slices.ContainsFunc(diff, func(d review.Difference) bool { return !d.IsMeta() }) {
			t.Fatalf("%d lines and %d of _meta for %v", len(lines), len(meta), diff)
		}
		for _, l := range lines {
			if l.Kind == review.LineRemoved || l.Kind == review.LineKept {
				if known[l.Text()]--; known[l.Text()] < 0 {
					t.Fatalf("the document before has no line %q", l.Text())
				}
			}
		}
	})
}

// TestUnified checks a difference line by line.
func TestUnified(t *testing.T) {
	t.Parallel()
	after := strings.NewReplacer("a.example.com", "b.example.com", `"title":"A",`, `"_meta":{"x":1},`).Replace(summarized)
	main, meta, err := review.Unified([]byte(summarized), []byte(after))
	must.Succeed(t, err)
	var got []string
	for _, l := range main {
		text := []string{" ", "-", "+", "…"}[l.Kind]
		for _, p := range l.Parts {
			if p.Marked {
				text += "[" + p.Text + "]"
			} else {
				text += p.Text
			}
		}
		got = append(got, text)
	}
	want := []string{
		"…", `       }`, `     ],`, `     "type": "sse",`, `-    "url": "https://[a.example.com]/mcp"`,
		`+    "url": "https://[b.example.com]/mcp"`, `   }`, ` ]`, ` "packages": [`, "…", `   "url": "https://github.com/example/a"`,
		` }`, ` "name": "com.example/a"`, `-"title": "A"`, ` "version": "1.0.0"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the lines are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(meta) != 3 || meta[0].Kind != review.LineAdded {
		t.Errorf("_meta is %+v", meta)
	}
	for _, bad := range []string{`[]`, `{`} {
		if _, _, err := review.Unified([]byte(bad), []byte(`{}`)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// allocated returns how many bytes a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestSummaryOfManyRemotes checks that the work grows as a document does: anybody who may publish sends one, and a
// transaction waits for its summary. The names of the secrets are still said of each host, also of one with a variable.
func TestSummaryOfManyRemotes(t *testing.T) {
	summarize := func(n int) []review.Point {
		var remotes []string
		for i := range n {
			remotes = append(remotes, fmt.Sprintf(`{"type":"sse","url":"https://{x}.h%d.example.com/mcp","headers":[{"name":"X-%d","isSecret":true}]}`, i, i))
		}
		points, err := review.Summarize(nil, []byte(`{"remotes":[`+strings.Join(remotes, ",")+`]}`))
		must.Succeed(t, err)
		return points
	}
	if p := summarize(2)[1]; p.Name != "https://{x}.h1.example.com" || p.Note != "secret X-1 goes there" {
		t.Errorf("the second host has %+v", p)
	}
	few := allocated(func() { summarize(300) })
	if many := allocated(func() { summarize(1200) }); many > 8*few {
		t.Errorf("four times as many remotes take %d times as much memory", many/few)
	}
}
