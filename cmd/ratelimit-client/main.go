// Command ratelimit-client sends one request to a rate limit service and prints the response. It
// exits with 0 if the response is OK, 1 if it is OVER_LIMIT, and 2 on an error. Use it to try out
// rules, not to create load.
package main

import (
	"context"
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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
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
