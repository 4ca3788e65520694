package company_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
)

// TestWays checks what leads in, if everything else is taken away.
func TestWays(t *testing.T) {
	t.Parallel()
	const issuer = "https://login.example"
	password := auth.Account{Email: "ada@acme.example", PasswordHash: "hash"}
	there := company.Provider{Name: "acme", Issuer: issuer, Domains: []string{"acme.example"}}
	enforced := there
	enforced.Enforce = true
	good, suspended := auth.Passkey{ID: "1"}, auth.Passkey{ID: "2", SuspendedAt: time.Unix(1, 0)}
	for name, test := range map[string]struct {
		ways         company.Ways
		provider     company.Provider
		passwordsOff bool
		want         bool
	}{
		"nothing":                             {company.Ways{}, there, false, false},
		"a password":                          {company.Ways{Account: password}, there, false, true},
		"a password, and none is accepted":    {company.Ways{Account: password}, there, true, false},
		"a password of an enforced domain":    {company.Ways{Account: password}, enforced, false, false},
		"a password of another domain":        {company.Ways{Account: auth.Account{Email: "a@example.com", PasswordHash: "h"}}, enforced, false, true},
		"an identity":                         {company.Ways{Identities: []company.Identity{{Issuer: issuer}}}, there, false, true},
		"an identity without its provider":    {company.Ways{Identities: []company.Identity{{Issuer: issuer + "/"}}}, there, false, false},
		"a second identity with its provider": {company.Ways{Identities: []company.Identity{{Issuer: "x"}, {Issuer: issuer}}}, there, true, true},
		"a passkey":                           {company.Ways{Passkeys: []auth.Passkey{good}}, enforced, true, true},
		"a suspended passkey":                 {company.Ways{Passkeys: []auth.Passkey{suspended}}, there, false, false},
		"one passkey of two":                  {company.Ways{Passkeys: []auth.Passkey{suspended, good}}, there, false, true},
	} {
		if got := test.ways.Any([]company.Provider{{Issuer: "https://other.example"}, test.provider}, test.passwordsOff); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
