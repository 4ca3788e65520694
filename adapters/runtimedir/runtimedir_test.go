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
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
	"github.com/tollgate-dev/tollgate/test/must"
)

var _ rulesource.Source = (*Directory)(nil)

// TestBadFiles reads files that are named after their defect. Their comments list the wanted
// faults, in any order.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("testdata/bad has no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			must.Succeed(t, err)
			source, _ := parseFile("f", content)
			_, err = ruleset.Compile([]ruleset.Source{source}, ruleset.Options{})
			var faults ruleset.Faults
			if !errors.As(err, &faults) {
				t.Fatal("the file is accepted")
			}
			var wanted []string
			for line := range strings.Lines(string(content)) {
				if want, ok := strings.CutPrefix(strings.TrimSpace(line), "# want "); ok {
					wanted = append(wanted, "f:"+want)
				}
			}
			wantFaults(t, faults, wanted)
		})
	}
}

func wantFaults(t *testing.T, faults ruleset.Faults, wanted []string) {
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

func domainNames(t *testing.T, sources []ruleset.Source) []string {
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

func TestValidFiles(t *testing.T) {
	tests := map[string]struct {
		config Config
		want   []string
	}{
		"all files": {Config{Root: "testdata", AppDirectory: "good"}, []string{"dotted", "shop", "nested"}},
		"without dot files": {
			Config{Root: "testdata", AppDirectory: "good", IgnoreDotFiles: true}, []string{"shop", "nested"},
		},
		"a subdirectory": {
			Config{Root: "testdata", Subdirectory: "good", AppDirectory: "nested"}, []string{"nested"},
		},
		"one folder": {Config{Root: "testdata/good/nested"}, []string{"nested"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sources, err := New(test.config, discardLog()).Load(t.Context())
			must.Succeed(t, err)
			if got := domainNames(t, sources); !slices.Equal(got, test.want) {
				t.Errorf("domains %q, want %q", got, test.want)
			}
		})
	}
}

func TestEverythingIsRead(t *testing.T) {
	sources, err := New(Config{Root: "testdata/good", IgnoreDotFiles: true}, discardLog()).Load(t.Context())
	must.Succeed(t, err)
	set, err := ruleset.Compile(sources, ruleset.Options{})
	must.Succeed(t, err)
	limit := ratelimit.Limit{RequestsPerUnit: 10, Unit: ratelimit.Minute}
	r := set.Match("shop", []ratelimit.Entry{{Key: "user", Value: "7"}})
	if r == nil || r.Limit != limit || !r.Shadow || !r.Quota || r.Name != "base" {
		t.Errorf("got %+v", r)
	}
	metadata := ratelimit.Metadata{
		"team": jsonvalue.Text("payments"),
		"tier": jsonvalue.Object{
			"level": jsonvalue.Number(2), "ratio": jsonvalue.Number(0.5), "gold": jsonvalue.Flag(true),
			"since": jsonvalue.Text("2020-01-02"), "none": nil,
		},
		"also": jsonvalue.List{jsonvalue.Text("payments"), jsonvalue.Number(1)},
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
	if _, err := New(Config{Root: root, AppDirectory: "config"}, discardLog()).Load(t.Context()); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("Load of a missing directory returned %v", err)
	}
	sources, err := New(Config{Root: root}, discardLog()).Load(t.Context())
	if err != nil || len(sources) != 0 {
		t.Errorf("Load of an empty directory returned %v, %v", sources, err)
	}
}

// mountConfigMap creates the files of a mounted config map: they are links into ..data, which is a
// link to a folder with a date.
func mountConfigMap(t *testing.T, root, domain string) {
	t.Helper()
	data := filepath.Join(root, "..2026_"+domain)
	writeFile(t, filepath.Join(data, "rules.yaml"), "domain: "+domain)
	swapLink(t, filepath.Base(data), filepath.Join(root, "..data"))
	swapLink(t, filepath.Join("..data", "rules.yaml"), filepath.Join(root, "rules.yaml"))
}

func TestLinksAreFollowedOnce(t *testing.T) {
	root := t.TempDir()
	mountConfigMap(t, root, "mounted")
	writeFile(t, filepath.Join(root, "a", "own.yaml"), "domain: own")
	swapLink(t, "a", filepath.Join(root, "b"))
	swapLink(t, root, filepath.Join(root, "a", "loop"))
	sources, err := New(Config{Root: root}, discardLog()).Load(t.Context())
	must.Succeed(t, err)
	got := domainNames(t, sources)
	slices.Sort(got)
	if !slices.Equal(slices.Compact(got), []string{"mounted", "own"}) || len(sources) != 2 {
		t.Errorf("domains %q", got)
	}
}

func TestUnreadableFileHasAFault(t *testing.T) {
	root := t.TempDir()
	swapLink(t, "nowhere", filepath.Join(root, "broken.yaml"))
	writeFile(t, filepath.Join(root, "large.yaml"), "#"+strings.Repeat(" ", maxFileSize))
	sources, err := New(Config{Root: root}, discardLog()).Load(t.Context())
	must.Succeed(t, err)
	if len(sources) != 2 {
		t.Fatalf("%d sources, want 2", len(sources))
	}
	for _, s := range sources {
		if len(s.Faults) != 1 || !strings.Contains(s.Faults[0].String(), ".yaml: cannot be read: ") {
			t.Errorf("faults %v", s.Faults)
		}
	}
}

func TestConfigPath(t *testing.T) {
	if (Config{}).Validate() == nil || (Config{Root: "x"}).Validate() != nil {
		t.Error("Validate does not check the root")
	}
	if got := (Config{Root: "/a", Subdirectory: "b", AppDirectory: "c"}).Path(); got != "/a/b/c" {
		t.Errorf("path %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml"} {
		files, err := filepath.Glob(pattern)
		must.Succeed(f, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			must.Succeed(f, err)
			f.Add(content)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		s, _ := parseFile("f", content)
		set, err := ruleset.Compile([]ruleset.Source{s}, ruleset.Options{})
		switch {
		case err == nil && len(s.Faults) > 0:
			t.Error("a source with faults is accepted")
		case err == nil && !set.HasDomain(ratelimit.Domain(s.Domain.Value)):
			t.Error("the compiled rules do not have the domain of the file")
		}
	})
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o750))
	must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
}

// swapLink creates or replaces a symbolic link.
func swapLink(t *testing.T, target, path string) {
	t.Helper()
	must.Succeed(t, os.Symlink(target, path+".new"))
	must.Succeed(t, os.Rename(path+".new", path))
}
