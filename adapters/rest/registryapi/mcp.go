package registryapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// schemaURL is the schema of the server.json that describes the MCP server.
const schemaURL = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

const (
	mcpPath   = "/mcp"
	mcpFile   = mcpPath + "/server.json"
	maxMCP    = 32 << 10         // bytes of the body of a request
	mcpTime   = 30 * time.Second // of a request
	mcpVendor = "tollgate"       // in the name of the server, after the host

	// mcpAtOnce is how many requests may read at a time: each may need some times the memory of a page of documents.
	mcpAtOnce = 8
	// largeMCP is the size in bytes from which the memory of a response counts until the client has it.
	largeMCP = 256 << 10
)

// mcpServer serves the registry, or a view of it, as an MCP server: Streamable HTTP without
// sessions, whose tools only read. The callers are those of the reads, and so are limits and kept
// responses.
type mcpServer struct {
	api     *API
	handler http.Handler
	origins *http.CrossOriginProtection
	host    string // of PUBLIC_URL; empty without it
}

func newMCPServer(a *API) *mcpServer {
	server := mcp.NewServer(&mcp.Implementation{
		Name: "tollgate-registry", Title: a.config.Resource.Name, Version: a.config.Build.Version,
	}, &mcp.ServerOptions{
		Instructions: "A registry of MCP servers. Search it, and get what a client needs to install a server.",
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
		SetCacheable: func(ctx context.Context, _ mcp.Request, c *mcp.Cacheable) {
			if call, ok := ctx.Value(mcpCallKey{}).(*mcpCall); !ok || a.config.Private || call.view != nil && call.view.Access != view.Public {
				c.CacheScope = "private"
			}
		},
	})
	addTools(server, a)
	reads := semaphore.NewWeighted(mcpAtOnce)
	server.AddReceivingMiddleware(guard(reads))
	options := &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, PropagateRequestCancellation: true}
	get := func(*http.Request) *mcp.Server { return server }
	s := &mcpServer{
		api: a, handler: mcp.NewStreamableHTTPHandler(get, options), origins: http.NewCrossOriginProtection(),
	}
	if public, err := url.Parse(a.config.Resource.URL); err == nil {
		s.host = public.Hostname()
	}
	return s
}

// guard refuses the methods that a server without sessions has no use for, among them those that
// would keep a response open, and lets so many requests at a time read. A panic is an error: the SDK
// calls methods in goroutines of its own, in which it would end the process.
func guard(reads *semaphore.Weighted) mcp.Middleware {
	known := mcpMethods()
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (result mcp.Result, err error) {
			defer func() {
				if p := recover(); p != nil {
					result, err = nil, inCall(ctx, func(*mcpCall) error {
						return fmt.Errorf("the method %q of the MCP server: %v\n%s", method, p, debug.Stack())
					})
				}
			}()
			reading, ok := known[method]
			switch {
			case !ok:
				return nil, unknownMethod(method)
			case reading:
				if err := inCall(ctx, func(c *mcpCall) error { return reads.Acquire(c.ctx, 1) }); err != nil {
					return nil, err
				}
				defer reads.Release(1)
			}
			return next(ctx, method, r)
		}
	}
}

// mcpMethods returns the methods that the server has, each with whether it reads.
func mcpMethods() map[string]bool {
	return map[string]bool{
		"initialize": false, "notifications/initialized": false, "notifications/cancelled": false, "server/discover": false,
		"ping": false, "tools/list": false, "tools/call": true, "resources/list": false, "resources/templates/list": false,
		"resources/read": true,
	}
}

func unknownMethod(method string) *jsonrpc.Error {
	return &jsonrpc.Error{
		Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("the registry has no method %q", method),
	}
}

// answerUnknown replaces the answer of the SDK to a method that it does not know, which is a text.
func (w *mcpResponse) answerUnknown(request []byte) error {
	var asked struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	err := json.Unmarshal(request, &asked)
	if _, known := mcpMethods()[asked.Method]; err != nil || known || len(asked.ID) == 0 || asked.Method == "" {
		return nil //nolint:nilerr // the SDK has said what is wrong
	}
	w.status, w.header = http.StatusOK, http.Header{fiber.HeaderContentType: {fiber.MIMEApplicationJSON}}
	w.body, err = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": asked.ID, "error": unknownMethod(asked.Method)})
	return err
}

// mountMCP adds the routes, if the server is on.
func (a *API) mountMCP(r fiber.Router) {
	if !a.config.MCP {
		return
	}
	s := newMCPServer(a)
	mountRead(r, mcpFile, a.inRegistry(s.sendFile))
	for _, slash := range [...]string{"", "/"} { // people copy addresses with a slash at their end
		r.Post(mcpPath+slash, a.inRegistry(s.serve))
		r.Post(viewPath+mcpPath+slash, a.inView(s.serve, keptNever))
		r.Post(viewPath+tokenPath+mcpPath+slash, a.inView(s.serve, keptNever))
	}
	for _, place := range [...]string{viewPath, viewPath + tokenPath} {
		mountRead(r, place+mcpFile, a.inView(s.sendFile, keptNever))
	}
}

// mcpCall is what a request knows of itself, for the tools that it calls.
type mcpCall struct {
	ctx  context.Context //nolint:containedctx // the SDK gives tools a context that does not end with the request
	view *view.View
	log  *logrus.Entry
}

// failed logs an error that is no fault of the caller.
func (m *mcpCall) failed(err error) {
	if f, ok := fault.As(err); !ok || f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		m.log.WithError(err).Error("a tool of the registry failed")
	}
}

type mcpCallKey struct{}

// serve passes a request to the SDK. Web pages of other origins may not call tools (MCP
// 2025-11-25, Streamable HTTP, security warning).
func (s *mcpServer) serve(c *fiber.Ctx, v *view.View) error {
	if isBatch(c.Request().Body()) {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Status(http.StatusBadRequest).SendString(noBatches)
	}
	watched, leave := rest.WatchClient(c)
	defer leave()
	ctx, end := context.WithTimeout(watched, mcpTime)
	defer end()
	ctx = context.WithValue(ctx, mcpCallKey{}, &mcpCall{ctx, v, rest.Log(c, s.api.config.Log)})
	// The server reuses the memory of a request, and the SDK may hold on to it for longer.
	body := bytes.NewReader(bytes.Clone(c.Request().Body()))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, mcpPath, body)
	if err != nil {
		return fault.Wrap(fault.Internal, "the request cannot be passed on", err)
	}
	c.Request().Header.VisitAll(func(name, value []byte) { r.Header.Add(string(name), string(value)) })
	r.Host = rest.Host(c)
	if s.origins.Check(r) != nil || !s.knowsHost(c, r.Host) {
		return fault.New(fault.Forbidden, "web pages of other origins may not call the tools of the registry, "+
			"and on a loopback address the host must be loopback or that of PUBLIC_URL")
	}
	w := mcpResponse{http.Header{}, http.StatusOK, nil}
	s.handler.ServeHTTP(&w, r)
	switch {
	case watched.Err() != nil:
		return fiber.ErrRequestTimeout // no one reads it
	case ctx.Err() != nil:
		return fault.Wrap(fault.Unavailable, "too many requests are being answered; try again later", ctx.Err())
	}
	if w.status == http.StatusBadRequest {
		if err := w.answerUnknown(c.Request().Body()); err != nil {
			return err
		}
	}
	for name, values := range w.header {
		c.Set(name, strings.Join(values, ", "))
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	if len(w.body) >= largeMCP {
		return s.api.bodies.Send(c, responsebody.NewShared(fiber.MIMEApplicationJSON, w.body, fiber.HeaderCacheControl, "no-store"))
	}
	return c.Status(w.status).Send(w.body)
}

// noBatches is the answer to a batch. The SDK would run its calls side by side, and they would count as one request; MCP
// has no batches since 2025-06-18.
const noBatches = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch of messages is not taken: send each one by itself"}}`

// isBatch reports whether a body is a list of messages.
func isBatch(body []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) }

// knowsHost reports whether a request may ask for a host. A web page whose name was made to lead to
// this machine (DNS rebinding) requests its own on a loopback address.
func (s *mcpServer) knowsHost(c *fiber.Ctx, host string) bool {
	if !c.Context().LocalIP().IsLoopback() {
		return true
	}
	name := (&url.URL{Host: host}).Hostname()
	if address, err := netip.ParseAddr(name); err == nil {
		return address.Unmap().IsLoopback()
	}
	return name == "localhost" || name != "" && strings.EqualFold(name, s.host)
}

// mcpResponse is the response of the SDK.
type mcpResponse struct {
	header http.Header
	status int
	body   []byte
}

// Header implements [http.ResponseWriter].
func (w *mcpResponse) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *mcpResponse) WriteHeader(status int) { w.status = status }

// Write implements [http.ResponseWriter].
func (w *mcpResponse) Write(p []byte) (int, error) {
	w.body = append(w.body, p...)
	return len(p), nil
}

// Flush implements [http.Flusher].
func (*mcpResponse) Flush() {}

// sendFile sends the server.json of the MCP server, so that it can be published like any other.
func (s *mcpServer) sendFile(c *fiber.Ctx, v *view.View) error {
	base := s.api.config.Resource.base()
	if base == "" {
		scheme := "http"
		if rest.Secure(c) {
			scheme = "https"
		}
		base = scheme + "://" + rest.Host(c)
	}
	name, title := mcpVendor, s.api.config.Resource.Name
	if v != nil {
		base += viewsPath + string(v.Name)
		name += "-" + string(v.Name)
		title += ": " + string(v.Name)
	}
	return c.JSON(map[string]any{
		"$schema": schemaURL, "name": reverseHost(base) + "/" + name, "title": title,
		"description": "Searches a registry of MCP servers and says how to install them", "version": s.api.config.Build.Version,
		"remotes": []map[string]string{{"type": "streamable-http", "url": base + mcpPath}},
	})
}

// reverseHost returns the labels of the host of a URL in reverse, as names of servers begin. An
// address is no such name.
func reverseHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "localhost"
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return "localhost"
	}
	labels := strings.Split(u.Hostname(), ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

// readFor returns the answer to a read for a tool. It has the errors of the read, and fault.Invalid
// for a history that is too long.
func (a *API) readFor(call *mcpCall, r read) (answer, error) {
	r.view = call.view
	found, err := a.answers.Get(call.ctx, r)
	if err == nil && found.Body == nil {
		err = fault.New(fault.Invalid, "the server has too many versions: get one of them")
	}
	return found, err
}

// decodeBody decodes the body of an answer that the registry has made.
func decodeBody[T any](found answer) (v T, err error) {
	if err := json.Unmarshal(found.Body.Bytes(), &v); err != nil {
		return v, fault.Wrap(fault.Internal, "a kept response cannot be read", err)
	}
	return v, nil
}
