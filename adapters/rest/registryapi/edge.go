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

var (
	cacheControlName = []byte(fiber.HeaderCacheControl)
	edgeName         = []byte("Cdn-Cache-Control") // the canonical form, as the others
	spacedKeysName   = []byte("Surrogate-Key")
	listedKeysName   = []byte("Cache-Tag")

	publicly = []byte("public, max-age=5" + renewed)
)

// edgeValue returns the time for caches that purge by key; nil without one.
func (s Serving) edgeValue() []byte {
	if s.EdgeMaxAge < time.Second {
		return nil
	}
	return []byte("max-age=" + strconv.FormatInt(int64(s.EdgeMaxAge/time.Second), 10) + renewed)
}

// letCachesKeep sets the headers of a public read. Those of an allow list have their own time.
func (a *API) letCachesKeep(c *fiber.Ctx, r *read) {
	header := &c.Response().Header
	if r.kind != readAllowList {
		header.SetCanonical(cacheControlName, publicly)
	}
	if a.edge != nil {
		header.SetCanonical(edgeName, a.edge)
	}
	var room [128]byte
	keys := r.appendKey(room[:0])
	if r.view == nil {
		header.SetCanonical(spacedKeysName, keys)
		header.SetCanonical(listedKeysName, keys)
		return
	}
	between := len(keys)
	keys = append(append(keys, ' '), event.ViewKey(string(r.view.Name))...)
	header.SetCanonical(spacedKeysName, keys)
	keys[between] = ','
	header.SetCanonical(listedKeysName, keys)
}

// appendKey appends the key of what is read, without that of its view.
func (r *read) appendKey(dst []byte) []byte {
	switch r.kind {
	case readList:
		return append(dst, event.ServersKey...)
	case readAllowList:
		return append(dst, event.AllowListsKey...)
	default:
		return event.AppendServerKey(dst, r.name)
	}
}

// keepPrivate removes what lets caches keep a response.
func keepPrivate(c *fiber.Ctx, kept string) {
	header := &c.Response().Header
	header.Set(fiber.HeaderCacheControl, privately+kept)
	for _, name := range [...][]byte{edgeName, spacedKeysName, listedKeysName} {
		header.DelBytes(name)
	}
	c.Append(fiber.HeaderVary, fiber.HeaderAuthorization)
}
