package rest

import (
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// Values of labels that stand for what is no part's, no route's and no method
// that a route has.
const (
	noPart      = "service"
	noRoute     = "none"
	otherMethod = "other"
)

// meter counts and times requests by part, route and method. Everything that a
// label may be is known when the routes are, so callers cannot make their number
// grow.
type meter struct {
	requests *prometheus.CounterVec
	times    *prometheus.HistogramVec
	inFlight prometheus.Gauge

	routed   map[*fiber.Route]*routeMeter
	unrouted map[unrouted]*routeMeter
}

// unrouted tells requests apart that were answered before they had a route.
type unrouted struct{ part, method string }

func newMeter(r prometheus.Registerer, connections func() float64) *meter {
	m := &meter{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tollgate_http_requests_total",
			Help: "Requests that were answered.",
		}, []string{"part", "route", "method", "code"}),
		times: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tollgate_http_request_duration_seconds",
			Help:    "How long requests took, from their whole arrival to their answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"part", "route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tollgate_http_requests_in_flight",
			Help: "Requests that are being answered.",
		}),
		routed:   map[*fiber.Route]*routeMeter{},
		unrouted: map[unrouted]*routeMeter{},
	}
	if r != nil {
		r.MustRegister(m.requests, m.times, m.inFlight, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tollgate_http_connections",
			Help: "Connections that are open.",
		}, connections))
	}
	return m
}

// know makes the meters of all routes, and those of each part for what has none.
func (m *meter) know(app *fiber.App, parts []Part) {
	for _, routes := range app.Stack() {
		for _, r := range routes {
			if r.Path != "/" { // that of what surrounds all routes
				part := partName(ownerOf(parts, r.Path))
				m.routed[r] = m.newRoute(part, template(r.Path), r.Method)
			}
		}
	}
	names := []string{noPart}
	for _, p := range parts {
		names = append(names, p.Name())
	}
	for _, name := range names {
		for _, method := range app.Config().RequestMethods {
			label := method
			if method == fiber.MethodTrace { // stands for every method that is not known
				label = otherMethod
			}
			m.unrouted[unrouted{name, method}] = m.newRoute(name, noRoute, label)
		}
	}
}

func partName(p Part) string {
	if p == nil {
		return noPart
	}
	return p.Name()
}

var parameter = regexp.MustCompile(`:(\w+)|\*`)

// template writes a route's path as the API's description does.
func template(path string) string {
	return parameter.ReplaceAllStringFunc(path, func(p string) string {
		if p == "*" {
			return "{path}"
		}
		return "{" + p[1:] + "}"
	})
}

// of returns the meter of a request that has been answered.
func (m *meter) of(c *fiber.Ctx, parts []Part) *routeMeter {
	if r, ok := m.routed[c.Route()]; ok {
		return r
	}
	part, method := partName(ownerOf(parts, c.Path())), c.Method()
	if r, ok := m.unrouted[unrouted{part, method}]; ok {
		return r
	}
	return m.unrouted[unrouted{part, fiber.MethodTrace}]
}

// routeMeter counts and times the requests of one route. Its handles are looked
// up once: doing so at each request would cost more than counting.
type routeMeter struct {
	took  func() prometheus.Observer
	count func(code int) prometheus.Counter
	codes sync.Map // int to prometheus.Counter
}

func (m *meter) newRoute(part, route, method string) *routeMeter {
	r := &routeMeter{
		took: sync.OnceValue(func() prometheus.Observer { return m.times.WithLabelValues(part, route, method) }),
		count: func(code int) prometheus.Counter {
			return m.requests.WithLabelValues(part, route, method, strconv.Itoa(code))
		},
	}
	switch {
	case route == noRoute, method == fiber.MethodHead, method == fiber.MethodOptions: // there once somebody asks so
	default:
		r.took()
		for _, code := range []int{fiber.StatusInternalServerError, fiber.StatusServiceUnavailable} {
			r.codes.Store(code, r.count(code))
		}
	}
	return r
}

// answered takes note of a request.
func (r *routeMeter) answered(code int, took time.Duration) {
	r.took().Observe(took.Seconds())
	counter, ok := r.codes.Load(code)
	if !ok {
		counter, _ = r.codes.LoadOrStore(code, r.count(code))
	}
	if c, ok := counter.(prometheus.Counter); ok {
		c.Inc()
	}
}
