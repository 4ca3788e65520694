package allowlist_test

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
)

// This file compares addresses with entries as clients do. It shares no code with the package.

// webAddress is an address as the URL Standard reads it, as far as an address of a server needs it.
type webAddress struct{ scheme, host, port, path, search string }

func parseWebAddress(text string) (a webAddress, ok bool) {
	text = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.TrimSpace(text))
	text, _, _ = strings.Cut(text, "#")
	a.scheme, text, ok = strings.Cut(text, "://")
	a.scheme = strings.ToLower(a.scheme)
	text, query, _ := strings.Cut(text, "?")
	if query != "" {
		a.search = "?" + query
	}
	a.host, a.path, _ = strings.Cut(strings.ReplaceAll(text, `\`, "/"), "/")
	a.host = strings.ToLower(a.host[strings.LastIndex(a.host, "@")+1:])
	if at := strings.LastIndex(a.host, ":"); at > strings.LastIndex(a.host, "]") {
		a.host, a.port = a.host[:at], a.host[at+1:]
	}
	if a.port == map[string]string{"https": "443", "http": "80"}[a.scheme] {
		a.port = ""
	}
	a.host = strings.TrimSuffix(a.host, ".")
	plain := strings.NewReplacer("%2e", ".", "%2E", ".").Replace(a.path)
	if parts := strings.Split(plain, "/"); slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		a.path = strings.TrimPrefix(path.Clean("/"+plain), "/")
	}
	a.path = "/" + a.path
	return a, ok && a.host != ""
}

func (a webAddress) String() string {
	text := a.scheme + "://" + a.host
	if a.port != "" {
		text += ":" + a.port
	}
	return text + a.path + a.search
}

// matchesText reports whether a pattern, whose "*" are any text, matches a text.
func matchesText(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == text
	}
	rest, begins := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:last] {
		_, after, found := strings.Cut(rest, part)
		rest, begins = after, begins && found
	}
	return begins && strings.HasSuffix(rest, parts[last])
}

// claudeAllows reports whether Claude Code takes an entry for an address (npm package
// @anthropic-ai/claude-code-linux-x64 2.1.332, the function that compares a serverUrl).
func claudeAllows(entry, address string) bool {
	server, ok := parseWebAddress(address)
	pattern, known := parseWebAddress(entry)
	switch {
	case entry == "*":
		return true
	case !ok || !known:
		return false
	case pattern.scheme != "*" && pattern.scheme != server.scheme, !matchesText(pattern.host, server.host):
		return false
	case pattern.port != server.port && pattern.port != "*" && (pattern.port != "" || !strings.Contains(pattern.host, "*")):
		return false
	case pattern.path == "/" && pattern.search == "" && !strings.HasSuffix(entry, "/"): // no path
		return true
	}
	return matchesText(pattern.path+pattern.search, server.path+server.search)
}

// claudeDenies is claudeAllows for an entry that denies: it matches an address without its query,
// and without or with a slash at the end, too.
func claudeDenies(entry, address string) bool {
	if claudeAllows(entry, address) {
		return true
	}
	server, ok := parseWebAddress(address)
	pattern, known := parseWebAddress(entry)
	if !ok || !known {
		return false
	}
	server.search = ""
	plain := strings.TrimRight(server.String(), "/")
	end := ""
	if pattern.search == "" && !strings.Contains(pattern.path, "*") {
		end = pattern.path[len(strings.TrimRight(pattern.path, "/")):]
	}
	return slices.ContainsFunc([]string{server.String(), plain, plain + end}, func(text string) bool {
		return claudeAllows(entry, text)
	})
}

// copilotMatches is the rule of GitHub Copilot, in the words of the schema of its managed settings
// (npm package @github/copilot-linux-x64 1.0.102): "Supports '*' wildcards anywhere; the scheme and
// host are matched case-insensitively, the path case-sensitively. A pattern with no path matches
// any path." Whether a slash alone is a path it does not say: both are tried.
func copilotMatches(slashIsPath bool) func(entry, address string) bool {
	return func(entry, address string) bool {
		server, ok := parseWebAddress(address)
		pattern, known := parseWebAddress(entry)
		if !ok || !known {
			return false
		}
		site := func(a webAddress) string { return a.scheme + "://" + a.host + ":" + a.port }
		all := pattern.path == "/" && pattern.search == "" && (!slashIsPath || !strings.HasSuffix(entry, "/"))
		return matchesText(site(pattern), site(server)) &&
			(all || matchesText(pattern.path+pattern.search, server.path+server.search))
	}
}

// rule is how a client compares addresses.
type rule struct {
	name            string
	allows, denies  func(entry, address string) bool
	rootIsEveryPath bool // for entries that allow
}

var rules = []rule{
	{"Claude Code", claudeAllows, claudeDenies, false},
	{"Copilot", copilotMatches(true), copilotMatches(true), false},
	{"Copilot, a slash is no path", copilotMatches(false), copilotMatches(false), true},
}

// admits reports whether a list lets a client use an address.
func (r rule) admits(l list, address string) bool {
	return slices.ContainsFunc(l.Allowed, func(e allowlist.Entry) bool { return e.URL != "" && r.allows(e.URL, address) }) &&
		!slices.ContainsFunc(l.Denied, func(e allowlist.Entry) bool { return e.URL != "" && r.denies(e.URL, address) })
}

// TestOlderSpellingsBlockNoListedServer has a deleted version whose URL clients take for that of a
// listed server (contract C-2).
func TestOlderSpellingsBlockNoListedServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ listed, deleted string }{
		{"https://a.example.com/mcp", "https://a.example.com"},
		{"https://a.example.com/mcp", "https://a.example.com/"},
		{"https://b.example.com/mcp", "https://b.example.com/mcp/"},
		{"https://b.example.com/mcp/", "https://b.example.com/mcp"},
		{"https://c.example.com/mcp", "https://C.example.com/mcp"},
		{"https://c.example.com/mcp", "HTTPS://c.example.com./mcp"},
		{"https://d.example.com/mcp", "https://d.example.com:443/mcp"},
		{"https://e.example.com/mcp?key=1", "https://e.example.com/mcp"},
		{"https://e.example.com/mcp?key={key}", "https://e.example.com/mcp/"},
		{"https://f.example.com/acme/mcp", "https://F.example.com/{tenant}/mcp/"},
		{"https://acme.g.example.com:8443/mcp", "https://{tenant}.g.example.com/mcp"},
		{"https://h.example.com/mcp", "https://h.example.com?"},
		{"https://h.example.com/mcp", "https://h.example.com#top"},
	} {
		for _, f := range []allowlist.Format{allowlist.Claude, allowlist.VSCode} {
			l := compile(t, f,
				[]registry.Record{newRecord(t, "com.example/new", "1.0.1", remotes(`{"type":"sse","url":"`+c.listed+`"}`))},
				[]registry.Record{newRecord(t, "com.example/old", "1.0.0", remotes(`{"type":"sse","url":"`+c.deleted+`"}`))})
			for _, r := range rules {
				if address := strings.ReplaceAll(c.listed, "{key}", "1"); !r.admits(l, address) {
					t.Errorf("%s: %s blocks %s: %+v", r.name, c.deleted, address, l)
				}
			}
			if len(l.Denied) != 0 || len(l.Skipped) != 1 || !strings.Contains(l.Skipped[0].Reason, "cannot be denied") {
				t.Errorf("%s: %s after %s: %+v", f, c.listed, c.deleted, l)
			}
		}
	}
}

// TestOtherAddressesAreDenied: what clients do not take for the URL of a listed server stays denied.
func TestOtherAddressesAreDenied(t *testing.T) {
	t.Parallel()
	for _, deleted := range []string{
		"https://a.example.com/other", "https://a.example.com/MCP", "https://a.example.com:8443/mcp", "http://a.example.com/mcp",
		"https://b.example.com/mcp", "https://a.example.com/mcp?old=1", "https://a.example.com/mcp/old",
		"https://{tenant}.other.example.com/mcp",
	} {
		l := compile(t, allowlist.Claude,
			[]registry.Record{newRecord(t, "com.example/new", "1.0.1", remotes(`{"type":"sse","url":"https://a.example.com/mcp"}`))},
			[]registry.Record{newRecord(t, "com.example/old", "1.0.0", remotes(`{"type":"sse","url":"`+deleted+`"}`))})
		if len(l.Denied) != 1 || len(l.Skipped) != 0 {
			t.Errorf("%s is not denied: %+v", deleted, l)
		}
	}
}

// TestAnEntryAdmitsOneAddress has URLs whose entry a client could take for every path of the host
// (contract C-3).
func TestAnEntryAdmitsOneAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://a.example.com":            "https://a.example.com/",
		"https://a.example.com/":           "https://a.example.com/",
		"https://a.example.com?":           "https://a.example.com/",
		"https://a.example.com/?":          "https://a.example.com/",
		"https://a.example.com#mcp":        "https://a.example.com/",
		"https://a.example.com/#mcp":       "https://a.example.com/",
		"https://a.example.com/?#":         "https://a.example.com/",
		" https://a.example.com/ ":         "https://a.example.com/",
		"https://a.example.com?key=1":      "https://a.example.com/?key=1",
		"https://a.example.com??":          "https://a.example.com/??",
		"https://{x}.a.example.com":        "https://*.a.example.com/",
		"https://A.example.com:443/Mcp":    "https://A.example.com:443/Mcp",
		"https://a.example.com/.":          "",
		"https://a.example.com/mcp/..":     "",
		"https://a.example.com/mcp/%2e%2E": "",
		`https://a.example.com/\\`:         "",
		`https://a.example.com/\\..`:       "",
		`https://a.example.com\\`:          "",
	} {
		l := compile(t, allowlist.VSCode,
			[]registry.Record{newRecord(t, "com.example/a", "1.0.0", remotes(`{"type":"sse","url":"`+address+`"}`))}, nil)
		if want == "" {
			if len(l.Allowed) != 0 || len(l.Skipped) != 1 {
				t.Errorf("%s: %+v", address, l)
			}
			continue
		}
		if len(l.Allowed) != 1 || l.Allowed[0].URL != want {
			t.Errorf("%s: %+v, want %s", address, l, want)
		}
		wantOneAddress(t, l, strings.ReplaceAll(address, "{x}", "x"))
	}
}

// mayConcern reports whether an entry has a host, or a "*"; entries of other hosts need no comparison.
func mayConcern(e allowlist.Entry, host string) bool {
	return strings.Contains(e.URL, "*") || strings.Contains(strings.ToLower(e.URL), strings.ToLower(host))
}

// wantOneAddress checks that a list admits an address by the rules of all clients, and no other
// path of its host, unless an entry has a "*" there.
func wantOneAddress(t *testing.T, l list, address string) {
	t.Helper()
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	far := func(e allowlist.Entry) bool { return !mayConcern(e, u.Hostname()) }
	l.Allowed, l.Denied = slices.DeleteFunc(slices.Clone(l.Allowed), far), slices.DeleteFunc(slices.Clone(l.Denied), far)
	for _, r := range rules {
		if !r.admits(l, address) {
			t.Errorf("%s blocks %s", r.name, address)
		}
		listed := func(other string) bool {
			return slices.ContainsFunc(l.Allowed, func(e allowlist.Entry) bool {
				pattern, _ := parseWebAddress(e.URL)
				return e.URL != "" && (strings.Contains(pattern.path+pattern.search, "*") || r.rootIsEveryPath && pattern.path == "/") &&
					r.allows(e.URL, other)
			})
		}
		for _, other := range []string{"/other-tenant/mcp", u.Path + "/other", "/tollgate"} {
			if other = u.Scheme + "://" + u.Host + other; r.admits(l, other) && !listed(other) {
				t.Errorf("%s admits %s next to %s", r.name, other, address)
			}
		}
	}
}

var variable = regexp.MustCompile(`\{[^}]*\}`)

// TestRealDocumentsByTheRulesOfClients compiles documents of the public registry, with older
// spellings of each URL among the deleted ones: every listed server is admitted, and nothing else of
// its host.
func TestRealDocumentsByTheRulesOfClients(t *testing.T) {
	t.Parallel()
	records, shapes := readShapes(t)
	var deleted []registry.Record
	for i, s := range shapes {
		for j, r := range s.Remotes {
			u, err := url.Parse(r.URL)
			if err != nil {
				continue
			}
			for k, old := range []string{
				u.Scheme + "://" + u.Host, strings.TrimSuffix(r.URL, "/"), r.URL + "/", u.Scheme + "://" + strings.ToUpper(u.Host) + u.Path,
			} {
				name := strings.Replace(s.Name, "/", ".old/", 1)
				deleted = append(deleted, newRecord(t, name, fmt.Sprintf("%d.%d.%d", i, j, k), remotes(`{"type":"sse","url":"`+old+`"}`)))
			}
		}
	}
	admitted := 0
	for _, f := range []allowlist.Format{allowlist.Claude, allowlist.VSCode} {
		l := compile(t, f, records, deleted)
		for _, s := range shapes {
			if slices.ContainsFunc(l.Skipped, func(skipped allowlist.Skipped) bool {
				return skipped.Name.String() == s.Name && strings.Contains(skipped.Reason, "of a remote")
			}) {
				continue // it has a URL without an entry
			}
			for _, r := range s.Remotes {
				admitted++
				wantOneAddress(t, l, variable.ReplaceAllString(r.URL, "x"))
			}
		}
	}
	t.Logf("%d documents: %d addresses of remotes are admitted", len(shapes), admitted)
	if admitted < 100 {
		t.Errorf("only %d addresses were checked", admitted)
	}
}
