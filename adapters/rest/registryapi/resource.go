package registryapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Resource is the registry as OAuth knows it: a protected resource, whose metadata clients read to
// learn where they get tokens (RFC 9728).
type Resource struct {
	URL     string   // PUBLIC_URL; empty for no metadata
	Name    string   // for people
	Servers []string // issuers of tokens that the organisation names
	Decides bool     // proxies ask about calls of tool servers, which are protected resources too

	// Issuer is that of the authorization server, which is the origin of URL: its tokens have that as their
	// resource, for all paths of the registry (contract T-3). It is empty without the authorization server.
	Issuer string
	// Find returns the resource of an address for which the authorization server issues tokens, nil for this registry,
	// or fault.NotFound. It is nil without the authorization server.
	Find func(ctx context.Context, address string) (*oauth.Resource, error)
}

// readScope is the one scope of the registry that foreign tokens may have, and writeScope the other one that those of
// the authorization server may have.
const (
	readScope  = string(authority.ReadScope)
	writeScope = oauth.ScopeWrite
)

// metadataPath is the well-known path of RFC 9728, section 3. The path of the resource follows it.
const metadataPath = "/.well-known/oauth-protected-resource"

// versionedPath is the path of the resource that clients of the documented API use.
const versionedPath = "/v0.1"

// metadataResponse is the metadata of RFC 9728, section 2.
type metadataResponse struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers,omitempty"`
	Scopes   []string `json:"scopes_supported,omitempty"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// mount adds the routes of the metadata: of the whole registry, of its documented API, of the MCP servers
// that the registry and its views are, and of the tool servers about which proxies ask. With a proxy
// that passes the path of the URL on, clients insert the well-known path before that.
func (r Resource) mount(router fiber.Router, mcp bool) {
	if r.URL == "" {
		return
	}
	places, paths := []string{metadataPath}, []string{"", versionedPath}
	_, host, _ := strings.Cut(r.base(), "://")
	if _, prefix, proxied := strings.Cut(host, "/"); proxied {
		places = append(places, metadataPath+"/"+prefix)
	}
	if mcp {
		paths = append(paths, mcpPath)
	}
	for _, place := range places {
		for _, path := range paths {
			mountRead(router, place+path, r.metadata(r.base()+path).Send)
		}
		if mcp {
			mountRead(router, place+viewPath+mcpPath, r.sendOfView)
		}
	}
	if r.Decides {
		mountRead(router, metadataPath+serversPath, r.sendOfServer)
		mountRead(router, metadataPath+serversPath+"/:"+nameParam, r.sendOfServer) // with %2F, which some proxies refuse
		mountRead(router, metadataPath+serversPath+"/:namespace/:"+nameParam, r.sendOfServer)
	}
}

// metadata returns the metadata of the registry as a resource: of all of it with the authorization server.
func (r Resource) metadata(resource string) *responsebody.Fixed {
	m := metadataResponse{Resource: resource, Servers: r.Servers, Scopes: []string{readScope}, Name: r.Name}
	if r.Issuer != "" {
		m.Resource, m.Servers, m.Scopes = r.Issuer, []string{r.Issuer}, []string{readScope, writeScope}
	}
	return m.fix()
}

func (m metadataResponse) fix() *responsebody.Fixed {
	m.Methods = []string{"header"}
	body, _ := json.Marshal(m) // texts always have a JSON
	return responsebody.NewFixed(fiber.MIMEApplicationJSON, body)
}

// sendOfView sends the metadata of the MCP server of a view. There is one for every name, so that it does not
// say which views there are.
func (r Resource) sendOfView(c *fiber.Ctx) error {
	name, err := parseView(c.Params(viewParam))
	if err != nil {
		return err
	}
	return r.metadata(r.base() + viewsPath + name + mcpPath).Send(c)
}

// sendOfServer sends the metadata of a tool server: of the address that was called, which the parameter
// resource has, since clients refuse that of any other (RFC 9728, section 3.3). It does not say which servers there are
// but those for which the authorization server issues tokens, and it says nothing about an address that its owner could
// not.
func (r Resource) sendOfServer(c *fiber.Ctx) error {
	title, err := pathValue(c, nameParam)
	if namespace := c.Params("namespace"); namespace != "" {
		title = namespace + "/" + title
	}
	if err == nil && title != "" {
		_, err = toolserver.ParseName(title)
	}
	if err != nil {
		return err
	}
	u, err := url.Parse(c.Query("resource"))
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		u = &url.URL{}
	}
	resource, ok := access.Address{Scheme: u.Scheme, Host: u.Host, Path: u.EscapedPath()}.Resource()
	if !ok {
		return fault.New(fault.Invalid, "resource must be the address of the tool server, without user, query and fragment")
	}
	m := metadataResponse{Resource: resource, Servers: r.Servers, Scopes: []string{readScope}, Name: cmp.Or(title, r.Name)}
	if r.Find != nil {
		known, err := r.Find(c.UserContext(), resource)
		switch {
		case err != nil && !fault.Is(err, fault.NotFound):
			return err
		case known != nil:
			m.Servers, m.Scopes = []string{r.Issuer}, known.Scopes
		}
	}
	return m.fix().Send(c)
}

func (r Resource) base() string { return strings.TrimRight(r.URL, "/") }

// owns reports whether a path is one of the metadata.
func (r Resource) owns(path string) bool { return r.URL != "" && strings.HasPrefix(path, metadataPath) }

// challenge completes the header WWW-Authenticate of a response that refuses a caller: a token that is not
// valid (RFC 6750, section 3.1), the scope that the request needs, without which clients request all scopes,
// and the address of the metadata (RFC 9728, section 5.1). needed is the scope that foreign tokens can have for
// it; empty if there is none.
func (r Resource) challenge(c *fiber.Ctx, f *fault.Error, needed string) {
	status := c.Response().StatusCode()
	given := string(c.Response().Header.Peek(fiber.HeaderWWWAuthenticate))
	if status != http.StatusUnauthorized && status != http.StatusForbidden || given == "" && r.URL == "" {
		return
	}
	given = strings.TrimSpace(strings.TrimPrefix(given, "Bearer"))
	switch {
	case needed != "" && f.Code == scope.CodeInsufficient: // no scope of the service's own tokens, which no one can request
		given = `error="insufficient_scope"`
	case status == http.StatusUnauthorized && given == "" && rest.BearerToken(c) != "":
		given = `error="invalid_token"`
	}
	var parameters []string
	if given != "" {
		parameters = append(parameters, given)
	}
	if needed != "" {
		parameters = append(parameters, `scope="`+needed+`"`)
	}
	if r.URL != "" {
		parameters = append(parameters, `resource_metadata="`+r.base()+metadataPath+r.resourcePath(c.Path())+`"`)
	}
	c.Set(fiber.HeaderWWWAuthenticate, strings.TrimSpace("Bearer "+strings.Join(parameters, ", ")))
}

// resourcePath returns the path of the resource to which a path belongs; empty for that of the whole registry.
func (r Resource) resourcePath(path string) string {
	if r.Issuer != "" {
		return ""
	}
	if strings.HasPrefix(path, versionedPath+"/") {
		return versionedPath
	}
	inner, isMCP := strings.CutSuffix(strings.TrimSuffix(path, "/"), mcpPath)
	text, ofView := strings.CutPrefix(inner, viewsPath)
	name, err := parseView(text)
	switch {
	case isMCP && inner == "":
		return mcpPath
	case isMCP && ofView && err == nil:
		return viewsPath + name + mcpPath
	}
	return ""
}

// parseView returns the name of a view that there may be.
func parseView(text string) (string, error) {
	if text == view.All {
		return text, nil
	}
	name, err := view.ParseName(text)
	return string(name), err
}
