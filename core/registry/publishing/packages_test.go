package publishing_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	notOwned = fault.New(fault.Invalid, "does not claim the server").WithCode(ownership.CodeNotOwned)
	noPlugin = fault.New(fault.Unsupported, "types are npm").WithCode(ownership.CodeUnsupportedType)
	away     = fault.New(fault.Unavailable, "answered 503").WithCode(ownership.CodeCheckFailed).After(7 * time.Second)
	defect   = fault.New(fault.Internal, "nil map")
)

func TestPackageChecks(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		checks   publishing.Checks
		refusals map[string]error
		kind     fault.Kind
		code     fault.Code
		says     []string // in the sentence, or in the warning where it passes
		passes   bool
	}{
		"owned": {passes: true},
		"not owned": {
			refusals: map[string]error{"b": notOwned}, kind: fault.Invalid, code: registry.CodeRules, says: []string{
				"packages[1]", "does not claim",
			},
		},
		"no plugin": {
			refusals: map[string]error{"a": noPlugin}, kind: fault.Invalid, code: registry.CodeRules, says: []string{
				"packages[0]", "types are npm",
			},
		},
		"two not owned": {
			refusals: map[string]error{"a": notOwned, "b": noPlugin}, kind: fault.Invalid, code: registry.CodeRules,
			says: []string{"packages[0]", "packages[1]"},
		},
		"registry away": {
			refusals: map[string]error{"b": away}, kind: fault.Unavailable, code: ownership.CodeCheckFailed,
			says: []string{"packages[1], the npm package b,", "answered 503", "later"},
		},
		"away and not owned": {
			refusals: map[string]error{"a": away, "b": notOwned}, kind: fault.Invalid, code: registry.CodeRules,
			says: []string{"packages[1]"},
		},
		"a defect": {refusals: map[string]error{"a": defect}, kind: fault.Internal},
		"warned, not owned": {
			checks: publishing.ChecksWarn, refusals: map[string]error{"b": notOwned}, passes: true, says: []string{
				"packages[1]", "does not claim",
			},
		},
		"warned, registry away": {
			checks: publishing.ChecksWarn, refusals: map[string]error{"a": away}, passes: true, says: []string{
				"packages[0]", "answered 503",
			},
		},
		"off": {checks: publishing.ChecksOff, refusals: map[string]error{"a": notOwned}, passes: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, publishing.Config{Checks: c.checks}, registry.ActionPublish)
			w.checker.refusals = c.refusals
			_, err := w.Publish(t.Context(),
				newRequest(document("1.0.0", `"packages":[`+npmPackage("a")+","+npmPackage("b")+"]")))
			said := w.authority.acts[0].Warning
			if !c.passes {
				f, ok := fault.As(err)
				if !ok || f.Kind != c.kind || f.Code != c.code || f.RetryAfter != retryAfter(c.kind) {
					t.Fatalf("Publish = %v (%+v), want kind %s and code %q", err, f, c.kind, c.code)
				}
				if f.Kind == fault.Unavailable && strings.Count(f.Error(), away.Message) != 1 {
					t.Errorf("%q says the same twice", f)
				}
				said = f.Message
			} else if err != nil || (said == "") != (len(c.says) == 0) {
				t.Fatalf("Publish = %v with warning %q", err, said)
			}
			for _, part := range c.says {
				if !strings.Contains(said, part) {
					t.Errorf("%q does not say %q", said, part)
				}
			}
		})
	}
}

func retryAfter(k fault.Kind) time.Duration {
	if k == fault.Unavailable {
		return away.RetryAfter
	}
	return 0
}

func TestEqualPackagesAreCheckedOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	many := slices.Repeat([]string{npmPackage("a")}, 100)
	many = append(many,
		`{"registryType":"mcpb","registryBaseUrl":"https://example.com","identifier":"b","fileSha256":"`+
			strings.Repeat("0", 64)+`","transport":{"type":"stdio"}}`)
	if _, err := w.Publish(t.Context(),
		newRequest(document("1.0.0", `"packages":[`+strings.Join(many, ",")+"]"))); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(w.checker.claims, func(a, b ownership.Claim) int {
		return strings.Compare(a.Identifier, b.Identifier)
	})
	want := []ownership.Claim{
		{ServerName: serverName, RegistryType: "npm", Identifier: "a", Version: "1.0.0"},
		{
			ServerName: serverName, RegistryType: "mcpb", RegistryBaseURL: "https://example.com", Identifier: "b",
			FileSHA256: strings.Repeat("0", 64),
		},
	}
	if !slices.Equal(w.checker.claims, want) {
		t.Errorf("checked %+v, want %+v", w.checker.claims, want)
	}
}

// stalledChecker is a checker of a registry that never answers within the time of a check.
type stalledChecker struct{}

func (stalledChecker) Check(ctx context.Context, _ ownership.Claim) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	<-ctx.Done()
	return fault.Wrap(fault.Unavailable, "no answer", ctx.Err()).WithCode(ownership.CodeCheckFailed)
}

func (stalledChecker) Types() []string { return []string{"npm"} }

// TestManyPackagesTakeBoundedTime wants a document of thousands of packages to be refused before
// its caller gives up.
func TestManyPackagesTakeBoundedTime(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 5000 {
		many = append(many, npmPackage("p"+strconv.Itoa(i)))
	}
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, publishing.Config{}, registry.ActionPublish)
		ports := w.ports(publishing.Config{})
		ports.Ownership = stalledChecker{}
		w.Publisher = publishing.New(publishing.Config{}, ports)
		p := w
		begun := time.Now()
		_, err := p.Publish(t.Context(), newRequest(document("1.0.0", `"packages":[`+strings.Join(many, ",")+"]")))
		if took := time.Since(begun); !fault.Is(err, fault.Unavailable) || took > 40*time.Second {
			t.Errorf("Publish = %.100v after %v, want a fault of kind Unavailable within 40 s", err, took)
		}
	})
}

func TestReplaceChecksPackagesToo(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
	w.publishAll(t, "1.0.0")
	w.checker.refusals["a"] = notOwned
	_, err := w.Replace(t.Context(), newRequest(document("1.0.0", `"packages":[`+npmPackage("a")+"]")),
		newTarget("1.0.0"))
	if f, ok := fault.As(err); !ok || f.Code != registry.CodeRules {
		t.Errorf("Replace = %v, want code %s", err, registry.CodeRules)
	}
}

func TestWithoutAnyChecker(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	ports := w.ports(publishing.Config{})
	ports.Ownership = nil
	w.Publisher = publishing.New(publishing.Config{}, ports)
	p := w
	if _, err := p.Publish(t.Context(), newRequest(document("1.0.0"))); err != nil {
		t.Errorf("without packages: %v, want none", err)
	}
	_, err := p.Publish(t.Context(), newRequest(document("2.0.0", `"packages":[`+npmPackage("a")+"]")))
	if f, ok := fault.As(err); !ok || f.Code != registry.CodeRules {
		t.Errorf("with a package: %v, want code %s", err, registry.CodeRules)
	}
}

func TestParseChecks(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]publishing.Checks{
		"enforce": publishing.ChecksEnforce, "warn": publishing.ChecksWarn, "off": publishing.ChecksOff,
	} {
		if got, err := publishing.ParseChecks(s); got != want || err != nil {
			t.Errorf("ParseChecks(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "on", "Enforce"} {
		if _, err := publishing.ParseChecks(s); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseChecks(%q) = %v, want a fault of kind Invalid", s, err)
		}
	}
}

// TestReviewHasChecks checks that a reviewer sees the outcome of each package check (contract
// C-12).
func TestReviewHasChecks(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{Review: true, PendingMax: 5, Checks: publishing.ChecksWarn},
		registry.ActionPublish)
	w.checker.refusals["b"] = notOwned
	w.checker.refusals["c"] = fault.New(fault.Unavailable, "the package registry is away")
	w.checker.refusals["d"] = fault.New(fault.Unsupported, "no checker")
	packages := []string{npmPackage("a"), npmPackage("b"), npmPackage("c"), npmPackage("d"), npmPackage("a")}
	o, err := w.Publish(t.Context(), newRequest(document("1.0.0", `"packages":[`+strings.Join(packages, ",")+"]")))
	if err != nil || o.Pending == "" {
		t.Fatalf("Publish = %+v, %v, want it pending", o, err)
	}
	r, err := w.reviews.Get(t.Context(), o.Pending)
	must.Succeed(t, err)
	want := []review.CheckState{
		review.CheckPassed, review.CheckFailed, review.CheckSkipped, review.CheckSkipped, review.CheckPassed,
	}
	if len(r.Checks) != len(want) {
		t.Fatalf("the checks are %+v, want one for each package", r.Checks)
	}
	for i, c := range r.Checks {
		if c.State != want[i] || c.RegistryType != "npm" || c.Identifier != []string{"a", "b", "c", "d", "a"}[i] ||
			(c.Message == "") != (c.State == review.CheckPassed) {
			t.Errorf("check %d is %+v, want %s", i, c, want[i])
		}
	}
}
