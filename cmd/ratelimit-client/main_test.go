package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/test/must"
)

// service responds OVER_LIMIT if the first value is over, and keeps the request.
type service struct {
	ratelimitpb.UnimplementedRateLimitServiceServer
	got *ratelimitpb.RateLimitRequest
}

func (s *service) ShouldRateLimit(
	_ context.Context, r *ratelimitpb.RateLimitRequest,
) (*ratelimitpb.RateLimitResponse, error) {
	s.got = r
	code := ratelimitpb.RateLimitResponse_OK
	switch r.GetDescriptors()[0].GetEntries()[0].GetValue() {
	case "over":
		code = ratelimitpb.RateLimitResponse_OVER_LIMIT
	case "bad":
		return nil, status.Error(codes.InvalidArgument, "unknown domain")
	}
	return &ratelimitpb.RateLimitResponse{OverallCode: code}, nil
}

func startService(t *testing.T) (*service, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	s, server := &service{}, grpc.NewServer()
	ratelimitpb.RegisterRateLimitServiceServer(server, s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func TestRun(t *testing.T) {
	s, address := startService(t)
	tests := map[string]struct {
		args []string
		code int
		out  string
		errs string
	}{
		"a request within its limits exits with 0": {
			[]string{"-domain", "d", "-descriptors", "k=v"}, exitOK, `{"overallCode":"OK"}`, "",
		},
		"a request over its limit exits with 1": {
			[]string{"-descriptors", "k=over"}, exitOverLimit, `{"overallCode":"OVER_LIMIT"}`, "",
		},
		"the message of a refused request is printed": {
			[]string{"-descriptors", "k=bad"}, exitError, "", "refuses the request: unknown domain (InvalidArgument)",
		},
		"a flag needs its value": {[]string{"-descriptors"}, exitError, "", "-descriptors"},
		"the address of a missing service is printed": {
			[]string{"-dial_string", "127.0.0.1:1", "-descriptors", "k=v"}, exitError, "",
			"127.0.0.1:1 does not answer: dial tcp",
		},
		"an entry needs a value":                   {[]string{"-descriptors", "k"}, exitError, "", "name=value"},
		"an entry needs a name":                    {[]string{"-descriptors", "=v"}, exitError, "", "name=value"},
		"an unknown flag is an error":              {[]string{"-x"}, exitError, "", "-x"},
		"an argument is an error":                  {[]string{"x"}, exitError, "", `"x"`},
		"TLS to a service without TLS is an error": {[]string{"-tls", "-descriptors", "k=v"}, exitError, "", "tls"},
		"a missing CA file is an error": {
			[]string{"-tls_cacert", "/missing", "-descriptors", "k=v"}, exitError, "", "-tls_cacert: ",
		},
		"a CA file that is not PEM is an error": {
			[]string{"-tls_cacert", "main.go", "-descriptors", "k=v"}, exitError, "", "PEM",
		},
		"a certificate needs its key": {
			[]string{"-tls_cert", "main.go", "-descriptors", "k=v"}, exitError, "", "-tls_key: ",
		},
		"help exits with 0": {[]string{"-h"}, exitOK, "", "Example: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"-dial_string", address}, test.args...), &out, &errs)
			var compact bytes.Buffer
			if out.Len() > 0 {
				must.Succeed(t, json.Compact(&compact, out.Bytes()))
			}
			if text := errs.String(); code == exitError &&
				(strings.Count(text, "\n") != 1 || strings.Contains(text, "rpc error") ||
					strings.Contains(text, "desc =")) {
				t.Errorf("the error is %q, want one sentence", text)
			}
			if code != test.code || strings.TrimSpace(compact.String()) != test.out ||
				!strings.Contains(errs.String(), test.errs) {
				t.Errorf("exit code %d, output %q and %q", code, out.String(), errs.String())
			}
		})
	}
	run(t.Context(), []string{
		"-dial_string", address, "-domain", "d", "-descriptors", "a=1,b=x=y", "-descriptors", "c=",
	}, &bytes.Buffer{}, &bytes.Buffer{})
	d := s.got.GetDescriptors()
	if s.got.GetDomain() != "d" || len(d) != 2 || len(d[0].GetEntries()) != 2 ||
		d[0].GetEntries()[1].GetKey() != "b" || d[0].GetEntries()[1].GetValue() != "x=y" ||
		d[1].GetEntries()[0].GetValue() != "" {
		t.Errorf("the request was %v", s.got)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, []string{"-descriptors", "k=v"}, &bytes.Buffer{}, &bytes.Buffer{}); code != exitError {
		t.Errorf("exit code %d, want %d", code, exitError)
	}
}
