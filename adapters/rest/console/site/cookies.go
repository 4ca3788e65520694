package site

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/cookies"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// The cookies of the console. A name with the prefix __Host- is accepted by browsers only over TLS,
// for this host alone (RFC 6265bis, 4.1.3.2).
const (
	secureCookie = "__Host-tollgate"
	localCookie  = "tollgate" // over plain HTTP, on this machine only
	deviceTTL    = 365 * 24 * time.Hour
)

// cookieName returns the name of the session cookie: empty if the connection is not safe enough for
// one.
func cookieName(c *fiber.Ctx) string {
	switch {
	case rest.Secure(c):
		return secureCookie
	case isThisMachine(rest.Host(c)):
		return localCookie
	}
	return ""
}

// CanSignIn reports whether the connection is safe enough for a session cookie: TLS, or this
// machine.
func (v *Visit) CanSignIn() bool { return cookieName(v.Ctx) != "" }

// isThisMachine reports whether a browser that shows a page of the host talks to its own machine.
func isThisMachine(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	switch strings.Trim(host, "[]") {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}

// identify sets the session and the account of a visit if its cookie is good. It does not remove
// one that is not: the browser may have a new one meanwhile, from a request in another tab.
func (s *Site) identify(v *Visit) error {
	name := cookieName(v.Ctx)
	if !s.HasSignIn() || name == "" {
		return nil
	}
	v.cookie = auth.CookieSecret(strings.Clone(v.Cookies(name)))
	if v.cookie == "" {
		return nil
	}
	session, err := s.ports.Cookies.Check(v.UserContext(), v.cookie)
	if fault.Is(err, fault.Unauthenticated) {
		return nil
	}
	if err != nil {
		return err
	}
	v.Session = session
	v.Set(fiber.HeaderCacheControl, "no-store")
	v.Account, err = s.ports.Accounts.Get(v.UserContext(), session.UserID)
	return err
}

// Caller returns the person as the caller of a use case of the registry. It asks once.
func (v *Visit) Caller() (authority.Caller, error) {
	if v.caller == nil {
		who, err := v.site.ports.Authority.IdentifySession(v.UserContext(), string(v.Session.ID), rest.Address(v.Ctx))
		if err != nil {
			return who, err
		}
		v.caller = &who
	}
	return *v.caller, nil
}

// BeginSession sets the cookie of a session that has just begun.
func (v *Visit) BeginSession(begun cookies.Begun) error {
	secret, err := v.site.ports.Cookies.Issue(v.UserContext(), begun)
	if err != nil {
		return err
	}
	v.setSessionCookie(secret)
	return nil
}

// RotateCookie replaces the session cookie, after a change of the session's trust. If another
// request has replaced it meanwhile, the browser has the new one from there.
func (v *Visit) RotateCookie() error {
	v.caller = nil
	next, err := v.site.ports.Cookies.Rotate(v.UserContext(), v.cookie)
	switch {
	case fault.Is(err, fault.Unauthenticated):
		return nil
	case err != nil:
		return err
	}
	v.setSessionCookie(next)
	return nil
}

// EndSession removes the session cookie.
func (v *Visit) EndSession() { v.setSessionCookie("") }

// setSessionCookie sets the session cookie; an empty secret removes it. It lasts as long as the
// browser keeps it: the session ends on the server.
func (v *Visit) setSessionCookie(secret auth.CookieSecret) {
	name := cookieName(v.Ctx)
	if name == "" {
		return
	}
	v.Set(fiber.HeaderCacheControl, "no-store")
	cookie := &fiber.Cookie{
		Name: name, Value: string(secret), Path: "/", Secure: name == secureCookie, HTTPOnly: true,
		SameSite: fiber.CookieSameSiteLaxMode,
	}
	if secret == "" {
		cookie.Expires = time.Unix(1, 0)
	} else {
		cookie.MaxAge = int(deviceTTL / time.Second)
	}
	v.Cookie(cookie)
}

// RememberDevice sets the cookie that proves the device at the next sign-in (contract A-37). An
// empty token changes nothing.
func (v *Visit) RememberDevice(token auth.DeviceSecret) {
	if token == "" {
		return
	}
	v.Cookie(&fiber.Cookie{
		Name: rest.DeviceCookieName(v.Ctx), Value: string(token), Path: strings.TrimSuffix(Root, "/"),
		MaxAge: int(deviceTTL / time.Second),
		Secure: rest.Secure(v.Ctx), HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode,
	})
}

// The cookies of what has begun: sign-ins at providers (contract A-72), and authorization requests of
// applications.
const (
	companyCookie     = "tollgate_company"
	applicationCookie = "tollgate_application"
)

// hostName returns the name of a cookie for this host alone.
func hostName(c *fiber.Ctx, name string) string {
	if rest.Secure(c) {
		return "__Host-" + name
	}
	return name
}

// CompanyCookie returns what the browser keeps about sign-ins at providers that have begun.
func (v *Visit) CompanyCookie() string { return v.hostCookie(companyCookie) }

// SetCompanyCookie sets what CompanyCookie returns; an empty text removes it.
func (v *Visit) SetCompanyCookie(text string, life time.Duration) {
	v.setHostCookie(companyCookie, text, life)
}

// ApplicationCookie returns what the browser keeps about authorization requests that have begun.
func (v *Visit) ApplicationCookie() string { return v.hostCookie(applicationCookie) }

// SetApplicationCookie sets what ApplicationCookie returns.
func (v *Visit) SetApplicationCookie(text string, life time.Duration) {
	v.setHostCookie(applicationCookie, text, life)
}

// dismissedCookie has the steps of the setup that an operator has dismissed.
const dismissedCookie = "tollgate_dismissed"

// HasDismissed reports whether a step of the setup was dismissed in this browser.
func (v *Visit) HasDismissed(step string) bool {
	return slices.Contains(strings.Split(v.hostCookie(dismissedCookie), "."), step)
}

// Dismiss leaves a step of the setup out in this browser, or shows it again.
func (v *Visit) Dismiss(step string, away bool) {
	all := slices.DeleteFunc(strings.Split(v.hostCookie(dismissedCookie), "."), func(s string) bool { return s == step })
	if away {
		all = append(all, step)
	}
	v.setHostCookie(dismissedCookie, strings.Join(all, "."), deviceTTL)
}

func (v *Visit) hostCookie(name string) string {
	return strings.Clone(v.Cookies(hostName(v.Ctx, name)))
}

// setHostCookie sets a cookie for this host alone; an empty text removes it.
func (v *Visit) setHostCookie(name, text string, life time.Duration) {
	cookie := &fiber.Cookie{
		Name: hostName(v.Ctx, name), Value: text, Path: "/", MaxAge: int(life / time.Second), Secure: rest.Secure(v.Ctx),
		HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode,
	}
	if text == "" {
		cookie.MaxAge, cookie.Expires = 0, time.Unix(1, 0)
	}
	v.Set(fiber.HeaderCacheControl, "no-store")
	v.Cookie(cookie)
}

// LocalBase returns the origin under which a browser on this machine has reached the service; empty
// for other browsers.
func (v *Visit) LocalBase() string {
	host := strings.Clone(rest.Host(v.Ctx))
	switch {
	case !isThisMachine(host):
		return ""
	case rest.Secure(v.Ctx):
		return "https://" + host
	}
	return "http://" + host
}
