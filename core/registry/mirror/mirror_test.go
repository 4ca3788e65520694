package mirror

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

var epoch = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// address is the URL of another registry.
const address = "https://registry.example.com"

// invalid fails the test unless an error is of the kind fault.Invalid and contains a part.
func invalid(t *testing.T, what string, err error, part string) {
	t.Helper()
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: %v, want fault.Invalid with %q", what, err, part)
	}
}

// TestNames checks the form of the names of mirrors (contract C-60).
func TestNames(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "0", "-", "corp", "corp-2", "all", strings.Repeat("a", 40)} {
		if name, err := ParseName(good); err != nil || string(name) != good {
			t.Errorf("ParseName(%q) = %q, %v", good, name, err)
		}
		if m, err := New(Draft{Name: good, URL: address}, epoch); err != nil || string(m.Name) != good {
			t.Errorf("New with the name %q = %q, %v", good, m.Name, err)
		}
	}
	for _, bad := range []string{"", "Corp", "co rp", "co_rp", "corp\n", "ü", "corp/2", strings.Repeat("a", 41)} {
		_, err := ParseName(bad)
		invalid(t, "ParseName of "+bad, err, "the name of a mirror must have 1 to 40")
		_, err = New(Draft{Name: bad, URL: address}, epoch)
		invalid(t, "New with the name "+bad, err, "the name of a mirror must have 1 to 40")
	}
	if _, err := ParseName(strings.Repeat("x!", 1000)); len(err.Error()) > 200 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// TestNew checks what a mirror has if only the required fields are given, and all that can be
// given.
func TestNew(t *testing.T) {
	t.Parallel()
	now := epoch.In(time.FixedZone("east", 3600)).Add(1500)
	m, err := New(Draft{Name: "corp", URL: address + "/"}, now)
	kept := epoch.Add(time.Microsecond)
	if err != nil || m.URL.Address() != address || m.Interval != time.Hour || m.Review != Pending || m.Lenient ||
		m.CreatedAt != kept {
		t.Errorf("New = %+v, %v", m, err)
	}
	if !reflect.DeepEqual(m.State, State{NextAt: kept}) || m.State.Health() != Waiting {
		t.Errorf("the state of a new mirror is %+v, want a first read at once", m.State)
	}
	for review, want := range map[string]Review{"pending": Pending, "trusted": Trusted} {
		m, err = New(Draft{Name: "corp", URL: address, Interval: time.Minute, Review: review, Flags: Flags{Lenient: true}}, now)
		if err != nil || m.Interval != time.Minute || m.Review != want || !m.Lenient {
			t.Errorf("New with review %s = %+v, %v", review, m, err)
		}
	}
}

// TestNewRefuses checks that each wrong field is named (contract C-60).
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		draft Draft
		part  string
	}{
		{Draft{URL: "ftp://example.com"}, "url must begin with"},
		{Draft{Include: []string{"a*b"}}, "include"},
		{Draft{Exclude: []string{""}}, "exclude"},
		{Draft{Interval: time.Minute - 1}, "interval must be from 1m0s to 168h0m0s"},
		{Draft{Interval: 7*24*time.Hour + 1}, "interval must be"},
		{Draft{Interval: -time.Hour}, "interval must be"},
		{Draft{Review: "never"}, "review must be pending or trusted"},
	} {
		c.draft.Name = "corp"
		if c.draft.URL == "" {
			c.draft.URL = address
		}
		m, err := New(c.draft, epoch)
		invalid(t, fmt.Sprintf("%+v", c.draft), err, c.part)
		if m.Name != "" || m.URL != "" {
			t.Errorf("the mirror of a wrong draft is %+v", m)
		}
	}
	for _, interval := range []time.Duration{MinInterval, MaxInterval} {
		if _, err := New(Draft{Name: "corp", URL: address, Interval: interval}, epoch); err != nil {
			t.Errorf("the interval %s: %v", interval, err)
		}
	}
}

// TestTakes checks which servers a mirror takes: all without patterns, and none that is excluded
// (contract C-60).
func TestTakes(t *testing.T) {
	t.Parallel()
	const one, other = "com.example/a", "com.other/b"
	for _, c := range []struct {
		include, exclude []string
		takes            map[string]bool
	}{
		{nil, nil, map[string]bool{one: true, other: true}},
		{[]string{"com.example/*"}, nil, map[string]bool{one: true, other: false}},
		{[]string{one, other}, nil, map[string]bool{one: true, other: true}},
		{nil, []string{"com.example/*"}, map[string]bool{one: false, other: true}},
		{[]string{"*"}, []string{other}, map[string]bool{one: true, other: false}},
	} {
		m, err := New(Draft{Name: "corp", URL: address, Include: c.include, Exclude: c.exclude}, epoch)
		must.Succeed(t, err)
		for text, want := range c.takes {
			name, err := registry.ParseName(text)
			must.Succeed(t, err)
			wantEqual(t, m.Takes(name), want, "include %q and exclude %q: takes %s", c.include, c.exclude, text)
		}
	}
}

// TestSubmitter checks that the mirror of a submitter is known, and that no person or publisher is
// taken for one (contract C-68).
func TestSubmitter(t *testing.T) {
	t.Parallel()
	m := Mirror{Name: "corp"}
	wantEqual(t, m.Submitter(), "mirror:corp", "the submitter")
	if name, ok := OfSubmitter(m.Submitter()); !ok || name != "corp" {
		t.Errorf("the mirror of the submitter is %q, %t", name, ok)
	}
	for _, key := range []string{
		"", "mirror", "mirror:", "ada", "dns:example.com", "operator", "Mirror:corp", "xmirror:corp",
	} {
		if name, ok := OfSubmitter(key); ok || name != "" {
			t.Errorf("the submitter %q is the mirror %q", key, name)
		}
	}
}
