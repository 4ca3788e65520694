package auth

import (
	"cmp"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// The error codes (contract A-2).
const (
	CodeInvalidInput       fault.Code = "invalid_input"
	CodeValidation                    = fault.ValidationError
	CodeInvalidCredentials fault.Code = "invalid_credentials"
	CodeInvalidToken       fault.Code = "invalid_token"
	CodeTokenExpired       fault.Code = "token_expired"
	CodeInvalidMFA         fault.Code = "invalid_mfa"
	CodeInvalidOTP         fault.Code = "invalid_otp"
	CodeAccountLocked      fault.Code = "account_locked"
	CodeInsufficientTrust  fault.Code = "insufficient_trust"
	CodeAccessDenied       fault.Code = "access_denied"
	CodePending            fault.Code = "authorization_pending" // of RFC 8628, like the next
	CodeSlowDown           fault.Code = "slow_down"
	CodeCompanyOnly        fault.Code = "company_sign_in_required"
	CodeNotFound           fault.Code = "resource_not_found"
	CodeRateLimit          fault.Code = "rate_limit_exceeded"
	CodeInternal           fault.Code = "internal_error"
)

// usualCodes are those of errors that have no code of their own. Some are not specific to
// authentication.
var usualCodes = map[fault.Kind]fault.Code{
	fault.Invalid: CodeInvalidInput, fault.Unauthenticated: CodeInvalidToken, fault.Forbidden: CodeAccessDenied,
	fault.NotFound: CodeNotFound, fault.Conflict: "conflict", fault.Stale: "precondition_failed", fault.Exhausted: CodeRateLimit,
	fault.Unsupported: "not_implemented", fault.Unavailable: "service_unavailable",
}

// CodeOf returns the code of an error: its own, or the code of its kind.
func CodeOf(f *fault.Error) fault.Code { return cmp.Or(f.Code, usualCodes[f.Kind], CodeInternal) }
