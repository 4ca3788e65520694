package ownership_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/ownership"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	whole := ownership.Claim{
		ServerName: "com.example/weather", RegistryType: "npm", RegistryBaseURL: "https://packages.example.com",
		Identifier: "@example/weather", Version: "1.2.3", FileSHA256: strings.Repeat("a", 64),
	}
	cases := map[string]struct {
		change func(*ownership.Claim)
		want   string
	}{
		"whole": {func(*ownership.Claim) {}, ""},
		"only what is required": {
			func(c *ownership.Claim) { c.RegistryBaseURL, c.Version, c.FileSHA256 = "", "", "" }, "",
		},
		"longest identifier": {
			func(c *ownership.Claim) { c.Identifier = strings.Repeat("é", ownership.MaxField) }, "",
		},
		"no server name": {
			func(c *ownership.Claim) { c.ServerName = "" }, "server name of the package is missing",
		},
		"no type": {
			func(c *ownership.Claim) { c.RegistryType = "" }, "registry type of the package is missing",
		},
		"no identifier": {
			func(c *ownership.Claim) { c.Identifier = "" }, "identifier of the package is missing",
		},
		"identifier too long": {
			func(c *ownership.Claim) { c.Identifier = strings.Repeat("x", ownership.MaxField+1) },
			"identifier of the package is too long",
		},
		"version with NUL": {
			func(c *ownership.Claim) { c.Version = "1\x00" }, "version of the package is too long or has",
		},
		"sum not UTF-8": {func(c *ownership.Claim) { c.FileSHA256 = "\xff" }, "file SHA-256 of the package"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := whole
			c.change(&claim)
			err := claim.Validate()
			if c.want == "" {
				if err != nil {
					t.Fatalf("Validate() = %v, want none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) != fault.Invalid {
				t.Fatalf("Validate() = %v, want an invalid one with %q", err, c.want)
			}
		})
	}
}
