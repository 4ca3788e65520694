// Package authapi serves adaptive authentication: everything below /auth, devices, sessions, the
// audit log and the keys that verify access tokens (contract A-1). It reads and writes JSON and
// requires the trust level of each endpoint. The use cases that it calls do the rest.
package authapi

import (
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/joining"
	"github.com/tollgate-dev/tollgate/core/auth/pairing"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const codeMethod fault.Code = "method_not_allowed" // 405

const (
	root         = "/auth"
	devicesPath  = "/devices"
	sessionsPath = "/sessions"
	auditLog     = "/audit-logs"
	keySet       = "/.well-known/jwks.json"

	ownSessionPath = root + "/session"
	companyPrefix  = root + "/company/"
	pollPath       = root + "/login/code"
)

// API is the authentication part of the API.
type API struct{ use UseCases }

// UseCases are the use cases that the endpoints call. All are required.
type UseCases struct {
	Access      *access.Checker
	Refusals    *auditing.Refusals
	SignIn      SignIn
	Credentials *credentials.Service
	Joining     *joining.Service
	StepUp      *stepup.Service
	Devices     *devices.Service
	Trail       *auditing.Trail
	Keys        authstore.PublishedKeys
	Workloads   *delegating.Prover
	Companies   *federating.Service
	Passkeys    *passkeys.Service
	Pairing     *pairing.Service
}

// New returns the authentication part of the API.
func New(u UseCases) *API { return &API{u} }

// Mount adds the routes of contract A-1.
func (a *API) Mount(r fiber.Router) {
	r.Post(root+"/login", withBody(a.logIn))
	r.Post(root+"/login/device", withBody(a.beginDevice))
	r.Post(pollPath, withBody(a.pollDevice))
	r.Post(root+"/refresh", withBody(a.refreshTokens))
	r.Post(root+"/workload", withBody(a.proveWorkload))
	r.Post(root+"/logout", a.requireSession(auth.HighRisk, callerWithBody(a.logOut)))
	r.Get(ownSessionPath, a.requireSession(auth.HighRisk, a.getSession))

	r.Post(root+"/password", a.requireSession(auth.FullTrust, callerWithBody(a.changePassword)))
	r.Post(root+"/password/forgot", withBody(a.forgotPassword))
	r.Post(root+"/password/reset", withBody(a.resetPassword))
	r.Post(root+"/mfa/verify", withBody(a.verifyMFA))
	r.Post(root+"/mfa/enroll", a.requireSession(auth.FullTrust, a.enrolMFA))
	r.Post(root+"/mfa/activate", a.requireSession(auth.FullTrust, a.activateMFA))
	r.Post(root+"/mfa/disable", a.requireSession(auth.FullTrust, a.disableMFA))

	r.Get(root+"/providers", a.listProviders)
	r.Post(companyPrefix+":name/logout", a.logOutAtCompany)
	r.Get(root+"/identities", a.requireSession(auth.Unverified, a.listIdentities))
	r.Delete(root+"/identities/:id", a.requireSession(auth.FullTrust, withID(a.removeIdentity)))

	r.Post(root+"/step-up/initiate", a.requireSession(auth.Unverified, callerWithBody(a.initiateStepUp)))
	r.Post(root+"/step-up/verify", withBody(a.verifyStepUp))
	r.Post(root+"/step-up/resend", withBody(a.resendStepUp))

	a.mountPasskeys(r)

	r.Get(devicesPath, a.requireSession(auth.Unverified, a.listDevices))
	r.Put(devicesPath+"/:id/trust", a.requireSession(auth.Unverified, callerWithBody(a.markDevice)))
	r.Put(devicesPath+"/:id/name", a.requireSession(auth.Unverified, callerWithBody(a.renameDevice)))
	r.Delete(devicesPath+"/:id", a.requireSession(auth.Unverified, withID(a.revokeDevice)))

	r.Get(sessionsPath, a.requireSession(auth.Unverified, a.listSessions))
	r.Delete(sessionsPath+"/:id", a.requireSession(auth.Unverified, withID(a.endSession)))

	r.Get(auditLog, a.requireSession(auth.Unverified, a.searchLog))
	r.Get(keySet, a.listKeys)
}

// Name implements rest.Part.
func (*API) Name() string { return "auth" }

// Owns implements rest.Part.
func (a *API) Owns(path string) bool {
	for _, prefix := range [...]string{root, devicesPath, sessionsPath, auditLog} {
		if isBelow(path, prefix) {
			return true
		}
	}
	return path == keySet
}

// Scope implements rest.Part: paths below /auth have a limit of their own (contract A-52). Reading
// the own session counts against the limit of the other endpoints, because gateways do it for each
// request and it does not help to guess a secret; so do polls of commands, whose secret has 256 bits.
func (a *API) Scope(method, path string) throttle.Scope {
	if path == ownSessionPath && (method == http.MethodGet || method == http.MethodHead) || path == pollPath {
		return throttle.APIAddress
	}
	if isBelow(path, root) && !strings.HasPrefix(path, companyPrefix) { // a provider ends sessions of many people
		return throttle.AuthAddress
	}
	return throttle.APIAddress
}

// MaxBody implements rest.Part.
func (*API) MaxBody(_, path string) int {
	if strings.HasPrefix(path, companyPrefix) {
		return rest.MaxRecordBody
	}
	if isBelow(path, passkeysPath) || path == root+"/step-up/verify" {
		return rest.MaxSecretBody + auth.MaxCredential
	}
	return rest.MaxSecretBody
}

func isBelow(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// errorResponse is the body of an error (contract A-2).
type errorResponse struct {
	Error   fault.Code       `json:"error"`
	Message string           `json:"message"`
	Details jsonvalue.Object `json:"details"`
}

// WriteFault implements rest.Part.
func (*API) WriteFault(c *fiber.Ctx, f *fault.Error) error { return SendFault(c, f) }

// SendFault sends an error with its code. details is always an object.
func SendFault(c *fiber.Ctx, f *fault.Error) error {
	details := maps.Clone(f.Details)
	if details == nil {
		details = jsonvalue.Object{}
	}
	delete(details, "challenge") // is in WWW-Authenticate
	delete(details, "limit")     // is in X-RateLimit-Limit
	if f.Kind == fault.Exhausted || f.Kind == fault.Unavailable {
		details["retryAfter"] = jsonvalue.Number(rest.RetrySeconds(f.RetryAfter))
	}
	return sendJSON(c, errorResponse{CodeOf(f, c.Response().StatusCode()), f.Message, details})
}

// CodeOf returns the code of an error: its own, or the code of its kind.
func CodeOf(f *fault.Error, status int) fault.Code {
	if f.Code == "" && f.Kind == fault.Invalid && status == http.StatusMethodNotAllowed {
		return codeMethod
	}
	return auth.CodeOf(f)
}

// sendJSON sends a body that caches must not store, because it is about one user and may contain
// tokens.
func sendJSON(c *fiber.Ctx, body any) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(body)
}

// reply sends a body, or returns the error of the use case that was to make it.
func reply(c *fiber.Ctx, err error, body any) error {
	if err != nil {
		return err
	}
	return sendJSON(c, body)
}

// replyEmpty is reply without a body.
func replyEmpty(c *fiber.Ctx, err error) error {
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.SendStatus(http.StatusNoContent)
}

// messageResponse is the response of an endpoint without other data.
type messageResponse struct {
	Message string `json:"message"`
}

// FormatTime formats a time as ISO 8601 in UTC with milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// readBody reads the body of a request, which must be a JSON object. Its members are read with
// fieldError, so that one response names every invalid field (contract A-3).
func readBody(c *fiber.Ctx) (*jsonbody.Object, error) {
	b, err := jsonbody.ReadStrictly(c)
	if err != nil {
		return nil, err
	}
	return b, fieldError(b.Problems())
}

// withBody returns the handler of a request with a body.
func withBody(handle func(*fiber.Ctx, *jsonbody.Object) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		b, err := readBody(c)
		if err != nil {
			return err
		}
		return handle(c, b)
	}
}

// callerWithBody is withBody for a request with a session.
func callerWithBody(handle func(*fiber.Ctx, auth.Session, *jsonbody.Object) error) func(*fiber.Ctx, auth.Session) error {
	return func(c *fiber.Ctx, caller auth.Session) error {
		return withBody(func(c *fiber.Ctx, b *jsonbody.Object) error { return handle(c, caller, b) })(c)
	}
}

// fieldError returns an error with the problems of all fields of a request, or nil. unreadable are
// those of fields that could not be read (invalid_input), others are errors of constructors for the
// values that were read. They are ignored for fields that could not be read. An error among others
// that is not about fields is returned alone.
func fieldError(unreadable map[string]string, others ...error) error {
	invalid := map[string]string{} // fields that break a rule (validation_error)
	for _, err := range others {
		if err == nil {
			continue
		}
		f, ok := fault.As(err)
		if !ok {
			return err
		}
		fields := f.Details.Inner("fields")
		if f.Kind != fault.Invalid || fields == nil {
			return err
		}
		problems := invalid
		if f.Code == auth.CodeInvalidInput {
			problems = unreadable
		}
		for name := range fields {
			if unreadable[name] == "" {
				problems[name] = fields.Text(name)
			}
		}
	}
	code := auth.CodeValidation
	if len(unreadable) > 0 {
		code = auth.CodeInvalidInput
		maps.Copy(invalid, unreadable)
	}
	if len(invalid) == 0 {
		return nil
	}
	return auth.InvalidFields(code, invalid)
}

// requireSession returns a handler that calls handle if the request has the access token of an
// active session with at least the trust level (contract ). It checks both before
// everything else in the request.
func (a *API) requireSession(level auth.TrustLevel, handle func(*fiber.Ctx, auth.Session) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		s, err := a.use.Access.CheckLevel(c.UserContext(), auth.AccessToken(rest.BearerToken(c)), level)
		if err == nil {
			err = handle(c, s)
		}
		if err != nil {
			return a.use.Refusals.LowTrust(c.UserContext(), s, rest.Operation(c), err)
		}
		return nil
	}
}

// pathID returns the id in the path. It returns an error if the id is not a UUID (contract A-1).
func pathID[ID ~string](c *fiber.Ctx) (ID, error) {
	return auth.ParseUUID[ID]("id", strings.Clone(c.Params("id")))
}

// withID returns the handler of a request with a session and the id in the path.
func withID[ID ~string](handle func(*fiber.Ctx, auth.Session, ID) error) func(*fiber.Ctx, auth.Session) error {
	return func(c *fiber.Ctx, caller auth.Session) error {
		id, err := pathID[ID](c)
		if err != nil {
			return err
		}
		return handle(c, caller, id)
	}
}

// listKeys sends the public keys of access tokens.
func (a *API) listKeys(c *fiber.Ctx) error {
	keys, err := a.use.Keys.PublicKeys(c.UserContext())
	if err != nil {
		return err
	}
	set := jose.JSONWebKeySet{Keys: make([]jose.JSONWebKey, 0, len(keys))}
	for _, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{
			Key: k.Key, KeyID: string(k.ID), Algorithm: authstore.Algorithm(k.Key), Use: "sig",
		})
	}
	c.Set(fiber.HeaderCacheControl, "public, max-age=60") // so that clients soon get a new key
	return c.JSON(set)
}
