// Package methodsapi serves the open-data methods listing below /v2 as JSON, JSONP and XML. All
// responses have the same envelope, errors included (contract M-3).
package methodsapi

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/catalogue/usage"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const (
	root           = "/v2"
	listingPath    = root + "/api/methods."
	successMessage = "Request successful"
)

// Config holds the settings of the methods listing.
type Config struct {
	BaseURL string `env:"OPENDATA_BASE_URL" desc:"URL that begins each method_url; default: scheme and host of the request, and /v2"`
}

// Validate returns an error that names the setting if it is malformed.
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

// API is the methods listing.
type API struct {
	baseURL string
	methods methodstore.Store
	usage   *usage.Counter
	clock   clock.Clock
	log     *logrus.Entry
}

// New returns the methods listing.
func New(cfg Config, m methodstore.Store, u *usage.Counter, c clock.Clock, log *logrus.Entry) *API {
	return &API{baseURL: strings.TrimSuffix(cfg.BaseURL, "/"), methods: m, usage: u, clock: c, log: log}
}

// Mount adds the routes below /v2.
func (a *API) Mount(r fiber.Router) {
	r.Get(listingPath+"json", a.sendListing)
	r.Get(listingPath+"xml", a.sendListing)
	r.Get(root, a.sendUnserved)
	r.Get(root+"/*", a.sendUnserved)
}

// Name implements rest.Part.
func (*API) Name() string { return "methods" }

// Owns implements rest.Part.
func (a *API) Owns(path string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// Scope implements rest.Part. The registry and the methods listing share a limit.
func (a *API) Scope(string, string) throttle.Scope { return throttle.RegistryAddress }

// MaxBody implements rest.Part. No request has a body.
func (a *API) MaxBody(string, string) int { return rest.MaxSecretBody }

// sendListing sends the listing. It does not count as usage.
func (a *API) sendListing(c *fiber.Ctx) error {
	callback, err := a.readCallback(c)
	if err != nil {
		return err
	}
	methods, err := a.methods.List(c.UserContext())
	if err != nil {
		return err
	}
	e := a.newEnvelope(c, http.StatusOK, successMessage)
	id := catalogue.ListingID
	e.Meta.MethodID = &id
	base := a.requestBaseURL(c)
	for _, m := range methods {
		e.Data = append(e.Data, newEntry(m, base))
	}
	return writeEnvelope(c, e, callback)
}

// readCallback returns the name of the JSONP function; empty without the parameter.
func (a *API) readCallback(c *fiber.Ctx) (string, error) {
	name := c.Query("callback")
	if name == "" {
		return "", nil
	}
	if wantsXML(c) {
		return "", fault.New(fault.Invalid, "callback is only allowed with json, not with xml")
	}
	return catalogue.ParseCallback(name)
}

// sendUnserved responds to all other paths below /v2: 501 for a method that is in the listing but
// not served here, else 404.
func (a *API) sendUnserved(c *fiber.Ctx) error {
	path := strings.TrimPrefix(c.Path(), root)
	methods, err := a.methods.List(c.UserContext())
	if err != nil {
		return err
	}
	if m, ok := catalogue.Find(methods, path); ok {
		c.Locals(methodKey{}, m.ID)
		return fault.New(fault.Unsupported, "this service lists the method but does not serve it")
	}
	return fault.New(fault.NotFound, "no such method or format")
}

type methodKey struct{}

// WriteFault writes the envelope of an error.
func (a *API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	e := a.newEnvelope(c, c.Response().StatusCode(), f.Message)
	if id, ok := c.Locals(methodKey{}).(catalogue.MethodID); ok {
		e.Meta.MethodID = &id
	} else if isListing(c) {
		id := catalogue.ListingID
		e.Meta.MethodID = &id
	}
	return writeEnvelope(c, e, "")
}

// newEnvelope returns an envelope without data. It counts the request as usage, unless it is for
// the listing. If usage cannot be counted, its value is null.
func (a *API) newEnvelope(c *fiber.Ctx, status int, message string) envelope {
	count := a.usage.Count
	if isListing(c) {
		count = a.usage.Today
	}
	e := envelope{Data: entries{}}
	n, err := count(c.UserContext(), rest.Client(c))
	if err == nil {
		e.Meta.Requests = &n
	} else {
		rest.Log(c, a.log).WithError(err).Warn("the request was not counted as usage")
	}
	e.Meta.Timestamp = a.clock.Now().Unix()
	e.Meta.Status = status
	e.Meta.Message = message
	e.Meta.Version = 2.07
	return e
}

func (a *API) requestBaseURL(c *fiber.Ctx) string {
	if a.baseURL != "" {
		return a.baseURL
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

type envelope struct {
	XMLName xml.Name `json:"-" xml:"response"`
	Meta    meta     `json:"meta" xml:"meta"`
	Data    entries  `json:"data" xml:"data"`
}

// entries is a list. An empty list is an empty data element in XML.
type entries []entry

// MarshalXML writes an item element for each entry.
func (l entries) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	list := struct {
		Items []entry `xml:"item"`
	}{l}
	if err := e.EncodeElement(list, start); err != nil {
		return fmt.Errorf("encode data: %w", err)
	}
	return nil
}

type meta struct {
	Requests  *uint64             `json:"requests" xml:"requests"`
	Timestamp int64               `json:"timestamp" xml:"timestamp"`
	Status    int                 `json:"status" xml:"status"`
	Message   string              `json:"message" xml:"message"`
	MethodID  *catalogue.MethodID `json:"method_id" xml:"method_id"`
	Version   float64             `json:"version" xml:"version"`
	Method    struct{}            `json:"method" xml:"method"`
}

type entry struct {
	MethodID    catalogue.MethodID  `json:"method_id" xml:"method_id"`
	MethodURL   string              `json:"method_url" xml:"method_url"`
	ServiceID   catalogue.ServiceID `json:"service_id" xml:"service_id"`
	ServiceName string              `json:"service_name" xml:"service_name"`
	Parameters  []string            `json:"parameters" xml:"parameters>item"`
}

func newEntry(m catalogue.Method, base string) entry {
	return entry{
		MethodID: m.ID, MethodURL: base + m.Path,
		ServiceID: m.ServiceID, ServiceName: m.ServiceName,
		Parameters: append([]string{}, m.Parameters...),
	}
}

// writeEnvelope writes an envelope as XML if the path ends in .xml, else as JSON, or as JSONP if
// there is a callback.
func writeEnvelope(c *fiber.Ctx, e envelope, callback string) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if wantsXML(c) {
		return writeXML(c, e)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode envelope: %w", err)
	}
	if callback == "" {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSONCharsetUTF8)
		return c.Send(body)
	}
	// The leading comment ensures that the response can only be read as a script, whatever the name
	// of the callback is.
	c.Set(fiber.HeaderContentType, "application/javascript; charset=utf-8") // contract M-7
	return c.SendString("/**/" + callback + "(" + string(body) + ");")
}

func writeXML(c *fiber.Ctx, e envelope) error {
	body, err := xml.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode envelope: %w", err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationXMLCharsetUTF8)
	return c.SendString(xml.Header + string(body))
}
