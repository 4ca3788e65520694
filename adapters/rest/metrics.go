package rest

import (
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/each"
)

// The labels of requests without a part, without a route, and with a method that no route has.
const (
	partNone    = "service"
	routeNone   = "none"
	methodOther = "other"
)

// requestMetrics counts and times requests by part, route and method. All values of the labels are
// known when the routes are, so that requests cannot add time series.
type requestMetrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  prometheus.Gauge

	routed   map[*fiber.Route]*routeMetrics
	unrouted map[unrouted]*routeMetrics
}

// unrouted is the key of requests that were finished before they had a route.
type unrouted struct{ part, method string }

func newRequestMetrics(r prometheus.Registerer, connections func() float64) *requestMetrics {
	m := &requestMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_http_requests_total",
			Help: "Finished requests.",
		}, []string{"part", "route", "method", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tollgate_http_request_duration_seconds",
			Help:    "Duration of requests, from the arrival of the whole request to the response.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"part", "route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_http_requests_in_flight",
			Help: "Requests in progress.",
		}),
		routed:   map[*fiber.Route]*routeMetrics{},
		unrouted: map[unrouted]*routeMetrics{},
	}
	if r != nil {
		r.MustRegister(m.requests, m.durations, m.inFlight, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tollgate_http_connections",
			Help: "Open connections.",
		}, connections))
	}
	return m
}

// addRoutes adds the metrics of all routes, and of the requests of each part that have no route.
func (m *requestMetrics) addRoutes(app *fiber.App, parts []Part) {
	for _, routes := range app.Stack() {
		for _, r := range routes {
			if r.Path != "/" { // the path of the middlewares
				part := partName(ownerOf(parts, r.Path))
				m.routed[r] = m.newRouteMetrics(part, pathTemplate(r.Path), r.Method)
			}
		}
	}
	for _, name := range append(each.Map(parts, Part.Name), partNone) {
		for _, method := range app.Config().RequestMethods {
			label := method
			if method == fiber.MethodTrace { // the method of all unknown methods, see adjustServer
				label = methodOther
			}
			m.unrouted[unrouted{name, method}] = m.newRouteMetrics(name, routeNone, label)
		}
	}
}

func partName(p Part) string {
	if p == nil {
		return partNone
	}
	return p.Name()
}

var routeParameter = regexp.MustCompile(`:(\w+)|\*`)

// pathTemplate returns the path of a route in the syntax of OpenAPI.
func pathTemplate(path string) string {
	return routeParameter.ReplaceAllStringFunc(path, func(p string) string {
		if p == "*" {
			return "{path}"
		}
		return "{" + p[1:] + "}"
	})
}

// routeMetricsOf returns the metrics of the route of a finished request.
func (m *requestMetrics) routeMetricsOf(c *fiber.Ctx, parts []Part) *routeMetrics {
	if r, ok := m.routed[c.Route()]; ok {
		return r
	}
	part, method := partName(ownerOf(parts, c.Path())), c.Method()
	if r, ok := m.unrouted[unrouted{part, method}]; ok {
		return r
	}
	return m.unrouted[unrouted{part, fiber.MethodTrace}]
}

// routeMetrics counts and times the requests of one route. It caches the series, because a lookup
// for each request would cost more than counting.
type routeMetrics struct {
	duration   func() prometheus.Observer
	newCounter func(code int) prometheus.Counter
	codes      sync.Map // int to prometheus.Counter
}

func (m *requestMetrics) newRouteMetrics(part, route, method string) *routeMetrics {
	r := &routeMetrics{
		duration: sync.OnceValue(func() prometheus.Observer {
			return m.durations.WithLabelValues(part, route, method)
		}),
		newCounter: func(code int) prometheus.Counter {
			return m.requests.WithLabelValues(part, route, method, strconv.Itoa(code))
		},
	}
	switch {
	// the series appear with the first request
	case route == routeNone, method == fiber.MethodHead, method == fiber.MethodOptions:
	default:
		for _, code := range []int{fiber.StatusInternalServerError, fiber.StatusServiceUnavailable} {
			r.codes.Store(code, r.newCounter(code))
		}
	}
	return r
}

// record records a finished request.
func (r *routeMetrics) record(code int, took time.Duration) {
	r.duration().Observe(took.Seconds())
	counter, ok := r.codes.Load(code)
	if !ok {
		counter, _ = r.codes.LoadOrStore(code, r.newCounter(code))
	}
	if c, ok := counter.(prometheus.Counter); ok {
		c.Inc()
	}
}
