package runtimedir

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
)

var _ rulesource.Source = (*Directory)(nil)

// TestBadFiles reads files named after their defect; their first lines say
// which faults are wanted, in any order.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source, _ := parse("f", content)
			_, err = ruleset.Compile([]ruleset.Source{source}, ruleset.Options{})
			var faults ruleset.Faults
			if !errors.As(err, &faults) {
				t.Fatal("accepted")
			}
			var wanted []string
			for line := range strings.Lines(string(content)) {
				if want, ok := strings.CutPrefix(strings.TrimSpace(line), "# want "); ok {
					wanted = append(wanted, "f:"+want)
				}
			}
			checkFaults(t, faults, wanted)
		})
	}
}

func checkFaults(t *testing.T, faults ruleset.Faults, wanted []string) {
	t.Helper()
	if len(faults) != len(wanted) {
		t.Errorf("%d faults, want %d", len(faults), len(wanted))
	}
	for _, f := range faults {
		if !slices.ContainsFunc(wanted, func(want string) bool { return strings.HasPrefix(f.String(), want) }) {
			t.Errorf("got %q, want one of %q", f, wanted)
		}
	}
}

func domains(t *testing.T, sources []ruleset.Source) []string {
	t.Helper()
	var names []string
	for _, s := range sources {
		if len(s.Faults) > 0 {
			t.Errorf("faults %v", s.Faults)
		}
		names = append(names, s.Domain.Value)
	}
	return names
}

func TestGoodFiles(t *testing.T) {
	tests := map[string]struct {
		config Config
		want   []string
	}{
		"all":              {Config{Root: "testdata", AppDirectory: "good"}, []string{"dotted", "shop", "nested"}},
		"without dots":     {Config{Root: "testdata", AppDirectory: "good", IgnoreDotFiles: true}, []string{"shop", "nested"}},
		"a subdirectory":   {Config{Root: "testdata", Subdirectory: "good", AppDirectory: "nested"}, []string{"nested"}},
		"everything at it": {Config{Root: "testdata/good/nested"}, []string{"nested"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sources, err := New(test.config, unheard()).Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := domains(t, sources); !slices.Equal(got, test.want) {
				t.Errorf("domains %q, want %q", got, test.want)
			}
		})
	}
}

func TestEverythingIsRead(t *testing.T) {
	sources, err := New(Config{Root: "testdata/good", IgnoreDotFiles: true}, unheard()).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set, err := ruleset.Compile(sources, ruleset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	limit := ratelimit.Limit{RequestsPerUnit: 10, Unit: ratelimit.Minute}
	r := set.Match("shop", []ratelimit.Entry{{Key: "user", Value: "7"}})
	if r == nil || r.Limit != limit || !r.Shadow || !r.Quota || r.Name != "base" {
		t.Errorf("got %+v", r)
	}
	metadata := ratelimit.Metadata{
		"team": "payments",
		"tier": map[string]any{"level": 2.0, "ratio": 0.5, "gold": true, "since": "2020-01-02", "none": nil},
		"also": []any{"payments", 1.0},
	}
	if r != nil && !reflect.DeepEqual(r.Metadata, metadata) {
		t.Errorf("metadata %#v", r.Metadata)
	}
	r = set.Match("shop", []ratelimit.Entry{{Key: "user", Value: "7"}, {Key: "path", Value: "/a/b"}})
	if r == nil || r.Limit != limit || !slices.Equal(r.Shared, []string{"", "/a/*"}) {
		t.Errorf("got %+v", r)
	}
	r = set.Match("shop", []ratelimit.Entry{{Key: "merged", Value: "x"}})
	if r == nil || r.Limit != limit || r.Name != "other" || !slices.Equal(r.Replaces, []ratelimit.Name{"base"}) {
		t.Errorf("got %+v", r)
	}
}

func TestMissingAndEmptyDirectory(t *testing.T) {
	root := t.TempDir()
	if _, err := New(Config{Root: root, AppDirectory: "config"}, unheard()).Load(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("missing: %v", err)
	}
	sources, err := New(Config{Root: root}, unheard()).Load(t.Context())
	if err != nil || len(sources) != 0 {
		t.Errorf("empty: %v, %v", sources, err)
	}
}

// kubernetes lays out a mounted config map: files are links into ..data, which
// is a link to a folder with a date.
func kubernetes(t *testing.T, root, domain string) {
	t.Helper()
	data := filepath.Join(root, "..2026_"+domain)
	write(t, filepath.Join(data, "rules.yaml"), "domain: "+domain)
	link(t, filepath.Base(data), filepath.Join(root, "..data"))
	link(t, filepath.Join("..data", "rules.yaml"), filepath.Join(root, "rules.yaml"))
}

func TestLinksAreFollowedOnce(t *testing.T) {
	root := t.TempDir()
	kubernetes(t, root, "mounted")
	write(t, filepath.Join(root, "a", "own.yaml"), "domain: own")
	link(t, "a", filepath.Join(root, "b"))
	link(t, root, filepath.Join(root, "a", "loop"))
	sources, err := New(Config{Root: root}, unheard()).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := domains(t, sources)
	slices.Sort(got)
	if !slices.Equal(slices.Compact(got), []string{"mounted", "own"}) || len(sources) != 2 {
		t.Errorf("domains %q", got)
	}
}

func TestUnreadableFileIsAFault(t *testing.T) {
	root := t.TempDir()
	link(t, "nowhere", filepath.Join(root, "broken.yaml"))
	write(t, filepath.Join(root, "large.yaml"), "#"+strings.Repeat(" ", maxFileSize))
	sources, err := New(Config{Root: root}, unheard()).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) != 2 {
		t.Fatalf("%d sources, want 2", len(sources))
	}
	for _, s := range sources {
		if len(s.Faults) != 1 || !strings.Contains(s.Faults[0].String(), ".yaml: cannot be read: ") {
			t.Errorf("faults %v", s.Faults)
		}
	}
}

func TestConfig(t *testing.T) {
	if (Config{}).Validate() == nil || (Config{Root: "x"}).Validate() != nil {
		t.Error("the root is not checked")
	}
	if got := (Config{Root: "/a", Subdirectory: "b", AppDirectory: "c"}).Path(); got != "/a/b/c" {
		t.Errorf("path %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(content)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		s, _ := parse("f", content)
		set, err := ruleset.Compile([]ruleset.Source{s}, ruleset.Options{})
		switch {
		case err == nil && len(s.Faults) > 0:
			t.Error("faults are accepted")
		case err == nil && !set.HasDomain(ratelimit.Domain(s.Domain.Value)):
			t.Error("the domain is lost")
		}
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// link makes or swaps a symbolic link.
func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
