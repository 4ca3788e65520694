package registryapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Resource is the registry as OAuth knows it: a protected resource, whose metadata clients read to
// learn where they get tokens (RFC 9728).
type Resource struct {
	URL     string   // PUBLIC_URL; empty for no metadata
	Name    string   // for people
	Servers []string // issuers of tokens that the organisation names
}

// The scopes of the registry that foreign tokens may have.
const (
	readScope  = string(authority.ReadScope)
	writeScope = "mcp-registry:write"
)

// metadataPath is the well-known path of RFC 9728, section 3. The path of the resource follows it.
const metadataPath = "/.well-known/oauth-protected-resource"

// versionedPath is the path of the resource that clients of the documented API use.
const versionedPath = "/v0.1"

// metadataResponse is the metadata of RFC 9728, section 2.
type metadataResponse struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers,omitempty"`
	Scopes   []string `json:"scopes_supported"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// mount adds the routes of the metadata of the whole registry and of its documented API. With a
// proxy that passes the path of the URL on, clients insert the well-known path before that.
func (r Resource) mount(router fiber.Router) {
	if r.URL == "" {
		return
	}
	_, host, _ := strings.Cut(r.base(), "://")
	_, prefix, proxied := strings.Cut(host, "/")
	for _, path := range [...]string{"", versionedPath} {
		body, _ := json.Marshal(metadataResponse{ // texts always have a JSON
			Resource: r.base() + path, Servers: r.Servers, Scopes: []string{readScope, writeScope},
			Methods: []string{"header"}, Name: r.Name,
		})
		metadata := responsebody.NewFixed(fiber.MIMEApplicationJSON, body)
		mountRead(router, metadataPath+path, metadata.Send)
		if proxied {
			mountRead(router, metadataPath+"/"+prefix+path, metadata.Send)
		}
	}
}

func (r Resource) base() string { return strings.TrimRight(r.URL, "/") }

// owns reports whether a path is one of the metadata.
func (r Resource) owns(path string) bool { return r.URL != "" && strings.HasPrefix(path, metadataPath) }

// challenge adds the address of the metadata to a response that refuses a caller (RFC 9728, section
// 5.1).
func (r Resource) challenge(c *fiber.Ctx) {
	status := c.Response().StatusCode()
	if r.URL == "" || status != http.StatusUnauthorized && status != http.StatusForbidden {
		return
	}
	challenge := string(c.Response().Header.Peek(fiber.HeaderWWWAuthenticate))
	if parameters := strings.TrimPrefix(challenge, "Bearer"); parameters == "" {
		challenge = "Bearer "
	} else {
		challenge += ", "
	}
	address := r.base() + metadataPath
	if strings.HasPrefix(c.Path(), versionedPath+"/") {
		address += versionedPath
	}
	c.Set(fiber.HeaderWWWAuthenticate, challenge+`resource_metadata="`+address+`"`)
}
