package registryapi

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// viewHandler handles a read of a view, or of the registry itself if v is nil.
type viewHandler func(c *fiber.Ctx, v *view.View) error

// inRegistry returns the handler of a read of the registry itself.
func (a *API) inRegistry(handle viewHandler) fiber.Handler {
	if a.config.Private {
		return a.inView(handle, keptNever)
	}
	return func(c *fiber.Ctx) error {
		if err := a.refuseOthers(c); err != nil {
			return err
		}
		return handle(c, nil)
	}
}

// refuseOthers refuses a token for another resource, also where no one needs a token (contract T-16).
func (a *API) refuseOthers(c *fiber.Ctx) error {
	if i := a.config.Resource.Issuer; i != "" && oauth.IsElsewhere(rest.BearerToken(c), i) {
		return authority.ErrOtherResource
	}
	return nil
}

// inView returns the handler of a read of the view in the path, or of the registry if the path has
// no view. It finds out who may have it before anything else, and before a kept response is used
// (contract C-34, C-40). kept is how long a client may keep a response that others may not have.
func (a *API) inView(handle viewHandler, kept string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		v, private, err := a.enter(c)
		if err == nil {
			err = handle(c, v)
		}
		if err == nil && private {
			keepPrivate(c, kept)
		}
		return err
	}
}

// enter returns the view of a request if the token in the path or in the Authorization header may
// read it, and whether others may not. A token in the path may be one of a view only.
func (a *API) enter(c *fiber.Ctx) (v *view.View, private bool, err error) {
	inPath, token := c.Params(tokenParam), ""
	if inPath == "" {
		token = rest.BearerToken(c)
	}
	passage, err := a.reads.Gate.Find(c.UserContext(), strings.Clone(c.Params(viewParam)), view.Secret(inPath+token))
	if err != nil {
		return nil, false, err
	}
	var who authority.Caller
	if passage.NeedsCaller() {
		who, err = a.authority.IdentifyReader(c.UserContext(), token, rest.Address(c))
	} else {
		err = a.refuseOthers(c)
	}
	if err != nil {
		return nil, true, err
	}
	v, err = passage.Enter(c.UserContext(), who)
	return v, passage.IsPrivate(), err
}

// How long a client may keep a response.
const (
	keptNever  = "no-cache" // it is used again only if the registry has not changed
	keptMinute = "max-age=60"
)

// readerOf returns what reads a view, or the registry itself if v is nil.
func (a *API) readerOf(v *view.View) *browsing.Browser {
	if v == nil {
		return a.reads.Browser
	}
	return a.reads.Browser.In(*v)
}

// mountViews adds the reads of views: what reads the registry itself, allow lists, what installs
// servers, and the description of the API, which registries that mirror a view read first. Each has
// a path with a token, for clients that send no headers.
func (a *API) mountViews(r fiber.Router, reads map[string]viewHandler) {
	for _, place := range []string{viewPath, viewPath + tokenPath} {
		for _, prefix := range prefixes() {
			for path, handle := range reads {
				mountRead(r, place+prefix+path, a.inView(handle, keptNever))
			}
		}
		mountRead(r, place+allowListPath, a.inView(a.getAllowList, keptMinute))
		mountRead(r, place+snippetPath, a.inView(a.getSnippet, keptNever))
		mountRead(r, place+apidocs.YAMLPath, a.inView(a.sendYAML, keptNever))
		mountRead(r, place+apidocs.JSONPath, a.inView(a.sendJSON, keptNever))
	}
}

// mountRead adds a read that web pages of any origin may make.
func mountRead(r fiber.Router, path string, handle fiber.Handler) {
	r.Get(path, allowAnyOrigin, handle)
	r.Options(path, allowAnyOrigin, sendPreflight)
}

func (a *API) sendYAML(c *fiber.Ctx, _ *view.View) error { return a.config.Docs.SendYAML(c) }

func (a *API) sendJSON(c *fiber.Ctx, _ *view.View) error { return a.config.Docs.SendJSON(c) }
