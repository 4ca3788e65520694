// Package ownership is the port through which publishing asks whether a package claims the server that names it. It says what
// is asked and answered; it knows no package registry.
//
// Answers to the port are checked by [github.com/tollgate-dev/tollgate/ports/ownership/ownershiptest].
package ownership

import (
	"context"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Codes of the faults that a checker answers with.
const (
	// CodeInvalidClaim marks a claim that is incomplete or too long.
	CodeInvalidClaim fault.Code = "invalid_claim"
	// CodeNotOwned marks a claim that the package registry does not bear out.
	CodeNotOwned fault.Code = "package_not_owned"
	// CodeUnsupportedType marks a registry type that nothing can check.
	CodeUnsupportedType fault.Code = "unsupported_registry_type"
	// CodeCheckFailed marks a check that could not be made.
	CodeCheckFailed fault.Code = "package_check_failed"
)

// MaxField bounds each part of a claim, in characters.
const MaxField = 2048

// Claim is what a server document says of one of its packages.
type Claim struct {
	// ServerName is the full name of the server that the package must claim. Required.
	ServerName string
	// RegistryType names the kind of package registry, such as "npm" or "oci". Required.
	RegistryType string
	// RegistryBaseURL is the registry as the document names it; empty for the public one of its type.
	RegistryBaseURL string
	// Identifier is the package's name, or its address where the type has no names. Required.
	Identifier string
	// Version is the package's version; empty where the identifier holds it.
	Version string
	// FileSHA256 is the sum of the package file in lower-case hexadecimal; empty where the document gives none.
	FileSHA256 string
}

// Checker asks package registries whether they bear claims out.
type Checker interface {
	// Check returns nil when the package exists and claims the server. It may be called from many goroutines at once, and
	// ends within its own deadline even when ctx has none. Nothing is remembered between calls.
	//
	// Errors are faults:
	//   - Invalid when the package is not there, the version is not there, or it does not claim the server, each told apart
	//     by the sentence; also when the claim itself is incomplete (contract R-57);
	//   - Unsupported when no plugin checks c.RegistryType; the sentence names the types there are;
	//   - Unavailable when no verdict was reached and a later call may reach one, the end of ctx included; then the error
	//     also matches ctx.Err() by errors.Is.
	Check(ctx context.Context, c Claim) error

	// Types lists the registry types that can be checked, sorted, without duplicates. It does not block; a type whose checker
	// never came up is missing.
	Types() []string
}

// Validate checks that the required parts are there and that no part is too long or has a control character. The error is a
// fault of kind Invalid.
func (c Claim) Validate() error {
	parts := []struct {
		name, value string
		required    bool
	}{
		{"server name", c.ServerName, true},
		{"registry type", c.RegistryType, true},
		{"registry base URL", c.RegistryBaseURL, false},
		{"identifier", c.Identifier, true},
		{"version", c.Version, false},
		{"file SHA-256", c.FileSHA256, false},
	}
	for _, part := range parts {
		if part.required && part.value == "" {
			return fault.Newf(fault.Invalid, CodeInvalidClaim, "%s of the package is missing", part.name)
		}
		if !plain(part.value) {
			return fault.Newf(fault.Invalid, CodeInvalidClaim, "%s of the package is too long or has a control character", part.name)
		}
	}
	return nil
}

func plain(s string) bool {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > MaxField {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}
