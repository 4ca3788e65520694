package company_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newFields() audit.Details {
	return audit.Details{
		"name": audit.Text("acme"), "issuer": audit.Text("https://login.acme.example"), "clientId": audit.Text("tollgate"),
		"domains": audit.Texts([]string{"Acme.example"}),
	}
}

func mustParse(t *testing.T, fields audit.Details) *company.Provider {
	t.Helper()
	p, err := company.Parse(fields)
	must.Succeed(t, err)
	return &p
}

// TestFieldsRoundTrip checks that Fields returns what Parse reads, also through JSON.
func TestFieldsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z0-9 é'"]{1,8}`), 0, 4, rapid.ID)
		fields := newFields()
		fields["create"] = audit.Flag(rapid.Bool().Draw(t, "create"))
		fields["idJag"] = audit.Flag(rapid.Bool().Draw(t, "idJag"))
		fields["requiredGroups"] = audit.Texts(texts.Draw(t, "groups"))
		fields["secondFactor"] = audit.Details{"acr": audit.Texts(texts.Draw(t, "acr")), "amr": audit.Texts(texts.Draw(t, "amr"))}
		fields["recheck"] = audit.Text((time.Duration(rapid.IntRange(10, 86400).Draw(t, "recheck")) * time.Second).String())
		fields["networks"] = audit.Texts([]string{"10.1.2.3/8"})
		var grants audit.List
		for _, g := range texts.Draw(t, "grants") {
			grants = append(grants, audit.Details{"group": audit.Text(g), "action": audit.Text("edit"), "resource": audit.Text("*")})
		}
		fields["groupGrants"] = grants
		first, err := company.Parse(fields)
		must.Succeed(t, err)
		text, err := json.Marshal(first.Fields())
		must.Succeed(t, err)
		var stored audit.Details
		must.Succeed(t, json.Unmarshal(text, &stored))
		second, err := company.Parse(stored)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("%+v became %+v, error %v", first, second, err)
		}
	})
}

func TestParseNamesTheField(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]audit.Value{
		"name": audit.Text("Acme"), "issuer": audit.Text("http://login.acme.example"), "clientId": audit.Text(""),
		"displayName": audit.Text(strings.Repeat("é", 65)), "scopes": audit.Texts([]string{"profile"}),
		"domains": audit.Texts([]string{"nodot"}), "recheck": audit.Text("9s"), "maxSession": audit.Text("31d"),
		"requiredGroups": audit.Texts([]string{"a", "a"}), "networks": audit.Texts([]string{"10.0.0.1"}),
		"groupGrants": audit.List{audit.Details{"group": audit.Text("g"), "action": audit.Text("edit")}},
	} {
		fields := newFields()
		fields[field] = value
		if _, err := company.Parse(fields); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v, want a fault that begins with the field", field, err)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 5 * time.Minute: "5m", 10 * time.Second: "10s", 90 * time.Second: "1m30s", 90 * time.Minute: "1h30m",
		20*time.Hour + 10*time.Minute: "20h10m", 10 * time.Hour: "10h",
	} {
		if got := company.FormatDuration(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

var now = time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC)

func newClaims(changes map[string]any) []byte {
	claims := map[string]any{
		"iss": "https://login.acme.example", "sub": "u1", "aud": "tollgate", "nonce": "n", "exp": now.Add(time.Minute).Unix(),
		"iat": now.Unix(), "email": "ada@acme.example",
	}
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	text, _ := json.Marshal(claims) // texts and numbers
	return text
}

func TestCheckToken(t *testing.T) {
	t.Parallel()
	p := mustParse(t, newFields())
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, test := range map[string]struct {
		claims map[string]any
		reason fault.Code
	}{
		"good":                     {nil, ""},
		"several audiences, azp":   {map[string]any{"aud": []string{"a", "tollgate"}, "azp": "tollgate"}, ""},
		"several audiences":        {map[string]any{"aud": []string{"a", "tollgate"}}, "authorized_party"},
		"azp of another":           {map[string]any{"azp": "a"}, "authorized_party"},
		"azp that is a number":     {map[string]any{"azp": 1}, "authorized_party"},
		"another audience":         {map[string]any{"aud": "tollgate2"}, "audience"},
		"an audience of numbers":   {map[string]any{"aud": []any{"tollgate", 1}}, "audience"},
		"issuer with a slash":      {map[string]any{"iss": "https://login.acme.example/"}, "issuer"},
		"255 bytes of subject":     {map[string]any{"sub": strings.Repeat("s", 255)}, ""},
		"256 bytes of subject":     {map[string]any{"sub": strings.Repeat("s", 256)}, "subject"},
		"a NUL in the subject":     {map[string]any{"sub": "a\x00"}, "subject"},
		"expired 59 s ago":         {map[string]any{"exp": at(-59 * time.Second)}, ""},
		"expired 60 s ago":         {map[string]any{"exp": at(-60 * time.Second)}, "expired"},
		"no end":                   {map[string]any{"exp": nil}, "expired"},
		"a negative end":           {map[string]any{"exp": -1}, "expired"},
		"a huge end":               {map[string]any{"exp": 1e300}, "expired"},
		"issued in 60 s":           {map[string]any{"iat": at(60 * time.Second)}, ""},
		"issued in 61 s":           {map[string]any{"iat": at(61 * time.Second)}, "issued_at"},
		"not issued":               {map[string]any{"iat": nil}, "issued_at"},
		"valid in 60 s":            {map[string]any{"nbf": at(60 * time.Second)}, ""},
		"valid in 61 s":            {map[string]any{"nbf": at(61 * time.Second)}, "not_before"},
		"a start that is no time":  {map[string]any{"nbf": "x"}, "not_before"},
		"another nonce":            {map[string]any{"nonce": "m"}, "nonce"},
		"a nonce that is a number": {map[string]any{"nonce": 1}, "nonce"},
		"no nonce":                 {map[string]any{"nonce": nil}, "nonce"},
	} {
		c, err := p.ReadClaims(newClaims(test.claims))
		if err == nil {
			err = c.CheckToken(p, "n", false, now)
		}
		f, _ := fault.As(err)
		if (err == nil) != (test.reason == "") || err != nil && f.Code != test.reason {
			t.Errorf("%s: %v, want the reason %q", name, err, test.reason)
		}
	}
}

func TestSecondFactor(t *testing.T) {
	t.Parallel()
	fields := newFields()
	fields["secondFactor"] = audit.Details{"acr": audit.Texts([]string{"gold"}), "amr": audit.Texts([]string{"mfa", "hwk"})}
	p, plain := mustParse(t, fields), mustParse(t, newFields())
	for name, test := range map[string]struct {
		claims map[string]any
		want   bool
	}{
		"none":                  {nil, false},
		"acr":                   {map[string]any{"acr": "gold"}, true},
		"another acr":           {map[string]any{"acr": "Gold"}, false},
		"one of amr":            {map[string]any{"amr": []string{"pwd", "hwk"}}, true},
		"amr of others":         {map[string]any{"amr": []string{"pwd"}}, false},
		"at the bound of age":   {map[string]any{"acr": "gold", "auth_time": now.Add(-12 * time.Hour).Unix()}, true},
		"older than maxSession": {map[string]any{"acr": "gold", "auth_time": now.Add(-12*time.Hour - time.Second).Unix()}, false},
	} {
		c, err := p.ReadClaims(newClaims(test.claims))
		if err != nil || c.HasSecondFactor(p, now) != test.want {
			t.Errorf("%s: %v, error %v", name, c.HasSecondFactor(p, now), err)
		}
		if c.HasSecondFactor(plain, now) {
			t.Errorf("%s: it is a second factor of a provider that has none", name)
		}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	account := func(s auth.AccountState) *auth.Account { return &auth.Account{ID: "a", State: s} }
	create, closed := newFields(), newFields()
	create["create"] = audit.Flag(true)
	closed["requiredGroups"] = audit.Texts([]string{"staff"})
	good, foreign := map[string]any{}, map[string]any{"email": "a@other.example"}
	unverified := map[string]any{"email_verified": false}
	for name, test := range map[string]struct {
		fields audit.Details
		claims map[string]any
		known  company.Known
		want   company.Verdict
	}{
		"linked":                         {newFields(), foreign, company.Known{Linked: true, Account: account("active")}, company.SignIn},
		"linked and invited":             {newFields(), good, company.Known{Linked: true, Account: account("invited")}, company.SignIn},
		"linked, unverified":             {newFields(), unverified, company.Known{Linked: true, Account: account("active")}, company.SignIn},
		"linked and disabled":            {newFields(), good, company.Known{Linked: true, Account: account("disabled")}, company.Disabled},
		"linked and locked":              {newFields(), good, company.Known{Linked: true, Account: account("locked")}, company.Locked},
		"linked, in no group":            {closed, good, company.Known{Linked: true, Account: account("active")}, company.NoGroup},
		"in the group":                   {closed, map[string]any{"groups": "staff"}, company.Known{Linked: true, Account: account("active")}, company.SignIn},
		"by address":                     {newFields(), good, company.Known{Account: account("active")}, company.Link},
		"by address, an operator":        {newFields(), good, company.Known{Account: account("active"), Operates: true}, company.Operator},
		"by address, with another":       {create, good, company.Known{Account: account("active"), HasOther: true}, company.Unknown},
		"by address, disabled":           {newFields(), good, company.Known{Account: account("disabled")}, company.Disabled},
		"by address of a foreign domain": {create, foreign, company.Known{Account: account("active")}, company.Unknown},
		"by unverified address":          {create, unverified, company.Known{Account: account("active")}, company.Unknown},
		"nobody":                         {newFields(), good, company.Known{}, company.Unknown},
		"somebody new":                   {create, good, company.Known{}, company.Create},
		"new without an address":         {create, map[string]any{"email": nil}, company.Known{}, company.Unknown},
	} {
		p := mustParse(t, test.fields)
		c, err := p.ReadClaims(newClaims(test.claims))
		if got := p.Decide(&c, test.known); err != nil || got != test.want {
			t.Errorf("%s: %s, error %v, want %s", name, got, err, test.want)
		}
	}
}

// TestUnlinkedNeedsAProvenAddress checks that no claims lead to an account that is not linked but
// those with an address of a domain of the provider that is not called unverified.
func TestUnlinkedNeedsAProvenAddress(t *testing.T) {
	t.Parallel()
	fields := newFields()
	fields["create"] = audit.Flag(true)
	p := mustParse(t, fields)
	rapid.Check(t, func(t *rapid.T) {
		email := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a@.]{0,4}@(sub\.)?(not)?[aA]cme\.example(\.evil)?`)).Draw(t, "email")
		c, err := p.ReadClaims(newClaims(map[string]any{
			"email": email, "email_verified": rapid.SampledFrom([]any{nil, true, false, "true", "false", 0}).Draw(t, "verified"),
		}))
		must.Succeed(t, err)
		known := company.Known{Operates: rapid.Bool().Draw(t, "operates")}
		if rapid.Bool().Draw(t, "exists") {
			known.Account = &auth.Account{State: auth.AccountActive}
		}
		if v := p.Decide(&c, known); v.Admits() && (c.Unverified || !strings.HasSuffix(string(c.Email), "@acme.example") || known.Account != nil && known.Operates) {
			t.Fatalf("%q leads to %s", email, v)
		}
	})
}

// FuzzReadClaims requires that no claims cause a panic, and that groups are texts or a problem.
func FuzzReadClaims(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `null`, `{"groups":["a","b"]}`, `{"groups":{"a":1}}`, `{"groups":1e400}`, `{"_claim_names":{"groups":"x"}}`,
		`{"_claim_names":[]}`, `{"hasgroups":true}`, `{"groups":[["a"]]}`, `{"aud":[1]}`, `{"exp":1e18,"email":"a@b"}`,
		`{"sub":"\ud800","email":"\u0000@a.b"}`,
	} {
		f.Add([]byte(text))
	}
	p, err := company.Parse(newFields())
	must.Succeed(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := p.ReadClaims(text)
		if err != nil {
			return
		}
		if c.Groups.Problem != "" && c.Groups.Names != nil || slices.Contains(c.Groups.Names, "\xff") {
			t.Errorf("the groups are %+v", c.Groups)
		}
		_ = c.CheckToken(&p, "n", false, now) // must not panic
		_ = c.HasSecondFactor(&p, now)
		_ = p.Decide(&c, company.Known{})
		_ = c.Complete(&p, text)
	})
}

func TestCheckLogout(t *testing.T) {
	t.Parallel()
	p := mustParse(t, newFields())
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	const event = "http://schemas.openid.net/event/backchannel-logout"
	for name, test := range map[string]struct {
		claims map[string]any
		reason fault.Code
	}{
		"good":               {nil, ""},
		"by the session":     {map[string]any{"sub": nil, "sid": "s"}, ""},
		"neither":            {map[string]any{"sub": nil}, "subject"},
		"a nonce":            {map[string]any{"nonce": "n"}, "nonce"},
		"5 minutes old":      {map[string]any{"iat": at(-5 * time.Minute)}, ""},
		"older":              {map[string]any{"iat": at(-5*time.Minute - time.Second)}, "issued_at"},
		"no time of issue":   {map[string]any{"iat": nil}, "issued_at"},
		"no id":              {map[string]any{"jti": nil}, "id"},
		"an event as a text": {map[string]any{"events": map[string]any{event: "x"}}, "events"},
		"events as a list":   {map[string]any{"events": []string{event}}, "events"},
		"another issuer":     {map[string]any{"iss": "x"}, "issuer"},
		"another audience":   {map[string]any{"aud": "x"}, "audience"},
		"expired":            {map[string]any{"exp": at(-time.Minute)}, "expired"},
	} {
		all := map[string]any{"nonce": nil, "jti": "j", "events": map[string]any{event: map[string]any{}}}
		for name, value := range test.claims {
			all[name] = value
		}
		c, err := p.ReadClaims(newClaims(all))
		if err == nil {
			_, err = c.CheckLogout(p, now)
		}
		if f, _ := fault.As(err); (err == nil) != (test.reason == "") || err != nil && f.Code != test.reason {
			t.Errorf("%s: %v, want the reason %q", name, err, test.reason)
		}
	}
}

// TestAuthenticatedSince checks that a sign-in may be a minute older than a step-up, and not more.
func TestAuthenticatedSince(t *testing.T) {
	t.Parallel()
	p, at := &company.Provider{EmailClaim: "email", GroupsClaim: "groups"}, time.Unix(1_800_000_000, 0)
	for payload, want := range map[string]bool{
		`{"auth_time": 1800000000}`: true, `{"auth_time": 1799999940}`: true, `{"auth_time": 1799999939}`: false,
		`{"auth_time": "1800000000"}`: false, `{"auth_time": -1}`: false, `{}`: false,
	} {
		c, err := p.ReadClaims([]byte(payload))
		if got := c.AuthenticatedSince(at); err != nil || got != want {
			t.Errorf("%s: %t, want %t, error %v", payload, got, want, err)
		}
	}
}

// TestHealth checks what the last success and the last problem of a provider mean together.
func TestHealth(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for want, all := range map[company.Health][]company.Condition{
		company.Unused:   {{}},
		company.Works:    {{SucceededAt: early}, {SucceededAt: late, Problem: company.ProblemAway, ProblemAt: early}},
		company.Troubled: {{Problem: "x", ProblemAt: early}, {SucceededAt: late, Problem: "groups: object", ProblemAt: late}},
		company.Away:     {{SucceededAt: early, Problem: company.ProblemAway, ProblemAt: late}},
	} {
		for _, c := range all {
			if got := c.Health(); got != want {
				t.Errorf("%+v is %d, want %d", c, got, want)
			}
		}
	}
}
