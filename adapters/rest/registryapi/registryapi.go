// Package registryapi serves the tool server registry below /v0.1 and, with the same behaviour, /v0
// (contract R-1). The use cases that it calls decide what may be written, and by whom.
package registryapi

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest/representation"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	nameParam    = "serverName"
	versionParam = "version"

	servers  = "/servers"
	versions = servers + "/:" + nameParam + "/versions"
	version  = versions + "/:" + versionParam
)

// prefixes returns what the paths begin with: the document's, and the one that
// the publishing client calls.
func prefixes() [2]string { return [2]string{"/v0.1", "/v0"} }

// Config is how the registry is set up.
type Config struct {
	// WritesOff must equal publish.Config.WritesOff: the registry then answers
	// 501 to publish, replace and delete, whatever else is wrong with them.
	WritesOff bool
	Answers   representation.Config
	// Log hears of answers that broke off when their status was sent already.
	Log *logrus.Entry
}

// API is the registry's part of the API.
type API struct {
	config Config
	forms  *representation.Forms
	reader Reader
	writer Writer
}

// New returns the registry's part of the API.
func New(cfg Config, r Reader, w Writer) *API {
	return &API{config: cfg, forms: representation.New(cfg.Answers), reader: r, writer: w}
}

// Mount adds the routes of contract R-1.
func (a *API) Mount(r fiber.Router) {
	for _, prefix := range prefixes() {
		for path, read := range map[string]fiber.Handler{servers: a.list, versions: a.versions, version: a.version} {
			r.Get(prefix+path, forBrowsers, a.forms.Negotiate, read)
			r.Options(prefix+path, forBrowsers, preflight)
		}
		r.Put(prefix+version, a.replace)
		r.Delete(prefix+version, a.delete)
		r.Patch(prefix+version+"/status", a.setStatus)
		r.Patch(prefix+servers+"/:"+nameParam+"/status", a.setStatusAll)
		r.Post(prefix+"/publish", a.publish)
		r.Post(prefix+"/validate", a.validate)
	}
}

// Name implements rest.Part.
func (*API) Name() string { return "registry" }

// Owns reports whether the path is the registry's.
func (a *API) Owns(path string) bool { return below(path) != "" }

// below returns what follows the prefix, from its slash on; empty when the path
// has none of them.
func below(path string) string {
	for _, prefix := range prefixes() {
		if rest, ok := strings.CutPrefix(path, prefix); ok && strings.HasPrefix(rest, "/") {
			return rest
		}
	}
	return ""
}

// Scope returns the limit that the registry and the methods share.
func (a *API) Scope(string, string) throttle.Scope { return throttle.RegistryAddress }

// WriteFault writes {"error": sentence}. A document that breaks a rule is 422, not 400. Where
// writes are off, the answer is 501 even to a body that is too large to be read (contract R-6).
func (a *API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	switch c.Method() {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		setCORS(c)
	}
	sentence := f.Message
	switch status := c.Response().StatusCode(); {
	case f.Kind == fault.Invalid && f.Code == registry.CodeRules:
		c.Status(http.StatusUnprocessableEntity)
	case status == http.StatusRequestEntityTooLarge && a.config.WritesOff && isOptional(c):
		c.Status(http.StatusNotImplemented)
		sentence = "writing is switched off on this registry"
	}
	return c.JSON(map[string]string{"error": sentence})
}

// isOptional reports whether a request is one of those that a registry may leave
// out.
func isOptional(c *fiber.Ctx) bool {
	path := below(c.Path())
	switch c.Method() {
	case http.MethodPost:
		return path == "/publish"
	case http.MethodPut, http.MethodDelete:
		return strings.HasPrefix(path, servers+"/")
	}
	return false
}

// forBrowsers lets pages of any origin read the answer (contract R-7).
func forBrowsers(c *fiber.Ctx) error {
	setCORS(c)
	return c.Next()
}

func setCORS(c *fiber.Ctx) {
	c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
	c.Set(fiber.HeaderAccessControlAllowMethods, "GET, OPTIONS")
	c.Set(fiber.HeaderAccessControlAllowHeaders, "Authorization, Content-Type")
}

// preflight answers what a browser asks before a read with a token.
func preflight(c *fiber.Ctx) error {
	c.Status(http.StatusNoContent)
	return nil
}

// pathValue returns a decoded copy of a part of the path.
func pathValue(c *fiber.Ctx, param string) (string, error) {
	value, err := url.PathUnescape(c.Params(param))
	if err != nil || !isText(value) {
		return "", fault.Newf(fault.Invalid, "", "%s in the path is not encoded text", param)
	}
	return strings.Clone(value), nil
}

// isText reports whether a value can be stored and searched for: valid UTF-8 without NUL
// (contract O-11).
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
