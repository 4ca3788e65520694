// Package methodsapi serves the open-data methods listing below /v2: JSON, JSONP and XML in one
// envelope, errors included (contract M-3).
package methodsapi

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	root        = "/v2"
	listingPath = root + "/api/methods."
	success     = "Request successful"
)

// Config is what an operator may set of the methods listing.
type Config struct {
	BaseURL string `env:"OPENDATA_BASE_URL" desc:"URL that begins each method_url; default: scheme and host of the request, and /v2"`
}

// Validate names the setting that is malformed.
func (c Config) Validate() error {
	if c.BaseURL == "" {
		return nil
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("OPENDATA_BASE_URL: %q is not an http or https URL", c.BaseURL)
	}
	return nil
}

// Lister lists the methods.
type Lister interface {
	List(ctx context.Context) ([]catalogue.Method, error)
}

// Usage counts the calls of a client today, by an address that stands for it.
type Usage interface {
	Count(ctx context.Context, a netip.Addr) (uint64, error)
	Today(ctx context.Context, a netip.Addr) (uint64, error)
}

// API is the methods listing.
type API struct {
	base   string
	lister Lister
	usage  Usage
	clock  clock.Clock
	log    *logrus.Entry
}

// New returns the methods listing.
func New(cfg Config, l Lister, u Usage, c clock.Clock, log *logrus.Entry) *API {
	return &API{base: strings.TrimSuffix(cfg.BaseURL, "/"), lister: l, usage: u, clock: c, log: log}
}

// Mount adds the routes of everything below /v2.
func (a *API) Mount(r fiber.Router) {
	r.Get(listingPath+"json", a.list)
	r.Get(listingPath+"xml", a.list)
	r.Get(root, a.other)
	r.Get(root+"/*", a.other)
}

// Name implements rest.Part.
func (*API) Name() string { return "methods" }

// Owns reports whether the path is below /v2.
func (a *API) Owns(path string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// Scope returns the limit that the registry and the methods share.
func (a *API) Scope(string, string) throttle.Scope { return throttle.RegistryAddress }

// list answers the listing. A call of it does not count towards usage.
func (a *API) list(c *fiber.Ctx) error {
	callback, err := a.callback(c)
	if err != nil {
		return err
	}
	methods, err := a.lister.List(c.UserContext())
	if err != nil {
		return err
	}
	e := a.envelope(c, http.StatusOK, success)
	id := catalogue.ListingID
	e.Meta.MethodID = &id
	base := a.baseURL(c)
	for _, m := range methods {
		e.Data = append(e.Data, entryOf(m, base))
	}
	return write(c, e, callback)
}

// callback returns the JSONP function's name, empty where none is asked for.
func (a *API) callback(c *fiber.Ctx) (string, error) {
	name := c.Query("callback")
	if name == "" {
		return "", nil
	}
	if wantsXML(c) {
		return "", fault.New(fault.Invalid, "", "callback is not possible with xml")
	}
	return catalogue.ParseCallback(name)
}

// other answers every path below /v2 that is not the listing: 501 for a method
// that is listed and not served here, else 404.
func (a *API) other(c *fiber.Ctx) error {
	path := strings.TrimPrefix(c.Path(), root)
	methods, err := a.lister.List(c.UserContext())
	if err != nil {
		return err
	}
	if m, ok := catalogue.Find(methods, path); ok {
		c.Locals(methodKey{}, m.ID)
		return fault.New(fault.Unsupported, "", "method is listed and not served here")
	}
	return fault.New(fault.NotFound, "", "no such method or format")
}

type methodKey struct{}

// WriteFault writes the envelope of a failure.
func (a *API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	e := a.envelope(c, c.Response().StatusCode(), f.Message)
	if id, ok := c.Locals(methodKey{}).(catalogue.MethodID); ok {
		e.Meta.MethodID = &id
	} else if isListing(c) {
		id := catalogue.ListingID
		e.Meta.MethodID = &id
	}
	return write(c, e, "")
}

// envelope returns an envelope without data. Where usage cannot be told, it is
// null, as any value of the envelope may be.
func (a *API) envelope(c *fiber.Ctx, status int, message string) envelope {
	count := a.usage.Count
	if isListing(c) {
		count = a.usage.Today
	}
	e := envelope{Data: entries{}}
	n, err := count(c.UserContext(), rest.Client(c))
	if err == nil {
		e.Meta.Requests = &n
	} else {
		rest.Log(c, a.log).WithError(err).Warn("usage was not counted")
	}
	e.Meta.Timestamp = a.clock.Now().Unix()
	e.Meta.Status = status
	e.Meta.Message = message
	e.Meta.Version = 2.07
	return e
}

func (a *API) baseURL(c *fiber.Ctx) string {
	if a.base != "" {
		return a.base
	}
	scheme := "http"
	if rest.Secure(c) {
		scheme = "https"
	}
	return scheme + "://" + string(c.Context().Host()) + root
}

func isListing(c *fiber.Ctx) bool {
	format, ok := strings.CutPrefix(c.Path(), listingPath)
	return ok && (format == "json" || format == "xml")
}

func wantsXML(c *fiber.Ctx) bool { return strings.HasSuffix(c.Path(), ".xml") }
