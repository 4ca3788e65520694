// Package tokenapi serves what clients of the authorization server call without a person: its metadata, and
// the endpoints for tokens (contract T-2, T-15, T-19). The pages for people are in the console.
package tokenapi

import (
	"context"
	"encoding/base64"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/signed"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	metadataPath   = "/.well-known/oauth-authorization-server"
	tokenPath      = "/oauth2/token"
	revokePath     = "/oauth2/revoke"
	introspectPath = "/oauth2/introspect"

	// authorizePath and keysPath are served by other parts.
	authorizePath = "/oauth2/authorize"
	keysPath      = "/.well-known/jwks.json"
)

// UseCases are the use cases that the endpoints call: methods of authorizing.Service, which documents the
// errors. All are required.
type UseCases struct {
	Token      func(context.Context, authorizing.TokenRequest) (authorizing.Tokens, error)
	Revoke     func(context.Context, authorizing.TokenRequest) error
	Introspect func(ctx context.Context, who authority.Caller, token string) (authorizing.Introspection, error)
	Metadata   func(context.Context) (authorizing.Metadata, error)
	Authority  authority.Authority
	Issuer     string // of tokens
}

// API is the part of the API listener for clients of the authorization server.
type API struct{ use UseCases }

// New returns the part.
func New(u UseCases) *API { return &API{u} }

// Mount adds the routes. Pages of any origin may use those that have OPTIONS.
func (a *API) Mount(r fiber.Router) {
	r.Get(metadataPath, a.sendMetadata)
	r.Post(tokenPath, a.issue)
	r.Post(revokePath, a.revoke)
	r.Post(introspectPath, a.introspect)
	for _, path := range [...]string{metadataPath, tokenPath, revokePath} {
		r.Options(path, sendPreflight)
	}
}

// Name implements rest.Part.
func (*API) Name() string { return "oauth" }

// Owns implements rest.Part.
func (*API) Owns(path string) bool {
	return slices.Contains([]string{metadataPath, tokenPath, revokePath, introspectPath}, path)
}

// Scope implements rest.Part. Tool servers examine each token that they get, so that there is no limit for them:
// a caller who is not admitted counts as others of the API.
func (*API) Scope(_, path string) throttle.Scope {
	if path == introspectPath {
		return throttle.Decisions
	}
	return throttle.APIAddress
}

// MaxBody implements rest.Part.
func (*API) MaxBody(string, string) int { return rest.MaxRecordBody }

// corsHeaders let pages of any origin use an endpoint, without what browsers keep about its own pages.
var corsHeaders = responsebody.NewHeaders(
	fiber.HeaderAccessControlAllowOrigin, "*",
	fiber.HeaderAccessControlAllowMethods, "GET, POST, OPTIONS",
	fiber.HeaderAccessControlAllowHeaders, "Authorization, Content-Type, Mcp-Protocol-Version",
)

// sendPreflight answers the request that a browser sends before one of a page of another origin.
func sendPreflight(c *fiber.Ctx) error {
	corsHeaders.Set(c)
	return c.SendStatus(http.StatusNoContent)
}

// metadata is the metadata of RFC 8414, section 2, in the order of contract T-2.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorize     string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Introspection string   `json:"introspection_endpoint"`
	Keys          string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	ResponseModes []string `json:"response_modes_supported"`
	GrantTypes    []string `json:"grant_types_supported"`
	Profiles      []string `json:"authorization_grant_profiles_supported,omitempty"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	Algorithms    []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevokeMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	RevokeBy      []string `json:"revocation_endpoint_auth_signing_alg_values_supported"`
	Documents     bool     `json:"client_id_metadata_document_supported"`
	IssParameter  bool     `json:"authorization_response_iss_parameter_supported"`
	Levels        []string `json:"acr_values_supported"`
	Scopes        []string `json:"scopes_supported"`
}

func (a *API) sendMetadata(c *fiber.Ctx) error {
	found, err := a.use.Metadata(c.UserContext())
	if err != nil {
		return err
	}
	m := metadata{
		Issuer: found.Issuer, Authorize: found.Issuer + authorizePath, Token: found.Issuer + tokenPath,
		Revocation: found.Issuer + revokePath, Introspection: found.Issuer + introspectPath, Keys: found.Issuer + keysPath,
		ResponseTypes: []string{"code"}, ResponseModes: []string{"query"}, GrantTypes: []string{"authorization_code", "refresh_token"},
		Challenges: []string{"S256"}, Algorithms: signed.Asymmetric(), Documents: found.Documents, IssParameter: true, Scopes: []string{oauth.ScopeRead, oauth.ScopeWrite},
		Levels: each.Texts(trustlevel.All()),
	}
	m.Methods = each.Strings([]oauth.Method{oauth.MethodNone, oauth.MethodPrivateKey, oauth.MethodSecretBasic, oauth.MethodSecretInForm})
	m.RevokeMethods, m.RevokeBy = m.Methods, m.Algorithms
	if found.Assertions {
		m.GrantTypes = append(m.GrantTypes, "urn:ietf:params:oauth:grant-type:jwt-bearer")
		m.Profiles = []string{"urn:ietf:params:oauth:grant-profile:id-jag"}
	}
	corsHeaders.Set(c)
	c.Set(fiber.HeaderCacheControl, "public, max-age=300")
	return c.JSON(m)
}

// tokenResponse is the response of RFC 6749, section 5.1.
type tokenResponse struct {
	Access    auth.AccessToken   `json:"access_token"`
	Type      string             `json:"token_type"`
	ExpiresIn int64              `json:"expires_in"`
	Refresh   auth.RefreshSecret `json:"refresh_token,omitempty"`
	Scope     string             `json:"scope,omitempty"`
}

func (a *API) issue(c *fiber.Ctx) error {
	in, err := readRequest(c)
	if err != nil {
		return err
	}
	t, err := a.use.Token(c.UserContext(), in)
	if err != nil {
		return err
	}
	corsHeaders.Set(c)
	return sendJSON(c, tokenResponse{t.Access, "Bearer", int64(t.ExpiresIn.Seconds()), t.Refresh, strings.Join(t.Scopes, " ")})
}

func (a *API) revoke(c *fiber.Ctx) error {
	in, err := readRequest(c)
	if err == nil {
		err = a.use.Revoke(c.UserContext(), in)
	}
	if err != nil {
		return err
	}
	corsHeaders.Set(c)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return nil
}

func sendJSON(c *fiber.Ctx, body any) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(body)
}

// readRequest returns a request of a client. A parameter that is there twice has both values.
func readRequest(c *fiber.Ctx) (in authorizing.TokenRequest, err error) {
	in.From = rest.Address(c)
	if in.Basic, err = readBasic(c); err == nil {
		in.Form, err = readForm(c)
	}
	return in, err
}

// readForm returns the fields of a form, which is the only body that the endpoints take.
func readForm(c *fiber.Ctx) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(string(c.Request().Header.ContentType()))
	if err != nil || kind != fiber.MIMEApplicationForm || c.Get(fiber.HeaderContentEncoding) != "" {
		return nil, oauth.Refuse(oauth.CodeInvalidRequest, "the body must be a form, as application/x-www-form-urlencoded")
	}
	form, err := url.ParseQuery(string(c.Request().Body()))
	if err != nil {
		return nil, oauth.Refuse(oauth.CodeInvalidRequest, "the form cannot be read")
	}
	return form, nil
}

// readBasic returns the credentials in the header Authorization (RFC 6749, section 2.3.1); nil without it.
func readBasic(c *fiber.Ctx) (*authorizing.BasicCredentials, error) {
	all := c.Request().Header.PeekAll(fiber.HeaderAuthorization)
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // nil is no credentials
	}
	scheme, encoded, _ := strings.Cut(string(all[0]), " ")
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	id, secret, ok := strings.Cut(string(decoded), ":")
	id, idErr := url.QueryUnescape(id)
	secret, secretErr := url.QueryUnescape(secret)
	if len(all) > 1 || !strings.EqualFold(scheme, "basic") || err != nil || !ok || idErr != nil || secretErr != nil {
		return nil, oauth.Refuse(oauth.CodeInvalidClient, "the header Authorization must be one of the scheme Basic")
	}
	return &authorizing.BasicCredentials{ID: id, Secret: secret}, nil
}

// refusal is the body of an error (RFC 6749, section 5.2).
type refusal struct {
	Error       fault.Code `json:"error"`
	Description string     `json:"error_description,omitempty"`
}

// WriteFault implements rest.Part.
func (*API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	examines := c.Path() == introspectPath
	code := codeOf(f, examines)
	if examines && code == codeInvalidToken && rest.BearerToken(c) != "" {
		c.Set(fiber.HeaderWWWAuthenticate, `Bearer error="invalid_token"`)
	}
	if !examines {
		corsHeaders.Set(c)
		c.Response().Header.Del(fiber.HeaderWWWAuthenticate) // of another scheme than that of clients
		if kind, _, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " "); code == oauth.CodeInvalidClient && kind != "" {
			c.Set(fiber.HeaderWWWAuthenticate, `Basic realm="tollgate"`)
		}
	}
	if code == codeServer {
		c.Status(http.StatusInternalServerError)
		return sendJSON(c, refusal{code, "internal error"})
	}
	if f.Kind == fault.Forbidden && !examines {
		c.Status(http.StatusBadRequest)
	}
	return sendJSON(c, refusal{code, f.Message})
}

const (
	codeServer       fault.Code = "server_error"
	codeInvalidToken fault.Code = "invalid_token" // RFC 6750
)

// known are the codes that clients know.
var known = []fault.Code{
	oauth.CodeInvalidRequest, oauth.CodeInvalidClient, oauth.CodeInvalidGrant, oauth.CodeUnauthorizedClient,
	oauth.CodeUnsupportedGrantType, oauth.CodeInvalidScope, oauth.CodeInvalidTarget, oauth.CodeAccessDenied,
	oauth.CodeUnmetAuthentication, oauth.CodeTemporarilyUnavailable, scope.CodeInsufficient, codeInvalidToken,
}

// codeOf returns the code of an error for clients. examines is whether a caller with a token examines another.
func codeOf(f *fault.Error, examines bool) fault.Code {
	switch f.Kind {
	case fault.Exhausted, fault.Unavailable:
		return oauth.CodeTemporarilyUnavailable
	case fault.Invalid, fault.Unauthenticated, fault.Forbidden:
	default:
		return codeServer
	}
	switch {
	case slices.Contains(known, f.Code):
		return f.Code
	case f.Kind == fault.Invalid:
		return oauth.CodeInvalidRequest
	case f.Kind == fault.Forbidden:
		return oauth.CodeAccessDenied
	case examines:
		return codeInvalidToken
	}
	return oauth.CodeInvalidClient
}

// callerKey is the key under which a request has its caller.
type callerKey struct{}

// Admit identifies the caller who wants to examine a token, before the listener reads the body.
func (a *API) Admit(c *fiber.Ctx) error {
	if c.Path() != introspectPath || c.Method() != fiber.MethodPost {
		return nil
	}
	who, err := a.use.Authority.Identify(c.UserContext(), rest.BearerToken(c), rest.Address(c))
	if err == nil {
		c.Locals(callerKey{}, who)
	}
	return err
}

// introspection is what a tool server learns of a token (RFC 7662, section 2.2).
type introspection struct {
	Active   bool           `json:"active"`
	Scope    string         `json:"scope,omitempty"`
	Client   oauth.ClientID `json:"client_id,omitempty"`
	Type     string         `json:"token_type,omitempty"`
	Expires  int64          `json:"exp,omitempty"`
	Issued   int64          `json:"iat,omitempty"`
	Subject  auth.UserID    `json:"sub,omitempty"`
	Audience string         `json:"aud,omitempty"`
	Issuer   string         `json:"iss,omitempty"`
	ID       string         `json:"jti,omitempty"`
	Level    string         `json:"acr,omitempty"`
	AuthTime int64          `json:"auth_time,omitempty"`
	Session  auth.SessionID `json:"sid,omitempty"`
}

func (a *API) introspect(c *fiber.Ctx) error {
	who, _ := c.Locals(callerKey{}).(authority.Caller)
	form, err := readForm(c)
	if err != nil {
		return err
	}
	if len(form["token"]) != 1 {
		return oauth.Refuse(oauth.CodeInvalidRequest, "the form must have the field token once")
	}
	found, err := a.use.Introspect(c.UserContext(), who, form.Get("token"))
	if err != nil {
		return err
	}
	if !found.Active {
		return sendJSON(c, introspection{})
	}
	return sendJSON(c, introspection{
		Active: true, Scope: strings.Join(found.Claims.Scopes, " "), Client: found.Claims.Client, Type: "Bearer",
		Expires: seconds(found.ExpiresAt), Issued: seconds(found.IssuedAt), Subject: found.Subject, Audience: found.Claims.Resource,
		Issuer: a.use.Issuer, ID: found.ID, Level: found.Claims.Level.String(), AuthTime: seconds(found.Claims.AuthTime), Session: found.Session,
	})
}

// seconds returns a time as tokens have it; 0 for one that does not exist.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
