// Package debugapi is the debug listener for operators: profiles, the rate limit rules in force,
// the statistics of the rate limits as text, and the metrics of all parts. It is read-only.
package debugapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/requestid"
)

// Config holds the settings of the debug listener.
type Config struct {
	Host string `env:"DEBUG_HOST" envDefault:"0.0.0.0" desc:"address that the debug listener listens on"`
	Port int    `env:"DEBUG_PORT" envDefault:"6070" desc:"port that the debug listener listens on; 0 = any free port"`
}

// Validate returns an error that names the first setting that is out of range.
func (c Config) Validate() error {
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("DEBUG_PORT: %d is not a port number from 0 to 65535", c.Port)
	}
	return nil
}

// Timeouts and the maximum header size. There is no write timeout, because a profile may take long.
const (
	readTimeout = 10 * time.Second
	idleTimeout = 2 * time.Minute
	maxHeader   = 16 << 10
)

// Ports are the dependencies of the listener. Those that are nil have no page.
type Ports struct {
	Rules      *reload.Rules
	Statistics *Statistics
	Metrics    http.Handler
	Explain    http.Handler // says by which rules a request would be decided
	HotKeys    http.Handler // lists the keys with the most hits

	Registerer prometheus.Registerer // for the metrics of the listener; optional
	Log        *logrus.Entry
}

// Server is the debug listener.
type Server struct {
	name     string
	http     *http.Server
	listener net.Listener
}

// Open opens the listener. It serves no requests before Serve. The cleanup closes it.
func Open(ctx context.Context, c Config, d Ports) (*Server, func(), error) {
	o := httpconn.ListenerOptions{Name: "debug", Max: maxConnections, Metrics: d.Registerer, Log: d.Log}
	s, cleanup, err := newServer(ctx, net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), newHandler(d), o)
	if err != nil {
		return nil, nil, fmt.Errorf("DEBUG_HOST and DEBUG_PORT: %w", err)
	}
	return s, cleanup, nil
}

// newServer opens a listener for a handler. The cleanup closes it.
func newServer(
	ctx context.Context, address string, h http.Handler, o httpconn.ListenerOptions,
) (*Server, func(), error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	o.Refusal = httpconn.TooManyConnections
	l = httpconn.NewListener(l, o)
	s := &Server{name: o.Name, listener: l, http: &http.Server{
		Handler:           addRequestID(h),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
	}}
	cleanup := func() {
		_ = s.http.Close() // closes the connections that Shutdown has not closed
		_ = l.Close()      // it is closed already after Serve
	}
	return s, cleanup, nil
}

// Addr returns the address of the listener.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Addresses returns the address by the name of the listener.
func (s *Server) Addresses() logrus.Fields { return logrus.Fields{s.name: s.Addr().String()} }

// Serve serves requests. It returns nil after Shutdown or the cleanup.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the debug listener: %w", err)
	}
	return nil
}

// Shutdown closes the listener and waits for the requests in flight, but not longer than ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return fmt.Errorf("shut down the debug listener: %w", err)
	}
	return nil
}

// page is one path of the listener.
type page struct {
	present               bool
	method, path, meaning string
	handler               http.Handler
}

// listPages returns the pages whose dependencies are present.
func listPages(d Ports) []page {
	all := []page{
		{true, "GET", "/debug/pprof/", "profiles of the process", http.HandlerFunc(pprof.Index)},
		{d.Rules != nil, "GET", "/rlconfig", "the rate limit configuration in force", newRulesHandler(d.Rules)},
		{
			d.Statistics != nil, "GET", "/stats", "statistics of the rate limits, one per line",
			http.HandlerFunc(d.Statistics.writeText),
		},
		{
			d.Explain != nil, "POST", "/ratelimit/explain",
			"by which rules a request in the form of /json would be decided, and why", d.Explain,
		},
		{
			d.HotKeys != nil, "GET", "/ratelimit/hot",
			"the keys with the most hits of each rule, in the last five minutes", d.HotKeys,
		},
		{d.Metrics != nil, "GET", "/metrics", "metrics of all parts for Prometheus", d.Metrics},
	}
	return slices.DeleteFunc(all, func(p page) bool { return !p.present })
}

func newHandler(d Ports) http.Handler {
	mux := http.NewServeMux()
	list := listPages(d)
	for _, p := range list {
		mux.Handle(p.method+" "+p.path, p.handler)
	}
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		setTextHeaders(w)
		for _, p := range list {
			_, _ = fmt.Fprintf(w, "%s: %s\n", p.path, p.meaning) // the client may have disconnected
		}
	})
	return mux
}

// addRequestID is a middleware that sets the request id in the response: the id that the client
// sent, or a random one.
func addRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(requestid.Header, httpconn.RequestID(r.Header.Get(requestid.Header)))
		next.ServeHTTP(w, r)
	})
}

func setTextHeaders(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
}

// newRulesHandler returns a handler that writes one rule per line in the format of the Envoy rate
// limit service. Properties that the format does not have follow at the end of the line.
func newRulesHandler(rules *reload.Rules) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		setTextHeaders(w)
		set := rules.Current()
		if set == nil {
			_, _ = fmt.Fprintln(w, "no configuration is loaded") // the client may have disconnected
			return
		}
		var b strings.Builder
		for r := range set.Rules() {
			writeRule(&b, r)
		}
		_, _ = w.Write([]byte(b.String())) // the client may have disconnected
	})
}

func writeRule(b *strings.Builder, r *ratelimit.Rule) {
	unit, requests := "UNKNOWN", uint32(0) // an unlimited rule, as the Envoy rate limit service writes it
	if !r.Unlimited {
		unit, requests = strings.ToUpper(r.Limit.Unit.String()), r.Limit.RequestsPerUnit
	}
	fmt.Fprintf(b, "%s.%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t",
		replaceControls(string(r.Domain)), replaceControls(r.Path), unit, requests, r.Shadow, r.Quota)
	if r.Unlimited {
		b.WriteString(", unlimited: true")
	}
	if r.Limit.Algorithm != ratelimit.FixedWindow {
		fmt.Fprintf(b, ", algorithm: %s", r.Limit.Algorithm)
	}
	if r.Limit.Burst > 0 {
		fmt.Fprintf(b, ", burst: %d", r.Limit.Burst)
	}
	if r.Lease != ratelimit.LeaseDefault {
		fmt.Fprintf(b, ", lease: %s", r.Lease)
	}
	if r.Name != "" {
		fmt.Fprintf(b, ", name: %s", replaceControls(string(r.Name)))
	}
	for _, name := range r.Replaces {
		fmt.Fprintf(b, ", replaces: %s", replaceControls(string(name)))
	}
	b.WriteByte('\n')
}

// replaceControls replaces control characters by underscores.
func replaceControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
}
