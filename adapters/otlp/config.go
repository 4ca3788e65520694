package otlp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/contrib/propagators/autoprop"
	"golang.org/x/net/http/httpguts"
)

// Protocols of the exporter.
const (
	overHTTP = "http"
	overGRPC = "grpc"
)

// Config contains the settings of tracing (contract L-49): its own variables, and the standard ones
// that Validate checks. The OpenTelemetry library reads the other OTEL_EXPORTER_OTLP_* and
// OTEL_BSP_* variables itself (certificates, compression, timeouts, queue).
type Config struct {
	Enabled      bool    `env:"TRACING_ENABLED" envDefault:"false" desc:"send spans of calls to an OTLP collector"`
	Protocol     string  `env:"TRACING_EXPORTER_PROTOCOL" envDefault:"http" desc:"how spans are sent: http or grpc"`
	ServiceName  string  `env:"TRACING_SERVICE_NAME" envDefault:"RateLimit" desc:"service.name of the spans"`
	Namespace    string  `env:"TRACING_SERVICE_NAMESPACE" desc:"service.namespace of the spans"`
	InstanceID   string  `env:"TRACING_SERVICE_INSTANCE_ID" desc:"service.instance.id of the spans; default: a random UUID"`
	SamplingRate float64 `env:"TRACING_SAMPLING_RATE" envDefault:"1" desc:"fraction, 0 to 1, of the traces that begin in this service; for a trace that a caller began, the caller decides"`

	Endpoint       string   `env:"OTEL_EXPORTER_OTLP_ENDPOINT" desc:"URL of the collector; default: http://localhost:4318, or port 4317 for grpc"`
	TracesEndpoint string   `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" desc:"URL that spans are sent to, used unchanged; default: OTEL_EXPORTER_OTLP_ENDPOINT, for http with /v1/traces"`
	Headers        string   `env:"OTEL_EXPORTER_OTLP_HEADERS" secret:"true" desc:"headers sent to the collector: name=value,…, percent-encoded"`
	TracesHeaders  string   `env:"OTEL_EXPORTER_OTLP_TRACES_HEADERS" secret:"true" desc:"headers for spans only, instead of OTEL_EXPORTER_OTLP_HEADERS"`
	Propagators    []string `env:"OTEL_PROPAGATORS" desc:"forms of the trace context: tracecontext, baggage, b3, b3multi, jaeger, xray, ottrace or none; default: accept W3C and both B3 forms, pass on W3C"`
}

// Validate returns an error that names the first malformed setting. It checks the standard
// variables only if tracing is on, because they may be set for other programs.
func (c Config) Validate() error {
	switch {
	case c.Protocol != overHTTP && c.Protocol != overGRPC:
		return fmt.Errorf("TRACING_EXPORTER_PROTOCOL: must be http or grpc, not %q", c.Protocol)
	case !(c.SamplingRate >= 0 && c.SamplingRate <= 1):
		return fmt.Errorf("TRACING_SAMPLING_RATE: must be 0 to 1, not %v", c.SamplingRate)
	case !c.Enabled:
		return nil
	}
	if err := validateURL(c.Endpoint); err != nil {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	if err := validateURL(c.TracesEndpoint); err != nil {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: %w", err)
	}
	if _, err := parseHeaders(c.Headers); err != nil {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	if _, err := parseHeaders(c.TracesHeaders); err != nil {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_TRACES_HEADERS: %w", err)
	}
	if len(c.Propagators) == 0 {
		return nil
	}
	if _, err := autoprop.TextMapPropagator(c.Propagators...); err != nil {
		return fmt.Errorf("OTEL_PROPAGATORS: %w", err)
	}
	return nil
}

func validateURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		// not quoted, because it may contain a password
		return errors.New("not a URL (for example http://localhost:4318)")
	}
	return nil
}

// endpointURL returns the URL to which spans are sent (OTLP exporter specification, endpoint URLs).
func (c Config) endpointURL() string {
	if c.TracesEndpoint != "" {
		return c.TracesEndpoint
	}
	base := c.Endpoint
	switch {
	case c.Protocol == overGRPC && base == "":
		return "http://localhost:4317"
	case c.Protocol == overGRPC:
		return base
	case base == "":
		base = "http://localhost:4318"
	}
	return strings.TrimSuffix(base, "/") + "/v1/traces"
}

// exporterHeaders returns the headers of the requests to the collector.
func (c Config) exporterHeaders() map[string]string {
	headers, _ := parseHeaders(cmp.Or(c.TracesHeaders, c.Headers)) // Validate has refused a malformed one
	return headers
}

// parseHeaders parses name=value,name=value with percent-encoded values (OTLP exporter
// specification, headers). Its errors never quote a value.
func parseHeaders(list string) (map[string]string, error) {
	headers := map[string]string{}
	for i, pair := range strings.Split(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !ok || !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("entry %d must have the form name=value", i+1)
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("the value of %s is not percent-encoded text", http.CanonicalHeaderKey(name))
		}
		headers[name] = value
	}
	return headers, nil
}
