package tokenapi

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

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
