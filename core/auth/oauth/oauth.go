// Package oauth is the model of the authorization server (contract T-1 to T-24): clients, resources,
// authorization requests, and the families of tokens that come of them. It does no I/O; package
// authorizing has the use cases.
package oauth

import (
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// The error codes of RFC 6749, RFC 8707, RFC 9470 and RFC 7009, as clients get them.
const (
	CodeInvalidRequest          fault.Code = "invalid_request"
	CodeInvalidClient           fault.Code = "invalid_client"
	CodeInvalidGrant            fault.Code = "invalid_grant"
	CodeUnauthorizedClient      fault.Code = "unauthorized_client"
	CodeUnsupportedGrantType    fault.Code = "unsupported_grant_type"
	CodeUnsupportedResponseType fault.Code = "unsupported_response_type"
	CodeInvalidScope            fault.Code = "invalid_scope"
	CodeInvalidTarget           fault.Code = "invalid_target"
	CodeAccessDenied            fault.Code = "access_denied"
	CodeLoginRequired           fault.Code = "login_required"
	CodeConsentRequired         fault.Code = "consent_required"
	CodeUnmetAuthentication     fault.Code = "unmet_authentication_requirements"
	CodeTemporarilyUnavailable  fault.Code = "temporarily_unavailable"

	// CodeDocumentAway is of the document of a client that cannot be read now. Clients do not get it.
	CodeDocumentAway fault.Code = "document_away"
)

// Refuse returns the refusal of a request of a client: fault.Unauthenticated for CodeInvalidClient, and
// fault.Invalid for every other code.
func Refuse(code fault.Code, format string, args ...any) *fault.Error {
	kind := fault.Invalid
	if code == CodeInvalidClient {
		kind = fault.Unauthenticated
	}
	return fault.Newf(kind, format, args...).WithCode(code)
}

// TokenPath is the path of the token endpoint, below the issuer.
const TokenPath = "/oauth2/token"

// The scopes of this registry as a resource (contract T-3).
const (
	ScopeRead  = "mcp-registry:read"
	ScopeWrite = "mcp-registry:write"
)

// maxResource is the greatest length of a URL.
const maxResource = 2048

// CanonicalURL returns the URL of a resource as it is compared (contract T-9), as toolserver.CanonicalURL
// does.
func CanonicalURL(text string) (string, bool) { return toolserver.CanonicalURL(text) }

// isPrintable reports whether a text has only visible characters of ASCII.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
