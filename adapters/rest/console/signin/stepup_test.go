package signin

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
)

// TestDescribeRoute checks that a page shows enough of a recipient to know it, and no more.
func TestDescribeRoute(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]stepup.Route{
		"Send a code to a…@example.com":                         {Method: auth.EmailOTP, Recipient: "ada@example.com"},
		"Send a code to é…@example.com":                         {Method: auth.EmailOTP, Recipient: "éva@example.com"},
		"Send a code to a@example.com":                          {Method: auth.EmailOTP, Recipient: "a@example.com"},
		"Send a code to the telephone number that ends with 61": {Method: auth.SMSOTP, Recipient: "+441632960961"},
		"Send a code to the telephone number that ends with 1":  {Method: auth.SMSOTP, Recipient: "1"},
		"Use the authenticator app":                             {Method: auth.AuthenticatorApp},
	} {
		if got := describeRoute(r); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}
