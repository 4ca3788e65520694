// Package authapi serves adaptive authentication: everything below /auth, devices, sessions, the
// audit log and the keys that verify access tokens (contract A-1). It reads and writes JSON and
// requires the trust level of each endpoint; what an endpoint does is up to the use cases that it
// calls.
package authapi

import (
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// Codes for failures that are not particular to authentication (contract A-2).
const (
	codeUnavailable fault.Code = "service_unavailable" // 503: a dependency is away, try again
	codeMethod      fault.Code = "method_not_allowed"  // 405
	codeConflict    fault.Code = "conflict"            // 409: what is stored has changed meanwhile
	codeUnsupported fault.Code = "not_implemented"     // 501: this service, as it is set up, does not do this
)

const (
	root     = "/auth"
	devices  = "/devices"
	sessions = "/sessions"
	auditLog = "/audit-logs"
	keySet   = "/.well-known/jwks.json"

	ownSessionPath = root + "/session"
)

// API is the authentication part of the API.
type API struct {
	access      Access
	signIn      SignIn
	credentials Credentials
	stepUp      StepUp
	devices     Devices
	trail       Trail
	keys        authstore.PublishedKeys
}

// UseCases are what the endpoints call.
type UseCases struct {
	Access      Access
	SignIn      SignIn
	Credentials Credentials
	StepUp      StepUp
	Devices     Devices
	Trail       Trail
	Keys        authstore.PublishedKeys
}

// New returns the authentication part of the API.
func New(u UseCases) *API {
	return &API{
		access: u.Access, signIn: u.SignIn, credentials: u.Credentials, stepUp: u.StepUp, devices: u.Devices,
		trail: u.Trail, keys: u.Keys,
	}
}

// Mount adds the routes of contract A-1.
func (a *API) Mount(r fiber.Router) {
	r.Post(root+"/login", a.login)
	r.Post(root+"/refresh", a.refresh)
	r.Post(root+"/logout", a.signedIn(auth.HighRisk, a.logout))
	r.Get(ownSessionPath, a.signedIn(auth.HighRisk, a.session))

	r.Post(root+"/password", a.signedIn(auth.FullTrust, a.changePassword))
	r.Post(root+"/mfa/verify", a.verifyMFA)
	r.Post(root+"/mfa/enroll", a.signedIn(auth.FullTrust, a.enrol))
	r.Post(root+"/mfa/activate", a.signedIn(auth.FullTrust, a.activate))
	r.Post(root+"/mfa/disable", a.signedIn(auth.FullTrust, a.disableMFA))

	r.Post(root+"/step-up/initiate", a.signedIn(auth.Unverified, a.initiate))
	r.Post(root+"/step-up/verify", a.verify)
	r.Post(root+"/step-up/resend", a.resend)

	r.Get(devices, a.signedIn(auth.Unverified, a.listDevices))
	r.Put(devices+"/:id/trust", a.signedIn(auth.Unverified, a.markDevice))
	r.Delete(devices+"/:id", a.signedIn(auth.Unverified, a.revokeDevice))

	r.Get(sessions, a.signedIn(auth.Unverified, a.listSessions))
	r.Delete(sessions+"/:id", a.signedIn(auth.Unverified, a.endSession))

	r.Get(auditLog, a.signedIn(auth.Unverified, a.searchLog))
	r.Get(keySet, a.keySet)
}

// Name implements rest.Part.
func (*API) Name() string { return "auth" }

// Owns reports whether the path is one of this part.
func (a *API) Owns(path string) bool {
	for _, prefix := range [...]string{root, devices, sessions, auditLog} {
		if below(path, prefix) {
			return true
		}
	}
	return path == keySet
}

// Scope returns the limit of /auth for everything below it, and that of the other endpoints for the
// rest (contract A-52). Reading one's own session counts among the rest: gateways do it for each
// request, and nobody can guess anything by it.
func (a *API) Scope(method, path string) throttle.Scope {
	if path == ownSessionPath && (method == http.MethodGet || method == http.MethodHead) {
		return throttle.APIAddress
	}
	if below(path, root) {
		return throttle.AuthAddress
	}
	return throttle.APIAddress
}

func below(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// failure is the body of an error (contract A-2).
type failure struct {
	Error   fault.Code     `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// WriteFault writes an error with its code; details is an object, always.
func (a *API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	details := maps.Clone(f.Details)
	if details == nil {
		details = map[string]any{}
	}
	delete(details, "challenge") // stands in WWW-Authenticate
	delete(details, "limit")     // stands in X-RateLimit-Limit
	if f.Kind == fault.Exhausted || f.Kind == fault.Unavailable {
		details["retryAfter"] = rest.RetrySeconds(f.RetryAfter)
	}
	return answer(c, failure{codeOf(f, c.Response().StatusCode()), f.Message, details})
}

// codeOf returns the code of a failure: its own, or what its kind is called.
func codeOf(f *fault.Error, status int) fault.Code {
	if f.Code != "" {
		return f.Code
	}
	switch f.Kind {
	case fault.Invalid:
		if status == http.StatusMethodNotAllowed {
			return codeMethod
		}
		return auth.CodeInvalidInput
	case fault.Unauthenticated:
		return auth.CodeInvalidToken
	case fault.Forbidden:
		return auth.CodeAccessDenied
	case fault.NotFound:
		return auth.CodeNotFound
	case fault.Conflict:
		return codeConflict
	case fault.Exhausted:
		return auth.CodeRateLimit
	case fault.Unsupported:
		return codeUnsupported
	case fault.Unavailable:
		return codeUnavailable
	default:
		return auth.CodeInternal
	}
}

// answer writes a body that no cache may keep: it concerns one person alone,
// and may hold tokens.
func answer(c *fiber.Ctx, body any) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(body)
}

// done is the answer of an endpoint that has nothing but a sentence to say.
type done struct {
	Message string `json:"message"`
}

// instant writes a time in ISO 8601, UTC, with milliseconds.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
