package publisher

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

const week = 7 * 24 * time.Hour

// gitHubProof returns a proof by a job of acme/tools.
func gitHubProof() Proof {
	return Proof{Method: GitHubOIDC, Identity: Identity{
		Issuer:  "https://github.example",
		Subject: "repo:acme/tools:ref:refs/heads/main",
		Claims: map[string]string{
			"repository": "acme/tools", "repository_id": "7", "repository_owner": "acme", "repository_owner_id": "65",
			"ref": "refs/heads/main",
		},
	}}
}

func TestAdmits(t *testing.T) {
	t.Parallel()
	fingerprint := func(k Key) Fingerprint { return parse(t, ParseFingerprint, k.Fingerprint()) }
	subject := func(s string) SubjectPattern { return parse(t, ParseSubjectPattern, s) }
	k, other := newEd25519(t, 1), newEd25519(t, 2)
	byDomain := Proof{Method: DNS, Domain: parse(t, ParseDomain, "example.com"), Key: k}
	byToken := gitHubProof()
	for name, test := range map[string]struct {
		proof  Proof
		change func(*Policy, *Proof)
		want   Mismatch
	}{
		"domain":  {byDomain, func(*Policy, *Proof) {}, ""},
		"pinned":  {byDomain, func(p *Policy, _ *Proof) { p.Fingerprint = fingerprint(k) }, ""},
		"token":   {byToken, func(*Policy, *Proof) {}, ""},
		"subject": {byToken, func(p *Policy, _ *Proof) { p.Subject = subject("repo:acme/*") }, ""},
		"bound": {
			byToken, func(p *Policy, _ *Proof) { p.Bound = map[string]string{"repository_id": "7"} }, "",
		},
		"not yet expired": {byToken, func(p *Policy, _ *Proof) { p.ExpiresAt = draftTime.Add(1) }, ""},
		"key gone, short": {byDomain, func(p *Policy, _ *Proof) { p.GoneSince = draftTime.Add(1 - week) }, ""},
		"own key again": {
			byDomain, func(p *Policy, _ *Proof) { p.GoneSince, p.UsedKey = draftTime.Add(-week), k.String() }, "",
		},
		"never used": {byDomain, func(p *Policy, _ *Proof) { p.GoneSince = draftTime.Add(-week) }, ""},

		"another domain": {
			byDomain, func(_ *Policy, f *Proof) { f.Domain = parse(t, ParseDomain, "example.org") }, OtherProof,
		},
		"a domain below": {
			byDomain, func(_ *Policy, f *Proof) { f.Domain = parse(t, ParseDomain, "a.example.com") }, OtherProof,
		},
		"http for dns":     {byDomain, func(_ *Policy, f *Proof) { f.Method = HTTP }, OtherProof},
		"dns for http":     {byDomain, func(p *Policy, _ *Proof) { p.Method = HTTP }, OtherProof},
		"domain for token": {byToken, func(p *Policy, _ *Proof) { p.Method = DNS }, OtherProof},
		"oidc for GitHub":  {byToken, func(_ *Policy, f *Proof) { f.Method = OIDC }, OtherProof},
		"another key":      {byDomain, func(p *Policy, _ *Proof) { p.Fingerprint = fingerprint(other) }, OtherKey},
		"another issuer":   {byToken, func(_ *Policy, f *Proof) { f.Identity.Issuer += "/" }, OtherProof},
		"another subject": {
			byToken, func(p *Policy, _ *Proof) { p.Subject = subject("repo:acme-evil/*") }, OtherProof,
		},
		"another claim": {
			byToken, func(_ *Policy, f *Proof) { f.Identity.Claims["repository"] = "acme/toolz" }, OtherProof,
		},
		"claim in another case": {
			byToken, func(_ *Policy, f *Proof) { f.Identity.Claims["repository"] = "Acme/tools" }, OtherProof,
		},
		"a missing claim": {
			byToken, func(_ *Policy, f *Proof) { delete(f.Identity.Claims, "repository") }, OtherProof,
		},
		"no claims": {byToken, func(_ *Policy, f *Proof) { f.Identity.Claims = nil }, OtherProof},
		"another claim of two": {
			byToken, func(p *Policy, _ *Proof) { p.Claims["ref"] = "refs/heads/dev" }, OtherProof,
		},
		"an empty missing claim": {byToken, func(p *Policy, _ *Proof) { p.Claims["environment"] = "" }, OtherProof},
		"another repository ID": {
			byToken, func(p *Policy, _ *Proof) { p.Bound = map[string]string{"repository_id": "8"} }, OtherOwner,
		},
		"a missing ID": {
			byToken, func(p *Policy, _ *Proof) { p.Bound = map[string]string{"enterprise_id": "1"} }, OtherOwner,
		},
		"expired": {byToken, func(p *Policy, _ *Proof) { p.ExpiresAt = draftTime }, Ended},
		"expired and unproven": {
			byDomain, func(p *Policy, _ *Proof) { p.ExpiresAt, p.GoneSince = draftTime, draftTime.Add(-week) }, Ended,
		},
		"unproven, another key": {
			byDomain, func(p *Policy, _ *Proof) {
				p.GoneSince, p.UsedKey = draftTime.Add(-week), other.String()
			}, KeyGone,
		},
		"expired, another proof": {
			byToken, func(p *Policy, f *Proof) { p.ExpiresAt, f.Method = draftTime, OIDC }, OtherProof,
		},
	} {
		p := mustPolicy(t, goodDraft(test.proof.Method))
		proof := test.proof
		proof.Identity.Claims = maps.Clone(proof.Identity.Claims)
		test.change(&p, &proof)
		wantEqual(t, p.Admits(&proof, draftTime, week), test.want, "%s: Admits", name)
		want := test.want
		if want == Ended || want == KeyGone {
			want = "" // they are states
		}
		wantEqual(t, p.Compare(&proof), want, "%s: Compare", name)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		expires, gone time.Time
		want          State
	}{
		"new":                   {time.Time{}, time.Time{}, Active},
		"before the end":        {draftTime.Add(1), time.Time{}, Active},
		"at the end":            {draftTime, time.Time{}, Expired},
		"after the end":         {draftTime.Add(-1), time.Time{}, Expired},
		"key just gone":         {time.Time{}, draftTime, Active},
		"key gone for less":     {time.Time{}, draftTime.Add(1 - week), Active},
		"key gone for a week":   {time.Time{}, draftTime.Add(-week), Unproven},
		"key gone and at end":   {draftTime, draftTime.Add(-week), Expired},
		"key gone, end to come": {draftTime.Add(1), draftTime.Add(-week), Unproven},
	} {
		wantEqual(t, (&Policy{ExpiresAt: test.expires, GoneSince: test.gone}).State(draftTime, week), test.want,
			"%s: state", name)
	}
}

func TestPolicyPermission(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, goodDraft(DNS))
	p.ID, p.Actions = "id", []Action{Status}
	if got := p.Permission(); got.Policy != "id" || got.Pattern != p.Pattern || len(got.Actions) != 1 ||
		got.Actions[0] != Status {
		t.Errorf("the permission is %+v", got)
	}
}

func TestUseOfAKey(t *testing.T) {
	t.Parallel()
	first, second := newEd25519(t, 1), newEd25519(t, 2)
	p := mustPolicy(t, goodDraft(DNS))
	p.GoneSince = draftTime
	for step, test := range []struct {
		key   Key
		first bool
	}{{first, true}, {first, false}, {second, true}, {second, false}, {first, true}} {
		now := draftTime.Add(time.Duration(step) * time.Hour)
		before := p
		used, isFirst := p.Use(&Proof{Method: DNS, Domain: p.Domain, Key: test.key}, now)
		if isFirst != test.first || used.UsedKey != test.key.String() || !used.LastUsedAt.Equal(now) ||
			!used.GoneSince.IsZero() || used.Bound != nil {
			t.Errorf("step %d: Use = %+v, %t, want %t", step, used, isFirst, test.first)
		}
		if !p.LastUsedAt.Equal(before.LastUsedAt) || p.UsedKey != before.UsedKey {
			t.Errorf("step %d: Use has changed its receiver", step)
		}
		p = used
	}
}

func TestUseOfAToken(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, goodDraft(OIDC))
	proof := gitHubProof()
	proof.Method = OIDC
	used, first := p.Use(&proof, draftTime)
	if !first || used.Bound != nil || used.UsedKey != "" || !used.LastUsedAt.Equal(draftTime) {
		t.Errorf("first use: %+v, %t", used, first)
	}
	if used, first = used.Use(&proof, draftTime.Add(1)); first || !used.LastUsedAt.Equal(draftTime.Add(1)) {
		t.Errorf("second use: %+v, %t", used, first)
	}
}

// TestFirstUseBindsToIDs uses a policy for GitHub, and then presents tokens with the same names and
// other IDs.
func TestFirstUseBindsToIDs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		subject         string
		claims          map[string]string
		repository, own bool // whether the policy is bound to the ID of the repository, of the owner
	}{
		{"", map[string]string{"repository": "acme/tools"}, true, true},
		{"", map[string]string{"repository_owner": "acme"}, false, true},
		{"repo:acme/tools:*", nil, true, true},
		{"repo:acme/*", nil, false, true},
		{"", map[string]string{"repository_id": "7"}, false, false},
	} {
		d := goodDraft(GitHubOIDC)
		d.Subject, d.Claims = test.subject, test.claims
		proof := gitHubProof()
		p := mustPolicy(t, d)
		p.Bound = map[string]string{} // as a store may return it
		p, _ = p.Use(&proof, draftTime)
		wantEqual(t, p.Compare(&proof), "", "%+v: the policy does not admit the token of its first use", test)
		again, _ := p.Use(&proof, draftTime)
		wantEqual(t, again.Bound, p.Bound, "%+v: the second use changed the IDs to", test)
		for claim, bound := range map[string]bool{"repository_id": test.repository, "repository_owner_id": test.own} {
			for _, value := range []string{"8", ""} {
				if d.Claims[claim] != "" {
					continue // compared in any case
				}
				other := gitHubProof()
				other.Identity.Claims[claim] = value
				if value == "" {
					delete(other.Identity.Claims, claim)
				}
				wantEqual(t, p.Compare(&other) == OtherOwner, bound, "%+v: refused with %s %q", test, claim, value)
			}
		}
	}
}

func TestChecked(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, goodDraft(DNS))
	for step, test := range []struct {
		found     bool
		goneSince int // hours after draftTime; -1 = not gone
	}{{true, -1}, {false, 1}, {false, 1}, {false, 1}, {true, -1}, {false, 5}} {
		now := draftTime.Add(time.Duration(step) * time.Hour)
		p = p.Checked(test.found, now)
		want := time.Time{}
		if test.goneSince >= 0 {
			want = draftTime.Add(time.Duration(test.goneSince) * time.Hour)
		}
		if !p.CheckedAt.Equal(now) || !p.GoneSince.Equal(want) {
			t.Errorf("step %d: checked at %s, gone since %s, want %s", step, p.CheckedAt, p.GoneSince, want)
		}
	}
}

func TestFindKey(t *testing.T) {
	t.Parallel()
	own, other := newEd25519(t, 1), newEd25519(t, 2)
	for _, test := range []struct {
		pinned, used  bool
		published     []Key
		active, again bool // whether the key is found while the policy is active, while it is unproven
	}{
		{false, false, nil, false, false},
		{false, false, []Key{other}, true, true},
		{false, true, nil, false, false},
		{false, true, []Key{own}, true, true},
		{false, true, []Key{other}, true, false},
		{false, true, []Key{other, own}, true, true},
		{true, false, nil, false, false},
		{true, false, []Key{other}, false, false},
		{true, false, []Key{own}, true, true},
		{true, true, []Key{other}, false, false},
		{true, true, []Key{other, own}, true, true},
	} {
		p := mustPolicy(t, goodDraft(DNS))
		if test.pinned {
			p.Fingerprint = parse(t, ParseFingerprint, own.Fingerprint())
		}
		if test.used {
			p.UsedKey = own.String()
		}
		if active, again := p.FindKey(test.published, Active),
			p.FindKey(test.published, Unproven); active != test.active || again != test.again {
			t.Errorf("%+v: FindKey = %t, and %t while unproven", test, active, again)
		}
	}
}

// TestUnprovenPolicyReturnsWithItsKey follows a policy whose domain is lost and comes back.
func TestUnprovenPolicyReturnsWithItsKey(t *testing.T) {
	t.Parallel()
	own, thief := newEd25519(t, 1), newEd25519(t, 2)
	proof := Proof{Method: DNS, Domain: parse(t, ParseDomain, "example.com"), Key: own}
	p, _ := mustPolicy(t, goodDraft(DNS)).Use(&proof, draftTime)
	p = p.Checked(p.FindKey(nil, Active), draftTime)
	later := draftTime.Add(week)
	if p = p.Checked(p.FindKey([]Key{thief}, p.State(later, week)), later); p.State(later, week) != Unproven {
		t.Errorf("the state is %s with the key of another owner", p.State(later, week))
	}
	wantEqual(t, p.Admits(&Proof{Method: DNS, Domain: proof.Domain, Key: thief}, later, week), KeyGone,
		"a proof with the key of another owner")
	if p = p.Checked(p.FindKey([]Key{thief, own}, p.State(later, week)), later); p.State(later, week) != Active {
		t.Errorf("the state is %s with the own key", p.State(later, week))
	}
}

// TestPolicyAdmitsItsProofsOnly compares Admits with a list of what must be equal.
func TestPolicyAdmitsItsProofsOnly(t *testing.T) {
	t.Parallel()
	keys := []Key{newEd25519(t, 1), newEd25519(t, 2)}
	rapid.Check(t, func(t *rapid.T) {
		p, proof := drawPolicy(t, keys), drawProof(t, keys)
		now := draftTime.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "hours")) * time.Hour)
		want := p.Method == proof.Method && (p.ExpiresAt.IsZero() || now.Before(p.ExpiresAt))
		if p.Method == DNS || p.Method == HTTP {
			want = want && p.Domain.String() == proof.Domain.String() &&
				strings.HasPrefix(proof.Key.String(), p.Fingerprint.String())
		} else {
			want = want && p.Issuer == proof.Identity.Issuer &&
				subjectExpression(p.Subject.String()).MatchString(proof.Identity.Subject)
			for _, wanted := range []map[string]string{p.Claims, p.Bound} {
				for name := range wanted {
					want = want && wanted[name] == proof.Identity.Claims[name]
				}
			}
		}
		if m := p.Admits(&proof, now, week); (m == "") != want {
			t.Fatalf("policy %+v and proof %+v: %q, want it admitted: %t", p, proof, m, want)
		}
	})
}

// drawPolicy returns a valid policy, which may have been used.
func drawPolicy(t *rapid.T, keys []Key) Policy {
	m := rapid.SampledFrom([]Method{DNS, HTTP, OIDC, GitHubOIDC}).Draw(t, "method of policy")
	d := Draft{Method: string(m), Pattern: "a.a/*"}
	if m.ByDomain() {
		d.Domain = "a.a"
		if rapid.Bool().Draw(t, "pinned") {
			d.KeyFingerprint = rapid.SampledFrom(keys).Draw(t, "pinned key").Fingerprint()
		}
	} else {
		d.Subject = rapid.SampledFrom([]string{"", "repo:a/*", "repo:a/a:*", "repo:a/*:a", "repo:a/a:a"}).
			Draw(t, "pattern")
		d.Claims = drawClaims(t, 1)
		d.Claims["repository_owner"] = "a"
	}
	if m == OIDC {
		d.Issuer = rapid.SampledFrom(draftRules.Issuers).Draw(t, "issuer of policy")
	}
	if rapid.Bool().Draw(t, "expires") {
		d.ExpiresAt = draftTime.Add(2 * time.Hour)
	}
	p, err := NewPolicy(d, draftRules, draftTime)
	must.Succeed(t, err)
	if proof := drawProof(t, keys); rapid.Bool().Draw(t, "used") && p.Compare(&proof) == "" {
		p, _ = p.Use(&proof, draftTime)
	}
	return p
}

func drawProof(t *rapid.T, keys []Key) Proof {
	proof := Proof{Method: rapid.SampledFrom([]Method{DNS, HTTP, OIDC, GitHubOIDC}).Draw(t, "method")}
	if proof.Method.ByDomain() {
		proof.Domain = Domain{rapid.SampledFrom([]string{"a.a", "a.a.a", "b.a"}).Draw(t, "domain")}
		proof.Key = rapid.SampledFrom(keys).Draw(t, "key")
		return proof
	}
	issuers := append([]string{draftRules.GitHubIssuer}, draftRules.Issuers...)
	proof.Identity = Identity{
		Issuer:  rapid.SampledFrom(issuers).Draw(t, "issuer"),
		Subject: rapid.StringMatching(`repo:[ab]/[ab](:[ab])?`).Draw(t, "subject"),
		Claims:  drawClaims(t, 6),
	}
	proof.Identity.Claims["repository_owner"] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner")
	return proof
}

func drawClaims(t *rapid.T, most int) map[string]string {
	names := rapid.SampledFrom([]string{"ref", "repository_id", "repository_owner_id"})
	return rapid.MapOfN(names, rapid.SampledFrom([]string{"1", "2"}), 0, min(most, 3)).Draw(t, "claims")
}

// TestClaimsAreComparedExactly changes one byte of one claim of a token that a policy admits.
func TestClaimsAreComparedExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		claims := rapid.MapOfN(rapid.StringMatching(`[a-z_]{1,9}`), rapid.StringMatching(`[ -)+-~]{1,12}`), 1, 4).
			Draw(t, "claims")
		d := goodDraft(OIDC)
		d.Claims = claims
		p, err := NewPolicy(d, draftRules, draftTime)
		must.Succeed(t, err)
		proof := Proof{
			Method: OIDC, Identity: Identity{
				Issuer: d.Issuer, Subject: "project:acme/tools", Claims: maps.Clone(claims),
			},
		}
		if m := p.Compare(&proof); m != "" {
			t.Fatalf("a token with exactly the claims: %s", m)
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(claims))).Draw(t, "claim")
		value := []byte(claims[name])
		value[rapid.IntRange(0, len(value)-1).Draw(t, "position")] ^= rapid.ByteMin(1).Draw(t, "change")
		proof.Identity.Claims[name] = string(value)
		if m := p.Compare(&proof); m != OtherProof {
			t.Fatalf("a token with %s %q in place of %q: %q", name, value, claims[name], m)
		}
	})
}

func BenchmarkAdmits(b *testing.B) {
	policies := make([]Policy, 1000)
	for n := range policies {
		d := goodDraft(GitHubOIDC)
		d.Subject = fmt.Sprintf("repo:acme/tools-%d-*:ref:refs/heads/*", n)
		policies[n] = mustPolicy(b, d)
	}
	proof := gitHubProof()
	proof.Identity.Subject = "repo:acme/tools-999-a:ref:refs/heads/main"
	for b.Loop() {
		var admitted []registry.Pattern
		for n := range policies {
			if policies[n].Admits(&proof, draftTime, week) == "" {
				admitted = append(admitted, policies[n].Pattern)
			}
		}
		if len(admitted) != 1 {
			b.Fatalf("%d policies admit the proof", len(admitted))
		}
	}
}

// wantEqual checks that both are deeply equal.
func wantEqual[V any](t *testing.T, got, want V, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}

// parse returns the value of a text that has no defect.
func parse[V any](t testing.TB, parser func(string) (V, error), text string) V {
	t.Helper()
	v, err := parser(text)
	must.Succeed(t, err)
	return v
}
