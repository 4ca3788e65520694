package registryapi

import (
	"errors"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/registry/event"
)

// Serving holds the settings of how reads are served.
type Serving struct {
	EdgeMaxAge time.Duration `env:"EDGE_MAX_AGE" envDefault:"0s" desc:"how long a cache in front of the service that drops responses when a purge event says so may keep responses to public reads, 0 to 24h; 0 = as long as every cache, 5 seconds"`
	MCP        bool          `env:"-"` // the registry is an MCP server too
}

const maxEdgeAge = 24 * time.Hour

// Validate checks the range.
func (s Serving) Validate() error {
	if s.EdgeMaxAge < 0 || s.EdgeMaxAge > maxEdgeAge {
		return errors.New("EDGE_MAX_AGE must be 0 to 24h")
	}
	return nil
}

// Headers of public reads. Any cache may keep them for five seconds, then one request renews them
// while others get what is there, and they do when the service fails (RFC 5861). A cache that purges
// by key has a time of its own (RFC 9213), and the keys in both common forms.
const renewed = ", stale-while-revalidate=60, stale-if-error=86400"

const (
	edgeName       = "Cdn-Cache-Control" // the canonical form, as the others
	spacedKeysName = "Surrogate-Key"
	listedKeysName = "Cache-Tag"

	publicly      = "public, max-age=5" + renewed
	listsPublicly = "public, max-age=60" // allow lists
)

// publicHeaders returns the headers that let caches keep the response to a read: names, each
// followed by its value.
func (s Serving) publicHeaders(r *read) []string {
	headers := []string{fiber.HeaderCacheControl, publicly}
	if r.kind == readAllowList {
		headers[1] = listsPublicly
	}
	if s.EdgeMaxAge >= time.Second {
		headers = append(headers, edgeName,
			"max-age="+strconv.FormatInt(int64(s.EdgeMaxAge/time.Second), 10)+renewed)
	}
	key := r.key()
	if r.view == nil {
		return append(headers, spacedKeysName, key, listedKeysName, key)
	}
	ofView := string(event.ViewKey(string(r.view.Name)))
	return append(headers, spacedKeysName, key+" "+ofView, listedKeysName, key+","+ofView)
}

// key returns the key of what is read, without that of its view.
func (r *read) key() string {
	switch r.kind {
	case readList:
		return string(event.ServersKey)
	case readAllowList:
		return string(event.AllowListsKey)
	default:
		return string(event.ServerKey(r.name))
	}
}

// keepPrivate makes a response one that others may not have.
func keepPrivate(c *fiber.Ctx, kept string) {
	keepFromCaches(c, "private, "+kept)
	c.Append(fiber.HeaderVary, fiber.HeaderAuthorization)
}

// staleControl returns Cache-Control of a response that may be outdated.
func (r *read) staleControl() string {
	if r.kind == readAllowList {
		return listsPublicly
	}
	return "no-cache"
}

// keepFromCaches replaces what lets caches keep a response.
func keepFromCaches(c *fiber.Ctx, control string) {
	header := &c.Response().Header
	header.Set(fiber.HeaderCacheControl, control)
	for _, name := range [...]string{edgeName, spacedKeysName, listedKeysName} {
		header.Del(name)
	}
}
