package access_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
)

// registryOf draws servers with addresses that meet often.
type registryOf struct {
	chance
	listed map[string]access.Listing
}

func (r registryOf) url() string {
	host := r.one("a.example", "b.example", "a.example:8443", fmt.Sprintf("h%d.example", r.IntN(400)))
	return r.one("https", "https", "http") + "://" + host +
		r.one("", "/", "/x", "/x/y", "/x/y/z", "/xx", "/x-y", "/X", fmt.Sprintf("/s%d/mcp", r.IntN(400)), "/%2f", "/{id}")
}

// change makes one server another one: a publication, other addresses, a quarantine, a deletion, or none
// of it at all any more.
func (r registryOf) change(t *testing.T) access.Listing {
	name := fmt.Sprintf("n%d.example/s%d", r.IntN(30), r.IntN(30))
	l := access.Listing{Name: mustName(t, name)}
	for _, urls := range []*[]string{&l.Remotes, &l.Withdrawn} {
		for range r.IntN(3) {
			*urls = append(*urls, r.url())
		}
	}
	before, known := r.listed[name]
	switch r.IntN(6) {
	case 0: // a quarantine
		l.Withdrawn = slices.Concat(before.Remotes, before.Withdrawn)
		l.Remotes, l.Quarantined = nil, true
	case 1: // a deletion
		l.Withdrawn = slices.Concat(before.Remotes, before.Withdrawn)
		l.Remotes, l.Deleted = nil, true
	case 2: // as it was, or back
		if known {
			l = before
			l.Quarantined, l.Deleted = false, false
		}
	case 3: // forgotten
		delete(r.listed, name)
		return access.Listing{Name: l.Name, Deleted: true}
	}
	r.listed[name] = l
	return l
}

func (r registryOf) all() (servers []access.Listing) {
	for _, l := range r.listed {
		servers = append(servers, l)
	}
	return servers
}

func (r registryOf) question(subject *access.Subject) *access.Question {
	q := &access.Question{Subject: subject, At: noon, Call: access.NewCall("tools/call", "t")}
	if r.IntN(3) == 0 {
		q.Server = fmt.Sprintf("n%d.example/s%d", r.IntN(31), r.IntN(30))
		return q
	}
	scheme, rest, _ := strings.Cut(r.url(), "://")
	host, path, _ := strings.Cut(rest, "/")
	q.Address = access.Address{Scheme: scheme, Host: host, Path: strings.TrimSuffix("/"+path, "/") + r.one("", "/", "/y", "/y/z", "/mcp?x=/y")}
	return q
}

// naiveByAddress returns the names of the servers that an address leads to, each with how long its path is,
// from their URLs as they are written.
func (r registryOf) naiveByAddress(a access.Address) map[string]int {
	found := map[string]int{}
	path, _, _ := strings.Cut(a.Path, "?")
	path = strings.TrimSuffix(path, "/")
	for name, l := range r.listed {
		for _, url := range slices.Concat(l.Remotes, l.Withdrawn) {
			url, variable, _ := strings.Cut(url, "{")
			if variable != "" {
				url = url[:strings.LastIndexByte(url, '/')]
			}
			base, known := strings.CutPrefix(strings.TrimSuffix(url, "/"), a.Scheme+"://"+a.Host)
			if !known || strings.Contains(path, "%2f") || strings.ContainsAny(path, "{}") || base != "" && base[0] != '/' {
				continue
			}
			base, path := strings.ToLower(base), strings.ToLower(path)
			if path == base || strings.HasPrefix(path, base+"/") {
				found[name] = max(found[name], len(base))
			}
		}
	}
	return found
}

// TestPatchesEqualACompilation changes servers and rules thousands of times. What a snapshot has then, and
// how it decides, is what a compilation of all has, and the address leads to the servers that a naive
// search finds.
func TestPatchesEqualACompilation(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	r := registryOf{chance{rand.New(rand.NewPCG(seed, 2))}, map[string]access.Listing{}}
	o := access.Options{Unlisted: access.Allow, Default: access.Allow}
	var rules []access.Rule
	s := access.Compile(o, rules, nil)
	subject := access.NewSubject(access.Member{Kind: access.Person, ID: "p0@x.example"})
	byReason := map[access.Reason]int{}
	for step := range 3000 {
		var changes []access.Listing
		for range 1 + r.IntN(3) {
			changes = append(changes, r.change(t))
		}
		if step == 0 {
			for range 2000 { // at once
				changes = append(changes, r.change(t))
			}
		}
		s = s.With(changes)
		if step%50 == 0 {
			rules = nil
			for i := range r.IntN(10) {
				rules = append(rules, mustRule(t, rule{
					"name": audit.Text(fmt.Sprint("r", i)), "effect": audit.Text(r.one("allow", "deny")),
					"servers": list(fmt.Sprintf("n%d.*", r.IntN(30)), fmt.Sprintf("n%d.example/s%d", r.IntN(30), r.IntN(30))),
				}))
			}
			s = s.WithRules(rules)
			fresh := access.Compile(o, rules, r.all())
			if got, want := s.Dump(), fresh.Dump(); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: the snapshot has\n%s\nwant\n%s", seed, step, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for range 100 {
				q := r.question(&subject)
				d := s.Decide(q)
				byReason[d.Reason]++
				if want := fresh.Decide(q); d != want {
					t.Fatalf("seed %d, step %d: %+v is decided as %+v, want %+v", seed, step, q, d, want)
				}
			}
		}
		q := r.question(&subject)
		if q.Server != "" {
			continue
		}
		d, naive := s.Decide(q), r.naiveByAddress(q.Address)
		if _, found := naive[d.Server]; found != (d.Server != "") || len(naive) > 0 != found {
			t.Fatalf("seed %d, step %d: %+v leads to %q, want one of %v", seed, step, q.Address, d.Server, naive)
		}
		for name := range naive { // each of them must allow the call
			by := s.Decide(&access.Question{Subject: &subject, At: noon, Call: q.Call, Server: name})
			if by.Effect == access.Deny && d.Effect == access.Allow {
				t.Fatalf("seed %d, step %d: %+v is allowed, and not for %s", seed, step, q.Address, name)
			}
		}
	}
	for _, reason := range []access.Reason{access.ByRule, access.ByDefault, access.Quarantined, access.NotListed, access.Disputed} {
		if byReason[reason] < 20 {
			t.Errorf("seed %d: only %d decisions by %s", seed, byReason[reason], reason)
		}
	}
}

// TestPatchesShareTheRest: a change of one server makes new what has the server and its addresses, and a
// change that changes nothing about decisions makes nothing new; rules are compiled only if they change.
func TestPatchesShareTheRest(t *testing.T) {
	t.Parallel()
	servers := make([]access.Listing, 20_000)
	for i := range servers {
		servers[i] = access.Listing{
			Name: mustName(t, fmt.Sprintf("com.example/s%05d", i)), Remotes: []string{fmt.Sprintf("https://one.example/s%05d", i)},
		}
	}
	before := access.Compile(access.Options{}, []access.Rule{mustRule(t, nil)}, servers)
	if before.With(servers[7:9]) != before {
		t.Error("servers that are as they were make another snapshot")
	}
	servers[7].Quarantined = true
	servers[12_345].Remotes = []string{"https://two.example/"}
	after := before.With([]access.Listing{servers[7], servers[12_345]})
	if all, own := after.Chunks(before); all < 100 || own > 6 {
		t.Errorf("%d of %d chunks are new", own, all)
	}
	if !after.SharesRules(before) {
		t.Error("a change of servers compiles rules")
	}
	other := after.WithRules(nil)
	if _, own := other.Chunks(after); own != 0 || other.SharesRules(after) {
		t.Errorf("a change of rules makes %d chunks of servers new", own)
	}
}

// TestRulesAreFoundByTheirTools: a decision looks at few of the rules for all servers, however many
// tools each has, and whatever else (contract Z-13).
func TestRulesAreFoundByTheirTools(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]rule{
		"100 tools": {"tools": texts(100, "x%d")}, "101 tools": {"tools": texts(101, "x%d")}, "500 tools": {"tools": texts(500, "x%d")},
		"prefixes":            {"tools": texts(101, "x%d_*")},
		"tools and people":    {"tools": texts(101, "x%d"), "subjects": texts(30, "person:p%d@example.com")},
		"tools, people, more": {"tools": texts(101, "x%d"), "subjects": list("everyone"), "servers": texts(20, "com.e%d/*")},
	} {
		rules := make([]access.Rule, 150)
		for i := range rules {
			fields := rule{"name": audit.Text(fmt.Sprint("r", i)), "subjects": list("everyone"), "servers": list("*")}
			for field, value := range more {
				fields[field] = value
			}
			rules[i] = mustRule(t, fields)
			rules[i].Tools = slices.Clone(rules[i].Tools)
			for n, tool := range rules[i].Tools {
				rules[i].Tools[n] = fmt.Sprintf("r%d_%s", i, tool)
			}
		}
		s := access.Compile(access.Options{}, rules, []access.Listing{{Name: mustName(t, "com.e1/s")}})
		subject := access.NewSubject(access.Member{Kind: access.Person, ID: "p1@example.com", Trust: 3})
		for tool, most := range map[string]int{"r7_x7_": 3, "other": 2, "": 0} {
			q := access.Question{Subject: &subject, Server: "com.e1/s", Call: access.NewCall("tools/call", tool), At: noon}
			if tried := s.Tried(&q); tried > most {
				t.Errorf("%s: a call of %q looks at %d rules", name, tool, tried)
			}
			if d := s.Decide(&q); (d.Rule == "r7") != (tool == "r7_x7_" && name == "prefixes") {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}
