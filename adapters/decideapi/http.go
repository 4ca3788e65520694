package decideapi

import (
	"bytes"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// httpPath is where proxies ask by HTTP (contract Z-8).
const httpPath = "/decide/http"

// maxHTTPBody is the greatest size of a body, in bytes. It is more than a call may have, so that the
// answer to a larger call is a decision.
const maxHTTPBody = 1 << 20

// Client returns the address of the client of a request: of the proxy, or of the client of one that
// is trusted.
type Client func(*fiber.Ctx) netip.Addr

// Web answers proxies by HTTP: with the headers by which nginx, Caddy and Traefik describe a request,
// and by AuthZEN. It is a part of the API listener.
type Web struct {
	*API

	client Client
}

// NewWeb returns the part of the API listener for proxies.
func NewWeb(a *API, client Client) *Web { return &Web{a, client} }

// Mount implements rest.Part.
func (w *Web) Mount(r fiber.Router) {
	for _, method := range []string{
		http.MethodHead, http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
	} {
		r.Add(method, httpPath, w.decideForwarded)
	}
	w.mountAuthZEN(r)
}

// Name implements rest.Part.
func (*Web) Name() string { return "access" }

// Owns implements rest.Part.
func (*Web) Owns(path string) bool {
	return slices.Contains([]string{httpPath, evaluationPath, evaluationsPath, configurationPath}, path)
}

// Scope implements rest.Part. A caller who is not admitted counts as others of the API.
func (*Web) Scope(string, string) throttle.Scope { return throttle.Decisions }

// MaxBody implements rest.Part.
func (*Web) MaxBody(string, string) int { return maxHTTPBody }

// WriteFault writes an error as the rest of the API does (contract A-2).
func (w *Web) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	f = f.WithCode(auth.CodeOf(f))
	if challenge := w.config.challengeOf(f, "", metadataPath); challenge != "" {
		c.Set(fiber.HeaderWWWAuthenticate, challenge)
	}
	return sendJSON(c, bodyOf(f, nil))
}

func sendJSON(c *fiber.Ctx, body []byte) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderContentType, jsonType)
	return c.Send(body)
}

// decideForwarded answers whether the request that the headers describe may be forwarded.
func (w *Web) decideForwarded(c *fiber.Ctx) error {
	if err := w.Admit(c); err != nil {
		return err
	}
	r, err := w.readForwarded(c)
	if err != nil {
		return err
	}
	if isPreflight(c, r) {
		c.Status(http.StatusNoContent)
		return nil
	}
	a, err := w.answer(c.UserContext(), r)
	if err != nil {
		return err
	}
	for _, h := range a.headers {
		if h.value != "" {
			c.Set(h.name, h.value)
		}
	}
	if a.challenge != "" {
		c.Set(fiber.HeaderWWWAuthenticate, a.challenge)
	}
	if a.decisionID != "" {
		c.Set(headerDecisionID, a.decisionID)
	}
	if c.Status(a.status); a.body != nil {
		return sendJSON(c, a.body)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return nil
}

// isPreflight reports whether a request is what browsers ask, without a token, before they call. It has no
// body; what has a type has one that the proxy does not send.
func isPreflight(c *fiber.Ctx, r *request) bool {
	h := headerReader{c: c}
	return r.call.Method == http.MethodOptions && len(r.call.Body) == 0 && len(h.all(fiber.HeaderContentType)) == 0
}

// admittedKey is the key under which a request has that its caller is admitted.
type admittedKey struct{}

// Admit returns an error unless the caller of a request may ask: fault.Unsupported if the settings switch
// decisions off, fault.Unauthenticated or fault.Forbidden otherwise. The listener calls it before it
// reads the body.
func (w *Web) Admit(c *fiber.Ctx) error {
	if c.Path() == configurationPath || c.Locals(admittedKey{}) != nil {
		return nil
	}
	admit := w.requireCaller
	if c.Path() == httpPath {
		admit = w.admitProxy
	}
	if !w.config.On {
		return errOff()
	}
	if err := admit(c); err != nil {
		return err
	}
	c.Locals(admittedKey{}, true)
	return nil
}

// admitProxy returns fault.Forbidden unless the caller is a proxy: by its address, or by a token with
// the scope decide. It never returns Unauthenticated, which proxies pass on to their clients.
func (w *Web) admitProxy(c *fiber.Ctx) error {
	peer, _ := netip.AddrFromSlice(c.Context().RemoteIP())
	peer = peer.Unmap()
	if slices.ContainsFunc(w.config.Networks, func(n netip.Prefix) bool { return n.Contains(peer) }) {
		return nil
	}
	err := w.requireKey(c.UserContext(), strings.Clone(c.Get(headerKey)), peer)
	if kind := fault.KindOf(err); err == nil || kind == fault.Unavailable || kind == fault.Internal {
		return err
	}
	return fault.New(fault.Forbidden, "only a proxy may ask: it needs a token with the scope decide in x-tollgate-key, "+
		"or an address in DECIDE_NETWORKS").WithCode(auth.CodeAccessDenied)
}

func errOff() error {
	return fault.New(fault.Unsupported, "decisions for proxies are switched off (DECIDE)")
}

// The headers of a request to httpPath, in addition to those of the request that is forwarded.
const (
	headerServer = "x-tollgate-server"

	forwardedMethod = "X-Forwarded-Method"
	forwardedScheme = "X-Forwarded-Proto"
	forwardedHost   = "X-Forwarded-Host"
	forwardedURI    = "X-Forwarded-Uri"

	originalMethod = "X-Original-Method"
	originalURL    = "X-Original-URL"
)

// headerReader reads headers that must be there once, and keeps the first error.
type headerReader struct {
	c   *fiber.Ctx
	err error
}

// one returns the value of a header; empty without one.
func (r *headerReader) one(name string) string {
	all := r.all(name)
	if len(all) > 1 {
		r.note(name, ": it must be there once")
	}
	return strings.Join(all, ",")
}

// all returns the values of a header, which outlive the request. The server library keeps the last
// Content-Type only, and a tool server may take the first.
func (r *headerReader) all(name string) (values []string) {
	if name != fiber.HeaderContentType {
		for _, v := range r.c.Request().Header.PeekAll(name) {
			values = append(values, string(v))
		}
		return values
	}
	for line := range bytes.Lines(r.c.Request().Header.RawHeaders()) {
		if is, value, _ := bytes.Cut(line, []byte(":")); strings.EqualFold(string(is), name) {
			values = append(values, strings.TrimSpace(string(value)))
		}
	}
	return values
}

// required is one for a header that must be there.
func (r *headerReader) required(name string) string {
	value := r.one(name)
	if value == "" {
		r.note(name, ": it is missing")
	}
	return value
}

func (r *headerReader) note(name, problem string) {
	if r.err == nil {
		r.err = fields.Invalid(name, "%s", problem)
	}
}

// readForwarded returns the request that the headers describe. A client can send the headers that its
// proxy does not set, so that those of another kind of proxy are refused and never preferred.
func (w *Web) readForwarded(c *fiber.Ctx) (*request, error) {
	h := headerReader{c: c}
	r := &request{authorization: h.all(fiber.HeaderAuthorization), server: h.one(headerServer), from: w.client(c)}
	method, other := forwardedMethod, originalMethod
	if h.one(originalURL) != "" || h.one(forwardedURI) == "" && h.one(originalMethod) != "" {
		method, other = originalMethod, forwardedMethod
		if h.one(forwardedURI) != "" {
			h.note(forwardedURI, ": the proxy sets "+originalURL+", so it must remove this header")
		}
	}
	if h.one(other) != "" {
		h.note(other, ": the proxy sets "+method+", so it must remove this header")
	}
	if method == forwardedMethod && h.one(method) == "" {
		h.note(method, ": it is missing, and so are "+originalMethod+" and "+originalURL+", which nginx sends")
	}
	r.call = access.Request{
		Method: h.required(method), Body: c.Request().Body(),
		Coded:        !access.IsPlainType(h.all(fiber.HeaderContentType)...) || !access.IsPlainCoding(h.all(fiber.HeaderContentEncoding)...),
		Upgrades:     len(h.all(fiber.HeaderUpgrade)) > 0,
		HeaderMethod: strings.Join(h.all("Mcp-Method"), ","), HeaderName: strings.Join(h.all("Mcp-Name"), ","),
	}
	place := headerReader{c: c}
	r.address = place.address(method == originalMethod)
	switch {
	case place.err != nil && r.server == "" && h.err == nil:
		h.err = place.err
	case place.err != nil: // with a name, only where clients sign in depends on the address
		r.address = access.Address{}
	}
	return r, h.err
}

// address returns where the request goes. Nothing is decoded or mended here: access.Address is read
// by one place for all proxies.
func (r *headerReader) address(original bool) access.Address {
	if !original {
		return access.Address{
			Scheme: r.required(forwardedScheme), Host: r.required(forwardedHost), Path: r.required(forwardedURI),
		}
	}
	a, ok := splitURL(r.required(originalURL))
	if !ok {
		r.note(originalURL, ": it must be an absolute URL")
	}
	return a
}

// splitURL returns where a URL leads. ok is false for one that is not absolute.
func splitURL(text string) (a access.Address, ok bool) {
	if a.Scheme, a.Host, ok = strings.Cut(text, "://"); !ok {
		return access.Address{}, false
	}
	if i := strings.IndexAny(a.Host, "/?#"); i >= 0 {
		a.Host, a.Path = a.Host[:i], a.Host[i:]
	}
	return a, ok
}

// requireCaller returns an error unless a request has a token with the scope decide.
func (w *Web) requireCaller(c *fiber.Ctx) error {
	h := headerReader{c: c}
	token, _ := bearerToken(h.one(fiber.HeaderAuthorization))
	return w.requireKey(c.UserContext(), token, w.client(c))
}
