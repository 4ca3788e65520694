// Command ratelimit-client asks a rate limit service once, prints its answer
// and ends with 0 when it is OK, 1 when it is over limit and 2 on an error. It
// is for trying rules out, not for load.
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

// What the process ends with.
const (
	exitOK        = 0
	exitOverLimit = 1
	exitError     = 2
)

// patience is how long an answer may take.
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
		return exitOK // and help was shown
	}
	if err != nil {
		return reportError(errs, err)
	}
	if unused := call.security.ineffectiveFlags(); unused != "" {
		_, _ = fmt.Fprintln(errs, "ratelimit-client: warning:", unused) // the call goes on without it
	}
	ctx, end, err := startSpan(ctx, call.spans, errs)
	if err != nil {
		return reportError(errs, err)
	}
	answer, err := call.send(ctx)
	end()
	if err != nil {
		return reportError(errs, err)
	}
	if err := printAnswer(out, answer); err != nil {
		return reportError(errs, err)
	}
	if answer.GetOverallCode() == ratelimitpb.RateLimitResponse_OVER_LIMIT {
		return exitOverLimit
	}
	return exitOK
}

func reportError(errs io.Writer, err error) int {
	_, _ = fmt.Fprintln(errs, "ratelimit-client:", err) // there is nobody left to tell
	return exitError
}

// call is what the command line asks for.
type call struct {
	address  string
	security security
	spans    string // the protocol that spans are sent by, empty for none
	request  *ratelimitpb.RateLimitRequest
}

func parseFlags(args []string, errs io.Writer) (call, error) {
	c := call{request: &ratelimitpb.RateLimitRequest{}}
	flags := flag.NewFlagSet("ratelimit-client", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // wrong use is told in one sentence
	flags.Usage = func() {}
	flags.StringVar(&c.address, "dial_string", "localhost:8081", "`address` of the service")
	flags.StringVar(&c.request.Domain, "domain", "", "`domain` of the request")
	flags.Func("descriptors", "one descriptor as `name=value,name=value`; may be given several times", func(s string) error {
		d, err := parseDescriptor(s)
		c.request.Descriptors = append(c.request.Descriptors, d)
		return err
	})
	flags.StringVar(&c.spans, "oltp-protocol", "", "send a span of the call by this `protocol`, http or grpc, to the collector of OTEL_EXPORTER_OTLP_ENDPOINT")
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
		"The exit code is 0 when the answer is OK, 1 when it is OVER_LIMIT, and 2 where there is none\n"+
		"or the use was wrong; one sentence on standard error tells why.\n\n") // there is nobody left to tell
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
	defer func() { _ = conn.Close() }() // the answer is there or not
	answer, err := ratelimitpb.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, c.request)
	if err != nil {
		return nil, c.explainFailure(err)
	}
	return answer, nil
}

// unanswered puts a failed call into words: what the service says of it, or how
// the connection failed, without the library's own.
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

// ofConnection returns what the system or the other side said, of what the
// library says of a connection.
func connectionError(text string) string {
	if _, quoted, found := strings.Cut(text, "desc = "); found {
		if plain, err := strconv.Unquote(quoted); err == nil {
			text = plain
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "transport: "), "Error while dialing: ")
}

// show prints the answer as indented proto3 JSON, without the spaces that the
// library puts in at random.
func printAnswer(out io.Writer, answer *ratelimitpb.RateLimitResponse) error {
	raw, err := protojson.Marshal(answer)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(json.RawMessage(raw))
}
