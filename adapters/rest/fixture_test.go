package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

// now is the time in every test, 900 seconds before the end of a window.
var now = time.Unix(1_800_000_000, 0).UTC()

// stubThrottle counts by scope and key. It fails while it is unavailable.
type stubThrottle struct {
	mu    sync.Mutex
	limit uint64
	// limits are limits of scopes other than limit.
	limits map[throttle.Scope]uint64
	away   bool // unavailable
	used   map[string]uint64
}

func (l *stubThrottle) Try(_ context.Context, scope throttle.Scope, key string) (throttle.Verdict, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return throttle.Verdict{Limit: 7, Remaining: 7, ResetAt: now.Add(15 * time.Minute)},
			fault.New(fault.Unavailable, "the counter store is unavailable")
	}
	if l.limit == 0 {
		return throttle.Verdict{Allowed: true, Unlimited: true}, nil
	}
	if l.used == nil {
		l.used = map[string]uint64{}
	}
	name := string(scope) + " " + key
	l.used[name]++
	limit, ok := l.limits[scope]
	if !ok {
		limit = l.limit
	}
	return throttle.Verdict{
		Allowed: l.used[name] <= limit, Limit: limit,
		Remaining: limit - min(limit, l.used[name]), ResetAt: now.Add(15 * time.Minute),
	}, nil
}

func (l *stubThrottle) GiveBack(context.Context, throttle.Scope, string, throttle.Verdict) error {
	return nil
}

// keys returns the counted scopes and keys in the form "scope key".
func (l *stubThrottle) keys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for name := range l.used {
		names = append(names, name)
	}
	return names
}

// part is a part of the API for tests, below a prefix.
type part struct {
	prefix string
	scope  throttle.Scope
}

func (p part) Name() string                        { return strings.Trim(p.prefix, "/") }
func (p part) Owns(path string) bool               { return strings.HasPrefix(path, p.prefix+"/") }
func (p part) Scope(string, string) throttle.Scope { return p.scope }
func (p part) MaxBody(_, path string) int {
	if strings.HasSuffix(path, "/small") {
		return rest.MaxSecretBody
	}
	return rest.MaxBody
}
func (p part) Mount(r fiber.Router)         { r.Get(p.prefix+"/echo", p.echo); p.mountFailures(r) }
func (p part) fail(err error) fiber.Handler { return func(*fiber.Ctx) error { return err } }

func (p part) echo(c *fiber.Ctx) error {
	return c.JSON(map[string]string{
		"address": rest.Address(c).String(), "secure": strconv.FormatBool(rest.Secure(c)),
		"token": rest.BearerToken(c), "id": rest.RequestID(c), "host": rest.Host(c),
	})
}

func (p part) mountFailures(r fiber.Router) {
	for _, path := range []string{"/body", "/small"} {
		r.Post(p.prefix+path, func(c *fiber.Ctx) error {
			body, err := rest.JSONBody(c)
			if err != nil {
				return err
			}
			return c.Send(body)
		})
	}
	r.Get(p.prefix+"/panic", func(*fiber.Ctx) error { panic("internal detail") })
	r.Get(p.prefix+"/plain", p.fail(errors.New("dial tcp 10.0.0.1: internal detail")))
	for kind := fault.Internal; kind <= fault.Unavailable; kind++ {
		f := fault.New(kind, "a sentence").WithCode("some_code").After(1500 * time.Millisecond)
		r.Get(p.prefix+"/fault/"+strconv.Itoa(int(kind)), p.fail(f))
	}
	r.Get(p.prefix+"/usedup", p.fail(
		fault.New(fault.Exhausted, "a limit of its own").WithDetail("limit", jsonvalue.Number(5))))
	r.Get(p.prefix+"/challenge", p.fail(
		fault.New(fault.Forbidden, "step up").WithDetail("challenge",
			jsonvalue.Text(`Bearer error="insufficient_user_authentication"`))))
}

func (p part) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	return c.JSON(map[string]string{"part": p.prefix, "sentence": f.Message})
}

type service struct {
	url, address string
	server       *rest.Server
	throttle     *stubThrottle
	log          *logBuffer
}

// logBuffer holds the log. It is safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func config() rest.Config { return resttest.Config() }

// serve starts a listener with the parts /auth and /v0.1 and more parts.
func serve(t *testing.T, cfg rest.Config, health *rest.Health, more ...rest.Part) *service {
	t.Helper()
	return serveWith(t, cfg, rest.Ports{Health: health, Parts: more})
}

// serveWith is serve with any ports.
func serveWith(t *testing.T, cfg rest.Config, d rest.Ports) *service {
	t.Helper()
	return serveOn(t, cfg, openListener(t, cfg, d.Metrics), d)
}

// openListener opens the listener of a configuration. metrics is optional.
func openListener(t *testing.T, cfg rest.Config, metrics prometheus.Registerer) net.Listener {
	t.Helper()
	if metrics == nil {
		metrics = prometheus.NewRegistry()
	}
	l, err := rest.Listen(t.Context(), cfg, logrus.NewEntry(logrus.New()), metrics)
	must.Succeed(t, err)
	return l
}

// serveOn is serveWith on an open listener.
func serveOn(t *testing.T, cfg rest.Config, l net.Listener, d rest.Ports) *service {
	t.Helper()
	s := &service{throttle: &stubThrottle{limit: 100}, log: &logBuffer{}}
	logger := logrus.New()
	logger.SetOutput(s.log)
	d.Parts = append([]rest.Part{
		part{"/auth", throttle.AuthAddress}, part{"/v0.1", throttle.RegistryAddress},
	}, d.Parts...)
	d.Throttle, d.Clock, d.Log = s.throttle, clocktest.NewManual(now), logrus.NewEntry(logger)
	s.server = rest.New(cfg, d)
	s.address = l.Addr().String()
	s.url = "http://" + s.address
	resttest.ServeOn(t, s.server, l)
	return s
}

type response struct {
	status int
	header http.Header
	body   string
}

func (a response) field(t *testing.T, name string) string {
	t.Helper()
	var fields map[string]string
	if err := json.Unmarshal([]byte(a.body), &fields); err != nil {
		t.Fatalf("body %q: %v", a.body, err)
	}
	return fields[name]
}

// call sends a request. headers are names followed by values.
func (s *service) call(t *testing.T, method, path string, body io.Reader, headers ...string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	must.Succeed(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	must.Succeed(t, err)
	return response{got.StatusCode, got.Header, string(text)}
}
