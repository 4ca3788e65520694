// Package registryapi serves the tool server registry below /v0.1 and, with the same behaviour,
// /v0: servers and their views (contract R-1), reviews, quarantine and publishers. It also writes
// the events of webhooks, whose data are answers of the API. The use cases that it calls decide
// what may be written, and by whom.
package registryapi

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	nameParam    = "serverName"
	versionParam = "version"

	serversPath  = "/servers"
	versionsPath = serversPath + "/:" + nameParam + "/versions"
	versionPath  = versionsPath + "/:" + versionParam

	viewParam     = "view"
	fileParam     = "file"
	tokenParam    = "token"
	viewsPath     = "/registries/"
	viewPath      = viewsPath + ":" + viewParam
	tokenPath     = "/t/:" + tokenParam
	allowListPath = "/allowlist/:" + fileParam
	snippetPath   = "/install"
)

// prefixes returns the prefixes of all paths: the documented one, and the one that the publishing
// client uses.
func prefixes() [2]string { return [2]string{"/v0.1", "/v0"} }

// Build is what the program says about itself, and /version shows; a part that is not known is empty.
type Build struct {
	Version  string
	Revision string // the commit of the source
	Time     string // of the commit, RFC 3339
}

// Config holds the settings of the registry's part of the API.
type Config struct {
	Build  Build
	Bodies responsebody.Config
	Cache  readcache.Config
	Serving
	// Docs describe the API below the address of each view (contract O-16).
	Docs *apidocs.Docs
	// Private is true if reading the registry needs a caller (contract C-40).
	Private bool
	// Resource describes the registry to OAuth clients.
	Resource Resource
	// RecordTools stores tool lists.
	RecordTools RecordTools
	// AskTools queries remotes of a version.
	AskTools AskTools
	// SetOwner stores who answers for a server.
	SetOwner SetOwner
	// WritesOff is true if the use cases refuse to publish, replace and delete (contract R-24).
	WritesOff bool
	// Log gets the errors that occur after the status of a response was sent.
	Log *logrus.Entry
}

// API is the registry's part of the API.
type API struct {
	callers
	config  Config
	bodies  *responsebody.Sender
	answers *readcache.Cache[read, *history.Long]
	reads   Reads
	writer  Writer
}

// Reads are the use cases that read the registry itself and its views. All are required.
type Reads struct {
	Browser *browsing.Browser
	Finder  *browsing.Finder // for MCP
	Gate    *viewing.Gate
	Lists   *allowlist.Source
	Tools   *browsing.Tools
	Owners  registrystore.Owners
}

// New returns the registry's part of the API, and a function that ends its goroutines. p may be
// empty if the configuration keeps no responses.
func New(cfg Config, who authority.Authority, r Reads, w Writer, p readcache.Ports) (*API, func()) {
	a := &API{callers: callers{who}, config: cfg, bodies: responsebody.New(cfg.Bodies), reads: r, writer: w}
	var end func()
	a.answers, end = readcache.New(cfg.Cache, readcache.Keys[read]{
		Clone: read.clone, Size: read.size, Usual: read.isUsual, Group: read.group,
	}, readcache.Sources[read, *history.Long]{Answer: a.makeAnswer, Group: a.compileLists}, p)
	return a, end
}

// Measure registers the metrics of kept responses in r.
func (a *API) Measure(r prometheus.Registerer) { a.answers.Measure(r) }

// ReadState returns "stale" if reads get kept responses because the database is away; otherwise an empty
// text.
func (a *API) ReadState() string {
	if a.answers.IsStale() {
		return "stale"
	}
	return ""
}

// Mount adds the routes of contract R-1.
func (a *API) Mount(r fiber.Router) {
	reads := map[string]viewHandler{
		serversPath: a.listServers, versionsPath: a.listVersions, versionPath: a.getVersion, toolsPath: a.getTools,
	}
	for _, prefix := range prefixes() {
		for path, handler := range reads {
			mountRead(r, prefix+path, a.inRegistry(handler))
		}
		r.Put(prefix+versionPath, a.change(publishing.OpReplace, a.replaceVersion))
		r.Put(prefix+toolsPath, a.change(publishing.OpTools, a.recordTools))
		r.Post(prefix+toolsPath+"/ask", a.known(a.askTools))
		r.Get(prefix+ownerPath, a.inRegistry(a.getOwner))
		r.Put(prefix+ownerPath, a.known(a.setOwner))
		r.Delete(prefix+versionPath, a.change(publishing.OpDelete, a.deleteVersion))
		r.Patch(prefix+versionPath+"/status", a.change(publishing.OpStatus, a.setStatus))
		r.Patch(prefix+serversPath+"/:"+nameParam+"/status", a.change(publishing.OpStatus, a.setStatusAll))
		r.Post(prefix+"/publish", a.change(publishing.OpPublish, a.publishVersion))
		r.Post(prefix+"/validate", a.validateDocument)
		r.Get(prefix+"/ping", allowAnyOrigin, sendPong)
		r.Get(prefix+"/version", allowAnyOrigin, a.sendVersion)
	}
	a.mountViews(r, reads)
	a.mountMCP(r)
	a.config.Resource.mount(r, a.config.MCP)
}

// Name implements rest.Part.
func (*API) Name() string { return "registry" }

// Owns implements rest.Part.
func (a *API) Owns(path string) bool {
	if strings.HasPrefix(path, "//") {
		path = cleanSlashes(path)
	}
	if strings.TrimSuffix(path, "/") == mcpPath || path == mcpFile {
		return a.config.MCP
	}
	return trimPrefix(path) != "" || strings.HasPrefix(path, viewsPath) || a.config.Resource.owns(path)
}

// trimPrefix returns the path without its prefix; empty for a path without one.
func trimPrefix(path string) string {
	for _, prefix := range prefixes() {
		if rest, ok := strings.CutPrefix(path, prefix); ok && strings.HasPrefix(rest, "/") {
			return rest
		}
	}
	return ""
}

// Scope implements rest.Part. The registry and the methods listing share a limit.
func (a *API) Scope(string, string) throttle.Scope { return throttle.RegistryAddress }

// MaxBody implements rest.Part. Requests to publish, replace and validate have documents, and a
// change of status has the same bound.
func (a *API) MaxBody(method, path string) int {
	if strings.HasSuffix(strings.TrimSuffix(path, "/"), mcpPath) {
		return maxMCP
	}
	switch method {
	case http.MethodPut:
		if strings.HasPrefix(trimPrefix(path), extension) {
			return rest.MaxListBody
		}
		return rest.MaxBody
	case http.MethodPost, http.MethodPatch:
		return rest.MaxBody
	default:
		return rest.MaxRecordBody
	}
}

// WriteFault writes {"error": message}. A document that breaks a rule is 422 instead of 400. While
// writes are off, a write is 501 even if its body is too large to be read (contract R-6). A read of
// a path with a repeated or trailing slash is 308 instead of 404 (contract R-63).
func (a *API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	needed := ""
	switch c.Method() {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		corsHeaders.Set(c)
		needed = readScope
	default:
		if strings.HasSuffix(strings.TrimSuffix(c.Path(), "/"), mcpPath) {
			needed = readScope
		} else if a.config.Resource.Issuer != "" {
			needed = writeScope
		}
	}
	a.config.Resource.challenge(c, f, needed)
	message := f.Message
	switch status := c.Response().StatusCode(); {
	case status == http.StatusNotFound && (c.Method() == http.MethodGet || c.Method() == http.MethodHead) &&
		a.leadsToClean(c):
		c.Status(http.StatusPermanentRedirect)
		message = "the path has a repeated or trailing slash; see Location"
	case f.Kind == fault.Invalid && f.Code == registry.CodeRules:
		c.Status(http.StatusUnprocessableEntity)
	case status == http.StatusRequestEntityTooLarge && a.isOff(c):
		c.Status(http.StatusNotImplemented)
		message = "writing is switched off on this registry"
	}
	return c.JSON(map[string]string{"error": message})
}

// leadsToClean sets Location if the path without repeated or trailing slashes is one for servers, of
// the registry or of a view. Clients join a base URL that ends in a slash, and others end every path
// with one.
func (a *API) leadsToClean(c *fiber.Ctx) bool {
	clean := cleanSlashes(c.Path())
	isServers := false
	for _, prefix := range prefixes() {
		isServers = isServers || strings.Contains(clean, prefix+serversPath) ||
			strings.Contains(clean, prefix+extension+serversPath)
	}
	if clean == c.Path() || !a.Owns(clean) || !isServers {
		return false
	}
	if query := c.Request().URI().QueryString(); len(query) > 0 {
		clean += "?" + string(query)
	}
	c.Set(fiber.HeaderLocation, clean)
	return true
}

// cleanSlashes returns a path without empty segments.
func cleanSlashes(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return strings.TrimSuffix(path, "/")
}

// isOff reports whether the request is a write that is switched off (contract R-6).
func (a *API) isOff(c *fiber.Ctx) bool {
	path := trimPrefix(c.Path())
	switch c.Method() {
	case http.MethodPost:
		return a.config.WritesOff && path == "/publish"
	case http.MethodPut, http.MethodDelete:
		return a.config.WritesOff && strings.HasPrefix(strings.TrimPrefix(path, extension), serversPath+"/")
	}
	return false
}

// allowAnyOrigin lets web pages of any origin read the response (contract R-7).
func allowAnyOrigin(c *fiber.Ctx) error {
	corsHeaders.Set(c)
	return c.Next()
}

var corsHeaders = responsebody.NewHeaders(
	fiber.HeaderAccessControlAllowOrigin, "*",
	fiber.HeaderAccessControlAllowMethods, "GET, OPTIONS",
	fiber.HeaderAccessControlAllowHeaders, "Authorization, Content-Type",
)

// sendPreflight responds to the request that a browser sends before a read with a token.
func sendPreflight(c *fiber.Ctx) error {
	c.Status(http.StatusNoContent)
	return nil
}

// pathValue returns a decoded path parameter, which may share memory with the request.
func pathValue(c *fiber.Ctx, param string) (string, error) {
	value, err := url.PathUnescape(c.Params(param))
	if err != nil || !registry.IsText(value) {
		return "", fault.Newf(fault.Invalid, "%s in the path is not valid percent-encoded UTF-8 text", param)
	}
	return value, nil
}

// pongResponse is the response to a ping (contract P-22).
type pongResponse struct {
	Pong bool `json:"pong"`
}

func sendPong(c *fiber.Ctx) error { return c.JSON(pongResponse{Pong: true}) }

// versionResponse describes the program (contract P-22).
type versionResponse struct {
	Version   string `json:"version"`
	GitCommit string `json:"git_commit"`
	BuildTime string `json:"build_time"`
}

// sendVersion sends the version of the program; what is not known is "unknown".
func (a *API) sendVersion(c *fiber.Ctx) error {
	b := a.config.Build
	return c.JSON(versionResponse{
		Version: cmp.Or(b.Version, "unknown"), GitCommit: cmp.Or(b.Revision, "unknown"),
		BuildTime: cmp.Or(b.Time, "unknown"),
	})
}
