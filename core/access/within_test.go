package access_test

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

const (
	mcpURL   = "https://t.example.com/mcp"
	otherURL = "https://t.example.com/other"
)

// served returns a server with a listed URL for each word that is one, and the states that others name.
func served(t *testing.T, name string, words ...string) access.Listing {
	t.Helper()
	l := access.Listing{Name: mustName(t, name)}
	for _, w := range words {
		switch w {
		case "quarantined":
			l.Quarantined = true
		case "deleted":
			l.Deleted = true
		case "withdrawn":
			l.Withdrawn, l.Remotes = append(l.Withdrawn, l.Remotes[len(l.Remotes)-1]), l.Remotes[:len(l.Remotes)-1]
		default:
			l.Remotes = append(l.Remotes, w)
		}
	}
	return l
}

// TestWithinResource checks where a token for a resource is good: at its servers, as long as it is open.
func TestWithinResource(t *testing.T) {
	t.Parallel()
	a, b, c := "com.example/a", "com.example/b", "com.example/c"
	names := func(all ...string) (n []toolserver.Name) {
		for _, one := range all {
			n = append(n, mustName(t, one))
		}
		return n
	}
	deny := rule{"name": audit.Text("no-b"), "effect": audit.Text("deny"), "servers": list(b), "order": audit.Number(1)}
	for name, tc := range map[string]struct {
		servers  []access.Listing
		resource access.Resource
		server   string // or an address
		rules    []rule
		want     string
	}{
		"its server":     {[]access.Listing{served(t, a, mcpURL)}, access.Resource{URL: mcpURL, Servers: names(a)}, a, nil, "allow rule"},
		"its address":    {[]access.Listing{served(t, a, mcpURL)}, access.Resource{URL: mcpURL, Servers: names(a)}, mcpURL, nil, "allow rule"},
		"below it":       {[]access.Listing{served(t, a, mcpURL)}, access.Resource{URL: mcpURL, Servers: names(a)}, mcpURL + "/x", nil, "allow rule"},
		"another server": {[]access.Listing{served(t, a, mcpURL), served(t, c, otherURL)}, access.Resource{URL: mcpURL, Servers: names(a)}, c, nil, "challenge invalid_token"},
		"the address of another server": {
			[]access.Listing{served(t, a, mcpURL), served(t, c, otherURL)}, access.Resource{URL: mcpURL, Servers: names(a)}, otherURL, nil,
			"challenge invalid_token"},
		"an unknown server": {[]access.Listing{served(t, a, mcpURL)}, access.Resource{URL: mcpURL, Servers: names(a)}, "com.example/x", nil, "deny not_listed"},
		"a server below another one": {
			[]access.Listing{served(t, a, mcpURL), served(t, c, mcpURL+"/sub")}, access.Resource{URL: mcpURL, Servers: names(a)}, mcpURL + "/sub", nil,
			"challenge invalid_token"},
		"a twin that no one has declared": {
			[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL)}, access.Resource{URL: mcpURL, Servers: names(a)}, mcpURL, nil,
			"challenge invalid_token"},
		"the twin by its name": {
			[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL)}, access.Resource{URL: mcpURL, Servers: names(a)}, b, nil, "challenge invalid_token"},
		"one of two":                {[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL)}, access.Resource{URL: mcpURL, Servers: names(a, b)}, mcpURL, nil, "allow rule"},
		"two, of which one may not": {[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL)}, access.Resource{URL: mcpURL, Servers: names(a, b)}, mcpURL, []rule{deny}, "deny rule"},
		"the other one of these":    {[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL)}, access.Resource{URL: mcpURL, Servers: names(a, b)}, a, []rule{deny}, "allow rule"},
		"closed by a quarantine": {
			[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL, "withdrawn", "quarantined")},
			access.Resource{URL: mcpURL, Servers: names(a, b)}, a, nil, "challenge invalid_token"},
		"closed, since its server has another URL": {
			[]access.Listing{served(t, a, otherURL)}, access.Resource{URL: mcpURL, Servers: names(a)}, a, nil, "challenge invalid_token"},
		"closed, since its server is gone": {nil, access.Resource{URL: mcpURL, Servers: names(a)}, a, nil, "deny not_listed"},
		"an URL with a variable":           {[]access.Listing{served(t, a, mcpURL+"/{x}")}, access.Resource{URL: mcpURL + "/{x}", Servers: names(a)}, a, nil, "challenge invalid_token"},
		"another query":                    {[]access.Listing{served(t, a, mcpURL+"?a=1")}, access.Resource{URL: mcpURL, Servers: names(a)}, a, nil, "challenge invalid_token"},
		"another spelling": {
			[]access.Listing{served(t, a, "HTTPS://T.example.com:443/mcp/")}, access.Resource{URL: mcpURL, Servers: names(a)}, a, nil, "allow rule"},

		"undeclared":                {[]access.Listing{served(t, a, mcpURL)}, access.Resource{URL: mcpURL}, a, nil, "allow rule"},
		"undeclared, by address":    {[]access.Listing{served(t, a, mcpURL)}, access.Resource{URL: mcpURL}, mcpURL, nil, "allow rule"},
		"undeclared, not https":     {[]access.Listing{served(t, a, "http://t.example.com/mcp")}, access.Resource{URL: "http://t.example.com/mcp"}, a, nil, "challenge invalid_token"},
		"undeclared, another":       {[]access.Listing{served(t, a, mcpURL), served(t, c, otherURL)}, access.Resource{URL: mcpURL}, c, nil, "challenge invalid_token"},
		"undeclared, other case":    {[]access.Listing{served(t, a, mcpURL), served(t, c, "https://t.example.com/MCP")}, access.Resource{URL: mcpURL}, c, nil, "challenge invalid_token"},
		"undeclared, twin allows":   {[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL)}, access.Resource{URL: mcpURL}, a, nil, "allow rule"},
		"undeclared, twin may not":  {[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL)}, access.Resource{URL: mcpURL}, a, []rule{deny}, "deny rule"},
		"undeclared, not the other": {[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL+"/")}, access.Resource{URL: mcpURL}, mcpURL, []rule{deny}, "deny rule"},
		"undeclared, a twin in quarantine": {
			[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL, "withdrawn", "quarantined")}, access.Resource{URL: mcpURL}, a, nil,
			"deny quarantined"},
		"undeclared, a version of a twin in quarantine": {
			[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL, "withdrawn", otherURL)}, access.Resource{URL: mcpURL}, a, nil,
			"challenge invalid_token"},
		"undeclared, after it was renamed": {
			[]access.Listing{served(t, a, mcpURL), served(t, b, mcpURL, "withdrawn", "deleted")}, access.Resource{URL: mcpURL}, a, nil, "allow rule"},
		"undeclared, and gone": {[]access.Listing{served(t, a, mcpURL, "withdrawn", otherURL)}, access.Resource{URL: mcpURL}, a, nil, "challenge invalid_token"},
	} {
		var rules []access.Rule
		for _, r := range append(tc.rules, rule{"servers": list("*")}) {
			rules = append(rules, mustRule(t, r))
		}
		subject := ada(t).WithClient("vscode").Within(tc.resource)
		q := access.Question{Subject: &subject, Server: tc.server, Call: access.NewCall("tools/call", "x"), At: noon}
		if scheme, rest, isURL := cutURL(tc.server); isURL {
			q.Server, q.Address = "", access.Address{Scheme: scheme, Host: "t.example.com", Path: rest}
		}
		s := access.Compile(access.Options{Unlisted: access.Deny}, rules, tc.servers)
		d := s.Decide(&q)
		if got := string(d.Effect) + " " + string(d.Reason); got != tc.want {
			t.Errorf("%s: %s, want %s (%+v)", name, got, tc.want, d)
		}
		if e := s.Explain(&q); e.Decision != d {
			t.Errorf("%s: it is explained as %+v", name, e)
		}
		// What follows from a later change is the same as what follows from all at once.
		if later := access.Compile(access.Options{}, rules, nil).With(tc.servers).Decide(&q); later != d {
			t.Errorf("%s: after changes it is %+v", name, later)
		}
	}
}

func cutURL(text string) (scheme, path string, ok bool) {
	const host = "https://t.example.com"
	if len(text) < len(host) || text[:len(host)] != host {
		return "", "", false
	}
	return "https", text[len(host):], true
}

// TestOffers has what the registry has of the servers of a resource.
func TestOffers(t *testing.T) {
	t.Parallel()
	name := func(s string) toolserver.Name { return mustName(t, s) }
	s := access.Compile(access.Options{}, nil, []access.Listing{
		served(t, "com.example/a", mcpURL), served(t, "com.example/b", mcpURL, "withdrawn", "quarantined"), served(t, "com.example/c", otherURL),
	})
	for want, r := range map[string]access.Resource{
		"a listed, b quarantined":   {URL: mcpURL},
		"c listed":                  {URL: otherURL, Servers: []toolserver.Name{name("com.example/c")}},
		"a not, b quarantined":      {URL: otherURL, Servers: []toolserver.Name{name("com.example/a"), name("com.example/b")}},
		"unknown not":               {URL: otherURL, Servers: []toolserver.Name{name("com.example/unknown")}},
		"":                          {URL: "https://t.example.com/x"},
		"a listed, c not, a listed": {URL: mcpURL, Servers: []toolserver.Name{name("com.example/a"), name("com.example/c"), name("com.example/a")}},
	} {
		got := ""
		for _, o := range slices.Collect(s.Offers(&r)) {
			word := map[bool]string{true: " listed", false: " not"}[o.Listed]
			if o.Quarantined {
				word = " quarantined"
			}
			if got != "" {
				got += ", "
			}
			got += o.Server.String()[len("com.example/"):] + word
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

// TestClosedToUnlisted checks that a token for a resource opens no server that is not listed, although the
// settings allow those.
func TestClosedToUnlisted(t *testing.T) {
	t.Parallel()
	name := mustName(t, "com.example/gone")
	s := access.Compile(access.Options{Unlisted: access.Allow, Default: access.Allow}, nil, nil)
	subject := ada(t).Within(access.Resource{URL: mcpURL, Servers: []toolserver.Name{name}})
	q := access.Question{Subject: &subject, Server: name.String(), Call: access.NewCall("tools/call", "x"), At: noon}
	if d := s.Decide(&q); d.Effect != access.Challenge || d.Reason != access.InvalidToken {
		t.Errorf("it is %+v", d)
	}
}
