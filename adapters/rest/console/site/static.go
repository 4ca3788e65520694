package site

import (
	_ "embed"
	"encoding/hex"
	"hash/fnv"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
)

// StaticRoot is the path below which the files are that all pages use. No limit applies to them.
const StaticRoot = Root + "static/"

var (
	//go:embed static/console.css
	styleFile []byte
	//go:embed static/console.js
	scriptFile []byte
	//go:embed static/passkey.js
	passkeyFile []byte
	//go:embed static/icon.svg
	iconFile []byte
)

// staticFiles are the files that pages load. Their paths change with their content, so that
// browsers may keep them.
type staticFiles struct {
	style, script, passkey, icon string // the paths
	bodies                       map[string]*responsebody.Fixed
}

func newStaticFiles() *staticFiles {
	f := &staticFiles{bodies: map[string]*responsebody.Fixed{}}
	f.style = f.add("console.css", "text/css; charset=utf-8", styleFile)
	f.script = f.add("console.js", "text/javascript; charset=utf-8", scriptFile)
	f.passkey = f.add("passkey.js", "text/javascript; charset=utf-8", passkeyFile)
	f.icon = f.add("icon.svg", "image/svg+xml", iconFile)
	return f
}

// add adds a file and returns its path.
func (f *staticFiles) add(name, contentType string, content []byte) string {
	sum := fnv.New64a()
	_, _ = sum.Write(content) // a hash never fails to write
	path := StaticRoot + hex.EncodeToString(sum.Sum(nil)) + "/" + name
	f.bodies[path] = responsebody.NewFixed(contentType, content)
	return path
}

// Mount adds the routes of the files.
func (s *Site) Mount(r fiber.Router) {
	for path, body := range s.static.bodies {
		r.Get(path, func(c *fiber.Ctx) error {
			err := body.Send(c)
			c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
			return err
		})
	}
}
