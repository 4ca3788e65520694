package auth_test

import (
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/test/must"
)

var made = time.Date(2026, time.November, 21, 12, 0, 30, 0, time.UTC)

func issue(owner auth.Owner, random [32]byte) (auth.APIToken, auth.APISecret) {
	return auth.APIToken{Owner: owner}.Issue(random)
}

// TestAPISecretVectors compares tokens with those that another implementation has computed.
func TestAPISecretVectors(t *testing.T) {
	t.Parallel()
	var counted, ones [32]byte
	for i := range counted {
		counted[i], ones[i] = byte(i), 0xff
	}
	for want, random := range map[string][32]byte{
		"tgp_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf0Ibh1j": counted,
		"tgs_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf0s73QQ": counted,
		"tgp_000000000000000000000000000000000000000000017jAMh": {},
		"tgp_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp12lKjFP": ones,
	} {
		owner := auth.Owner("anna")
		if strings.HasPrefix(want, "tgs_") {
			owner = auth.ServiceOwner("ci")
		}
		token, got := issue(owner, random)
		if string(got) != want || !got.IsWellFormed() || token.Prefix != want[:12] ||
			token.Hash != auth.HashSecret(got) {
			t.Errorf("%s of %+v, want %s", string(got), token, want)
		}
		if text := fmt.Sprintf("%v %#v %s", got, got, got); strings.Contains(text, "tg") {
			t.Errorf("a token prints as %s", text)
		}
	}
}

// TestAPISecretProperties checks the form of every token, that it contains the random bits, and that
// another character in any place makes it malformed.
func TestAPISecretProperties(t *testing.T) {
	t.Parallel()
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	rapid.Check(t, func(t *rapid.T) {
		random := [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "random"))
		_, secret := issue("anna", random)
		text := string(secret)
		if len(text) != 53 || !secret.IsWellFormed() {
			t.Fatalf("the token is %q", text)
		}
		number := new(big.Int)
		for _, digit := range text[4:47] {
			number.Add(number.Mul(number, big.NewInt(62)), big.NewInt(int64(strings.IndexRune(digits, digit))))
		}
		if number.Cmp(new(big.Int).SetBytes(random[:])) != 0 {
			t.Fatalf("the body of %q is %x, want %x", text, number, random)
		}
		place := rapid.IntRange(0, 52).Draw(t, "place")
		other := rapid.SampledFrom([]byte(digits+"_-+é")).Draw(t, "character")
		changed := text[:place] + string(other) + text[place+1:]
		if changed != text && auth.APISecret(changed).IsWellFormed() {
			t.Fatalf("%q with %q in place %d is well-formed", text, other, place)
		}
	})
}

// FuzzAPISecret checks that only what a token can be is well-formed.
func FuzzAPISecret(f *testing.F) {
	for _, seed := range []string{
		"", "tgp_", "tgs_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf0s73QQ",
		"tgp_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf0s73QQ", "tgp_000000000000000000000000000000000000000000017jAMh",
		"TGP_000000000000000000000000000000000000000000017jAMh", "tgp_ééééééééééééééééééééé0000000",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !auth.APISecret(text).IsWellFormed() {
			return
		}
		if len(text) != 53 || !auth.IsAPISecret(text) || strings.ContainsFunc(text[4:], func(r rune) bool {
			return !strings.ContainsRune("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", r)
		}) {
			t.Errorf("%q is well-formed", text)
		}
	})
}

func draft() auth.APITokenDraft {
	return auth.APITokenDraft{Name: "deploy", Scopes: []string{"registry:publish"}}
}

// TestNewAPIToken checks the defaults and the bounds of each field.
func TestNewAPIToken(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	d := draft()
	d.Name, d.Networks = " déploy ", []string{"192.0.2.77/24", "2001:db8::/32"}
	got, err := auth.NewAPIToken(d, made)
	if err != nil || got.Name != "déploy" || !got.ExpiresAt.Equal(made.Add(90*day)) ||
		got.Networks[0] != netip.MustParsePrefix("192.0.2.0/24") || got.Scopes.String() != string(scope.Publish) {
		t.Errorf("the token is %+v, error %v", got, err)
	}
	many := slices.Repeat([]string{"192.0.2.0/24"}, 21)
	for problem, change := range map[string]func(*auth.APITokenDraft){
		"":                          func(d *auth.APITokenDraft) { d.Name = strings.Repeat("é", 64) },
		"name no":                   func(d *auth.APITokenDraft) { d.Name = "  " },
		"name long":                 func(d *auth.APITokenDraft) { d.Name = strings.Repeat("é", 65) },
		"name control":              func(d *auth.APITokenDraft) { d.Name = "a\tb" },
		"name text":                 func(d *auth.APITokenDraft) { d.Name = "a\xff" },
		"scopes none":               func(d *auth.APITokenDraft) { d.Scopes = nil },
		"scopes unknown":            func(d *auth.APITokenDraft) { d.Scopes = []string{"everything"} },
		"networks many":             func(d *auth.APITokenDraft) { d.Networks = many },
		"networks address":          func(d *auth.APITokenDraft) { d.Networks = []string{"192.0.2.1"} },
		" a day":                    func(d *auth.APITokenDraft) { d.ExpiresAt = made.Add(day) },
		" a year":                   func(d *auth.APITokenDraft) { d.ExpiresAt = made.Add(365 * day) },
		" 20 networks":              func(d *auth.APITokenDraft) { d.Networks = many[:20] },
		"expiresAt less than a day": func(d *auth.APITokenDraft) { d.ExpiresAt = made.Add(day - 2*time.Minute) },
		"expiresAt past":            func(d *auth.APITokenDraft) { d.ExpiresAt = made.Add(-day) },
		"expiresAt over a year":     func(d *auth.APITokenDraft) { d.ExpiresAt = made.Add(365*day + 2*time.Minute) },
	} {
		d := draft()
		change(&d)
		field, _, _ := strings.Cut(problem, " ")
		_, err := auth.NewAPIToken(d, made)
		f, _ := fault.As(err)
		if (err == nil) != (field == "") || err != nil && (f.Kind != fault.Invalid || f.Code != auth.CodeValidation ||
			f.Details.Inner("fields").Text(field) == "") {
			t.Errorf("%s: %v", problem, err)
		}
	}
	_, err = auth.NewAPIToken(auth.APITokenDraft{ExpiresAt: made, Networks: []string{"x"}}, made)
	if f, _ := fault.As(err); len(slices.Collect(maps.Keys(f.Details.Inner("fields")))) != 4 {
		t.Errorf("a draft with four problems: %v", err)
	}
}

// TestNotices checks when the end of a token is announced: 14 and 2 days before, but not if it lives
// shorter.
func TestNotices(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for lifetime, want := range map[time.Duration][]time.Duration{
		90 * day: {14 * day, 2 * day}, 14*day + time.Hour: {14 * day, 2 * day}, 14 * day: {2 * day}, 3 * day: {2 * day},
		2 * day: nil, day: nil,
	} {
		d := draft()
		d.ExpiresAt = made.Add(lifetime)
		token, err := auth.NewAPIToken(d, made)
		must.Succeed(t, err)
		var got []time.Duration
		for at := token.NoticeAt; !at.IsZero(); at = token.NextNotice(at) {
			got = append(got, token.ExpiresAt.Sub(at))
		}
		wantEqual(t, got, want, "a token for %s is announced", lifetime)
	}
}

// TestAdmits checks the networks of a token.
func TestAdmits(t *testing.T) {
	t.Parallel()
	limited := auth.APIToken{Networks: []netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("fe80::/10"),
	}}
	for address, want := range map[string]bool{
		"192.0.2.1": true, "::ffff:192.0.2.1": true, "192.0.3.1": false, "fe80::1%eth0": true, "2001:db8::1": false,
	} {
		wantEqual(t, limited.Admits(netip.MustParseAddr(address)), want, "from %s", address)
		if !new(auth.APIToken).Admits(netip.MustParseAddr(address)) {
			t.Errorf("a token without networks is not good from %s", address)
		}
	}
	if limited.Admits(netip.Addr{}) {
		t.Error("a token with networks is good from an unknown address")
	}
}
