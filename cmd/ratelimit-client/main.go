// Command ratelimit-client sends one request to a rate limit service and prints the response. It
// exits with 0 if the response is OK, 1 if it is OVER_LIMIT, and 2 on an error. Use it to try out
// rules, not to create load.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	commonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tollgate-dev/tollgate/adapters/otlp"
)

// Exit codes.
const (
	exitOK        = 0
	exitOverLimit = 1
	exitError     = 2
)

// answerTimeout is the maximum time until the response.
const answerTimeout = 10 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	call, err := parseFlags(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK // parseFlags has printed the help
	}
	if err != nil {
		return reportError(errs, err)
	}
	if warning := call.security.ineffectiveFlags(); warning != "" {
		_, _ = fmt.Fprintln(errs, "ratelimit-client: warning:", warning) // the call continues without it
	}
	ctx, end, err := startSpan(ctx, call.spans, errs)
	if err != nil {
		return reportError(errs, err)
	}
	response, err := call.send(ctx)
	end()
	if err != nil {
		return reportError(errs, err)
	}
	if err := printResponse(out, response); err != nil {
		return reportError(errs, err)
	}
	if response.GetOverallCode() == ratelimitpb.RateLimitResponse_OVER_LIMIT {
		return exitOverLimit
	}
	return exitOK
}

func reportError(errs io.Writer, err error) int {
	_, _ = fmt.Fprintln(errs, "ratelimit-client:", err) // there is no other place to report it
	return exitError
}

// call contains the flags of the command line.
type call struct {
	address  string
	security security
	spans    string // protocol for sending spans; empty to send nothing
	request  *ratelimitpb.RateLimitRequest
}

func parseFlags(args []string, errs io.Writer) (call, error) {
	c := call{request: &ratelimitpb.RateLimitRequest{}}
	flags := flag.NewFlagSet("ratelimit-client", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run reports wrong use in one sentence
	flags.Usage = func() {}
	flags.StringVar(&c.address, "dial_string", "localhost:8081", "`address` of the service")
	flags.StringVar(&c.request.Domain, "domain", "", "`domain` of the request")
	flags.Func("descriptors", "one descriptor as `name=value,name=value`; repeat the flag for each descriptor",
		func(s string) error {
			d, err := parseDescriptor(s)
			c.request.Descriptors = append(c.request.Descriptors, d)
			return err
		})
	flags.StringVar(&c.spans, "oltp-protocol", "",
		"send a span of the call with this `protocol`, http or grpc, to the collector at OTEL_EXPORTER_OTLP_ENDPOINT")
	c.security.addFlags(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printHelp(flags, errs)
		return call{}, flag.ErrHelp
	case err != nil:
		return call{}, fmt.Errorf("%w (see -help)", err)
	case flags.NArg() > 0:
		return call{}, fmt.Errorf("unexpected argument %q (see -help)", flags.Arg(0))
	}
	return c, nil
}

func printHelp(flags *flag.FlagSet, out io.Writer) {
	_, _ = fmt.Fprint(out, "Calls a rate limit service to check whether a request is within its limits.\n\n"+
		"Example: ratelimit-client -domain shop -descriptors user=ann,path=/login -descriptors user=ann\n\n"+
		"The exit code is 0 if the response is OK, 1 if it is OVER_LIMIT, and 2 if there is no\n"+
		// there is no other place to report it
		"response or the flags are wrong; one sentence on standard error gives the reason.\n\n")
	flags.SetOutput(out)
	flags.PrintDefaults()
}

func parseDescriptor(s string) (*commonpb.RateLimitDescriptor, error) {
	d := &commonpb.RateLimitDescriptor{}
	for pair := range strings.SplitSeq(s, ",") {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("%q is not of the form name=value", pair)
		}
		d.Entries = append(d.Entries, &commonpb.RateLimitDescriptor_Entry{Key: name, Value: value})
	}
	return d, nil
}

func (c call) send(ctx context.Context) (*ratelimitpb.RateLimitResponse, error) {
	creds, err := c.security.loadCredentials()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(c.address, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, fmt.Errorf("-dial_string: %w", err)
	}
	defer func() { _ = conn.Close() }() // the call is over
	response, err := ratelimitpb.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, c.request)
	if err != nil {
		return nil, c.explainFailure(err)
	}
	return response, nil
}

// explainFailure returns the error of a failed call with the message of the service or of the
// failed connection, without the prefixes of the gRPC library.
func (c call) explainFailure(err error) error {
	failure := status.Convert(err)
	text := strings.Join(strings.Fields(failure.Message()), " ")
	switch failure.Code() {
	case codes.Unavailable:
		return fmt.Errorf("%s does not answer: %s", c.address, connectionError(text))
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s does not answer within %v", c.address, answerTimeout)
	case codes.Canceled:
		return errors.New("interrupted")
	case codes.Unimplemented:
		return fmt.Errorf("%s is not a rate limit service: %s", c.address, text)
	}
	return fmt.Errorf("%s refuses the request: %s (%s)", c.address, text, failure.Code())
}

// connectionError returns the message of the system or of the other side that a connection error of
// the gRPC library contains.
func connectionError(text string) string {
	if _, quoted, found := strings.Cut(text, "desc = "); found {
		if plain, err := strconv.Unquote(quoted); err == nil {
			text = plain
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "transport: "), "Error while dialing: ")
}

// printResponse prints the response as indented proto3 JSON, without the random spaces of the
// protobuf library.
func printResponse(out io.Writer, response *ratelimitpb.RateLimitResponse) error {
	raw, err := protojson.Marshal(response)
	if err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(json.RawMessage(raw))
}

// security contains the TLS flags.
type security struct {
	tls        bool
	caFile     string
	certFile   string
	keyFile    string
	serverName string

	// The flags of the client of the Envoy rate limit service. As there, the others have no effect
	// without peerTLS.
	peerTLS                               bool
	peerCAFile, peerCertFile, peerKeyFile string
}

func (s *security) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&s.tls, "tls", false, "use TLS; implied by the other flags that begin with -tls")
	flags.StringVar(&s.caFile, "tls_cacert", "",
		"`file` of CA certificates that sign the service's certificate; default: those of the system")
	flags.StringVar(&s.certFile, "tls_cert", "", "`file` of the client certificate, for mutual TLS")
	flags.StringVar(&s.keyFile, "tls_key", "", "`file` of the client certificate's key")
	flags.StringVar(&s.serverName, "tls_server_name", "",
		"`name` that the service's certificate must contain; default: the host of -dial_string")
	flags.BoolVar(&s.peerTLS, "grpc-use-tls", false, "use TLS, as the client of the Envoy rate limit service does")
	flags.StringVar(&s.peerCAFile, "grpc-server-ca-file", "",
		"`file` of CA certificates that sign the service's certificate, in addition to those of the system; with -grpc-use-tls")
	flags.StringVar(&s.peerCertFile, "grpc-cert-file", "", "`file` of the client certificate; with -grpc-use-tls")
	flags.StringVar(&s.peerKeyFile, "grpc-key-file", "", "`file` of the client certificate's key; with -grpc-use-tls")
}

// ineffectiveFlags returns a warning if flags have no effect; otherwise it returns an empty text.
func (s *security) ineffectiveFlags() string {
	if !s.peerTLS && (s.peerCAFile != "" || s.peerCertFile != "" || s.peerKeyFile != "") {
		return "-grpc-server-ca-file, -grpc-cert-file and -grpc-key-file have no effect without -grpc-use-tls"
	}
	return ""
}

// loadCredentials returns the transport credentials for the flags.
func (s *security) loadCredentials() (credentials.TransportCredentials, error) {
	if s.peerTLS {
		return s.loadPeerCredentials()
	}
	if !s.tls && s.caFile == "" && s.certFile == "" && s.keyFile == "" && s.serverName == "" {
		return insecure.NewCredentials(), nil
	}
	roots := x509.NewCertPool()
	return s.newCredentials(roots, file{"-tls_cacert", s.caFile}, file{"-tls_cert", s.certFile}, file{
		"-tls_key", s.keyFile,
	})
}

// loadPeerCredentials returns the transport credentials for the flags of the Envoy rate limit
// service's client, whose CA certificates are trusted in addition to those of the system.
func (s *security) loadPeerCredentials() (credentials.TransportCredentials, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	return s.newCredentials(roots, file{"-grpc-server-ca-file", s.peerCAFile},
		file{"-grpc-cert-file", s.peerCertFile}, file{"-grpc-key-file", s.peerKeyFile})
}

// file is the value of a flag for a file; an empty path means that the flag is not set.
type file struct{ flag, path string }

// newCredentials returns credentials with a client certificate. If there is a CA file, they trust
// its certificates and roots; otherwise they trust the certificates of the system.
func (s *security) newCredentials(roots *x509.CertPool, ca, cert, key file) (credentials.TransportCredentials, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.serverName}
	if ca.path != "" {
		content, err := os.ReadFile(ca.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ca.flag, err)
		}
		if c.RootCAs = roots; !roots.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s: the file contains no certificate in PEM form", ca.flag)
		}
	}
	if cert.path != "" || key.path != "" {
		certificate, err := tls.LoadX509KeyPair(cert.path, key.path)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", cert.flag, key.flag, err)
		}
		c.Certificates = []tls.Certificate{certificate}
	}
	return credentials.NewTLS(c), nil
}

// startSpan starts the span of a call and adds its trace to the headers of the call. The protocol
// is http, grpc, or empty for no span; the OTEL_EXPORTER_OTLP_* variables contain the address of
// the collector. The returned function ends the span and sends it.
func startSpan(ctx context.Context, protocol string, errs io.Writer) (context.Context, func(), error) {
	if protocol == "" {
		return ctx, func() {}, nil
	}
	c := otlp.Config{
		Enabled: true, Protocol: protocol, ServiceName: "RateLimitClient", SamplingRate: 1,
		Endpoint:       os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"),
		TracesEndpoint: os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
		Headers:        os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"),
		TracesHeaders:  os.Getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
	}
	if err := c.Validate(); err != nil {
		return nil, nil, fmt.Errorf("-oltp-protocol: %w", err)
	}
	log := logrus.New()
	log.SetOutput(errs)
	tracing, flush, err := otlp.Open(ctx, c, logrus.NewEntry(log))
	if err != nil {
		return nil, nil, fmt.Errorf("-oltp-protocol: %w", err)
	}
	ctx, span := tracing.Tracer.Start(ctx, "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		trace.WithSpanKind(trace.SpanKindClient))
	headers := propagation.MapCarrier{}
	tracing.Propagator.Inject(ctx, headers)
	for name, value := range headers {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	return ctx, func() { span.End(); flush() }, nil
}
