// Package ownership is the port through which publishing checks that a package names the server
// that lists it. It knows no package registry.
//
// [github.com/tollgate-dev/tollgate/ports/ownership/ownershiptest] has the contract tests.
package ownership

import (
	"context"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Codes of the faults that a checker returns.
const (
	// CodeInvalidClaim marks a claim that is incomplete or too long.
	CodeInvalidClaim fault.Code = "invalid_claim"
	// CodeNotOwned marks a claim that the package registry does not confirm.
	CodeNotOwned fault.Code = "package_not_owned"
	// CodeUnsupportedType marks a registry type without a checker.
	CodeUnsupportedType fault.Code = "unsupported_registry_type"
	// CodeCheckFailed marks a check that could not be made.
	CodeCheckFailed fault.Code = "package_check_failed"
)

// MaxField is the maximum length of each part of a claim, in characters.
const MaxField = 2048

// Claim is what a server document says about one of its packages.
type Claim struct {
	// ServerName is the full name of the server that the package must claim. Required.
	ServerName string
	// RegistryType names the kind of package registry, for example "npm" or "oci". Required.
	RegistryType string
	// RegistryBaseURL is the registry that the document names; empty for the public one of its
	// type.
	RegistryBaseURL string
	// Identifier is the package's name, or its address if the type has no names. Required.
	Identifier string
	// Version is the package's version; empty if the identifier contains it.
	Version string
	// FileSHA256 is the checksum of the package file in lower-case hexadecimal. Optional.
	FileSHA256 string
}

// Checker checks claims against package registries.
type Checker interface {
	// Check returns nil if the package exists and names the server. It is safe for concurrent use.
	// It returns within its own deadline even if ctx has no deadline. It keeps no state between
	// calls.
	//
	// Errors are faults:
	//   - Invalid if the package or the version does not exist, or the package does not name the
	//     server; the message is different for each. Also if the claim is incomplete (contract R-57);
	//   - Unsupported if no plugin checks c.RegistryType; the message lists the types with a checker;
	//   - Unavailable if the check could not be made and a later call may succeed, also if ctx ended;
	//     then errors.Is(err, ctx.Err()) is true.
	Check(ctx context.Context, c Claim) error

	// Types returns the registry types that can be checked, sorted, without duplicates. It does not
	// block. A type whose checker has never started is missing.
	Types() []string
}

// Validate returns fault.Invalid if a required part is missing, or a part is too long or has a
// control character.
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
			return fault.Newf(fault.Invalid, "%s of the package is missing", part.name).WithCode(CodeInvalidClaim)
		}
		if !isBoundedText(part.value) {
			return fault.Newf(fault.Invalid, "%s of the package is too long or has a control character", part.name).
				WithCode(CodeInvalidClaim)
		}
	}
	return nil
}

// isBoundedText reports whether s is UTF-8 of at most MaxField characters, without control
// characters.
func isBoundedText(s string) bool {
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
