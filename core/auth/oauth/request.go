package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// Request is an authorization request whose client, redirect URI and resource were found right. It is
// kept while the person signs in and decides (contract T-10).
type Request struct {
	ID      auth.TokenHash // of the id in the address of its pages
	Browser auth.TokenHash // of the cookie of the browser that made it

	Client      ClientID
	RedirectURI string
	Challenge   string // of PKCE, S256
	Resource    string // as the client wrote it
	State       string // empty without one
	Scopes      []string
	Level       auth.TrustLevel // the lowest of acr_values; 0 for any
	MaxAge      time.Duration   // since the person signed in; negative for any
	// Prompt is none, login, consent, or empty. LoginHint is the e-mail address that a form suggests.
	Prompt, LoginHint string

	CreatedAt, ExpiresAt time.Time
}

// RequestTTL is how long a person may take for a request.
const RequestTTL = 15 * time.Minute

// The parameters of requests that several use cases read.
const (
	ParameterClient   = "client_id"
	ParameterRedirect = "redirect_uri"
	ParameterResource = "resource"
)

// The values of prompt that the service knows.
const (
	PromptNone    = "none"
	PromptLogin   = "login"
	PromptConsent = "consent"
)

const (
	maxState = 1024
	maxAge   = 1_000_000_000 // seconds of max_age: more is any
)

var (
	pkceForm   = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`) // RFC 7636, section 4.1 and 4.2
	digitsForm = regexp.MustCompile(`^[0-9]{1,10}$`)
	promptForm = regexp.MustCompile(`^(none|login|consent|login consent|consent login)?$`)
)

// Once returns the error of a request in which a parameter is twice. A resource has an error of its
// own: see ResourceOf.
func Once(q url.Values) error {
	for name := range q {
		if len(q[name]) > 1 && name != ParameterResource {
			return Refuse(CodeInvalidRequest, "a parameter is there twice")
		}
	}
	return nil
}

// ResourceOf returns the resource of a request, which must be there once, or may be left out. The error
// has CodeInvalidTarget.
func ResourceOf(q url.Values, required bool) (string, error) {
	all := q[ParameterResource]
	switch {
	case len(all) > 1:
		return "", Refuse(CodeInvalidTarget, "resource must be there once")
	case q.Get(ParameterResource) != "":
		return all[0], nil
	case required:
		return "", Refuse(CodeInvalidTarget, "resource is required: the URL of the server that the token is for")
	}
	return "", nil
}

// StateOf returns the state of an authorization request; empty if it cannot be sent back.
func StateOf(q url.Values) string {
	state := q.Get("state")
	if len(q["state"]) != 1 || len(state) > maxState || !isPrintable(strings.ReplaceAll(state, " ", "")) {
		return ""
	}
	return state
}

// ReadRequest reads the parameters of an authorization request that do not name the client (contract
// T-10). Of the resource and the scopes it reads the form only. The error has the code for the client;
// prompt none is then set, too.
func ReadRequest(q url.Values) (r Request, err error) {
	r = Request{State: StateOf(q), MaxAge: -1, LoginHint: hintOf(q.Get("login_hint"))}
	if err := Once(q); err != nil {
		return r, err
	}
	if r.State != q.Get("state") {
		return r, Refuse(CodeInvalidRequest, "state must have at most %d visible characters", maxState)
	}
	switch q.Get("response_type") {
	case "code":
	case "":
		return r, Refuse(CodeInvalidRequest, "response_type is missing")
	default:
		return r, Refuse(CodeUnsupportedResponseType, "response_type must be code")
	}
	if mode := q.Get("response_mode"); mode != "" && mode != "query" {
		return r, Refuse(CodeInvalidRequest, "response_mode must be query")
	}
	r.Challenge = q.Get("code_challenge")
	if q.Get("code_challenge_method") != "S256" || !isPKCE(r.Challenge) {
		return r, Refuse(CodeInvalidRequest, "code_challenge of 43 to 128 characters with code_challenge_method S256 is required")
	}
	if r.Resource, err = ResourceOf(q, true); err != nil {
		return r, err
	}
	if r.Scopes, err = ParseScopes(q.Get("scope")); err != nil {
		return r, err
	}
	return r, r.readPerson(q)
}

// readPerson reads what a request says of how the person signs in.
func (r *Request) readPerson(q url.Values) error {
	prompt := strings.Join(strings.Fields(q.Get("prompt")), " ")
	if !promptForm.MatchString(prompt) {
		return Refuse(CodeInvalidRequest, "prompt must be none, login or consent; none stands alone")
	}
	r.Prompt = prompt
	if age := q.Get("max_age"); age != "" {
		if !digitsForm.MatchString(age) {
			return Refuse(CodeInvalidRequest, "max_age must be a number of seconds")
		}
		seconds, _ := strconv.ParseInt(age, 10, 64) // the form has been checked
		r.MaxAge = time.Duration(min(seconds, maxAge)) * time.Second
	}
	names := strings.Fields(q.Get("acr_values"))
	for _, name := range names {
		if level, err := auth.ParseTrustLevel(name); err == nil && (r.Level == 0 || level < r.Level) {
			r.Level = level
		}
	}
	if len(names) > 0 && r.Level == 0 {
		return Refuse(CodeUnmetAuthentication, "acr_values has no level that is known here")
	}
	return nil
}

// Prompts reports whether the request has a value of prompt.
func (r *Request) Prompts(value string) bool {
	return slices.Contains(strings.Fields(r.Prompt), value)
}

func hintOf(text string) string {
	email, err := auth.ParseEmail(text)
	if err != nil || !isPrintable(text) {
		return ""
	}
	return string(email)
}

// ProvesChallenge reports whether a verifier of PKCE is that of a challenge by S256.
func ProvesChallenge(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	return challenge != "" && isPKCE(verifier) &&
		base64.RawURLEncoding.EncodeToString(sum[:]) == challenge
}

// isPKCE reports whether a text has the form of a challenge and of a verifier.
func isPKCE(text string) bool {
	return len(text) >= 43 && len(text) <= 128 && pkceForm.MatchString(text)
}

// scopesForm is a list of scopes (RFC 6749, section 3.3).
var scopesForm = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+( [\x21\x23-\x5B\x5D-\x7E]+)*$`)

// maxScopeText is the greatest length of a list of scopes, in bytes.
const maxScopeText = 8192

// ParseScopes returns the scopes of a list, each one once; nil for an empty one. The error has
// CodeInvalidScope.
func ParseScopes(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if len(text) > maxScopeText || !scopesForm.MatchString(text) {
		return nil, Refuse(CodeInvalidScope, "scope must be names with one space between them")
	}
	all := strings.Split(text, " ")
	slices.Sort(all)
	return slices.Compact(all), nil
}

// NarrowScopes returns those of the requested scopes that there are (contract T-12), in the order of
// these; all of them if there is no request. The error has CodeInvalidScope, if some were requested and
// no one is left. Clients request the scopes of this registry, which the metadata name, at other resources
// too, where they count as not requested.
func NarrowScopes(requested, there []string) ([]string, error) {
	requested = slices.DeleteFunc(slices.Clone(requested), func(one string) bool {
		return (one == ScopeRead || one == ScopeWrite) && !slices.Contains(there, one)
	})
	if len(requested) == 0 {
		return slices.Clone(there), nil
	}
	left := CommonScopes(there, requested)
	if len(left) == 0 {
		return nil, Refuse(CodeInvalidScope, "the resource has no scope of those that were requested")
	}
	return left, nil
}

// CommonScopes returns those of some scopes that are also among others.
func CommonScopes(some, others []string) (left []string) {
	for _, one := range some {
		if slices.Contains(others, one) {
			left = append(left, one)
		}
	}
	return left
}

// HasScopes reports whether all of the wanted scopes are among others.
func HasScopes(others, wanted []string) bool { return len(CommonScopes(wanted, others)) == len(wanted) }
