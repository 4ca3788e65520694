package ratelimitapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	commonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

// withForm returns a configuration with headers in a form.
func withForm(form string) ratelimitapi.Config {
	c := newConfig()
	c.Headers.Enabled, c.Headers.Form = true, form
	return c
}

// headerRule is a rule of the domain h for a key.
func headerRule(key, value string, l *ruleset.Limit) ruleset.Descriptor {
	return ruleset.Descriptor{Key: newText(key), Value: newText(value), Limit: l}
}

// headerRules are rules of each kind, in the domain h.
func headerRules() []ruleset.Source {
	named, shadowed, bucket, replacing := perMinute(100), perMinute(3), perMinute(60), perMinute(5)
	on := true
	named.Name, shadowed.Shadow, replacing.Replaces = `say "ä"\`, &on, []ruleset.Text{newText(`say "ä"\`)}
	bucket.Algorithm, bucket.Burst = &ruleset.Text{Value: "token_bucket"}, &ruleset.Requests{Count: 10}
	deep := headerRule("outer", "x*", nil)
	deep.Descriptors = []ruleset.Descriptor{
		headerRule("inner", "", &ruleset.Limit{
			Unit: &ruleset.Text{Value: "year"}, Requests: &ruleset.Requests{Count: 7},
		}),
	}
	return []ruleset.Source{{Domain: newText("h"), Descriptors: []ruleset.Descriptor{
		headerRule("named", "", named), headerRule("shadowed", "", shadowed), headerRule("bucket", "", bucket),
		headerRule("replacing", "", replacing), headerRule("free", "", &ruleset.Limit{Unlimited: true}), deep,
	}}}
}

// askForHeaders sends a request over both transports and returns the headers of the second answer,
// which must be the same as in its body and over gRPC, but for the hits.
func askForHeaders(
	t *testing.T, b *fixture, r *ratelimitpb.RateLimitRequest,
) (overGRPC map[string]string, overHTTP http.Header) {
	t.Helper()
	answer, err := b.newClient(t).ShouldRateLimit(t.Context(), r)
	must.Succeed(t, err)
	overGRPC = map[string]string{}
	for _, h := range answer.GetResponseHeadersToAdd() {
		overGRPC[h.GetKey()] = h.GetValue()
	}
	sent, err := protojson.Marshal(r)
	must.Succeed(t, err)
	overHTTP, body := b.postJSON(t, string(sent), http.StatusOK)
	var inBody ratelimitpb.RateLimitResponse
	if err := protojson.Unmarshal([]byte(body), &inBody); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, h := range inBody.GetResponseHeadersToAdd() {
		if overHTTP.Get(h.GetKey()) != h.GetValue() {
			t.Errorf("%s is %q in the body and %q as a header", h.GetKey(), h.GetValue(), overHTTP.Get(h.GetKey()))
		}
	}
	if len(inBody.GetResponseHeadersToAdd()) != len(overGRPC) {
		t.Errorf("%v over HTTP, %v over gRPC", inBody.GetResponseHeadersToAdd(), overGRPC)
	}
	return overGRPC, overHTTP
}

// TestDraftHeaders: the headers of the draft have a member for every limit that was counted.
func TestDraftHeaders(t *testing.T) {
	override := newHeaderRequest("named=secret,nested=other")
	override.Descriptors[0].Limit = &commonpb.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: 8, Unit: typepb.RateLimitUnit_MONTH,
	}
	for name, test := range map[string]struct {
		request                    *ratelimitpb.RateLimitRequest
		policy, limit, limitOfNext string
	}{
		"a name": {
			newHeaderRequest("named=a"), `"say \"?\"\\";q=100;w=60`, `"say \"?\"\\";r=99;t=50`,
			`"say \"?\"\\";r=98;t=50`,
		},
		"a path": {
			newHeaderRequest("outer=xy,inner=z"), `"outer=x*,inner";q=7;w=31536000`, `"outer=x*,inner";r=6;t=2944010`,
			`"outer=x*,inner";r=5;t=2944010`,
		},
		"a bucket": {newHeaderRequest("bucket=a"), `"bucket";q=60;w=60`, `"bucket";r=9;t=1`, `"bucket";r=8;t=2`},
		"an override": {
			override, `"named,nested";q=8;w=2592000`, `"named,nested";r=7;t=352010`, `"named,nested";r=6;t=352010`,
		},
		"those counted": {
			newHeaderRequest("shadowed=a", "free=a", "unknown=a", "bucket=b"), `"bucket";q=60;w=60`, `"bucket";r=9;t=1`,
			`"bucket";r=8;t=2`,
		},
		"a replacing limit": {
			newHeaderRequest("named=b", "replacing=b"), `"replacing";q=5;w=60`, `"replacing";r=4;t=50`,
			`"replacing";r=3;t=50`,
		},
		"one rule twice": {
			newHeaderRequest("bucket=c", "bucket=d", "replacing=d"),
			`"bucket";q=60;w=60, "bucket";q=60;w=60, "replacing";q=5;w=60`,
			`"bucket";r=9;t=1, "bucket";r=9;t=1, "replacing";r=4;t=50`,
			`"bucket";r=8;t=2, "bucket";r=8;t=2, "replacing";r=3;t=50`,
		},
		"none": {newHeaderRequest("shadowed=b", "free=b", "unknown=b"), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := openFixture(t, withForm("draft"), nil)
			must.Succeed(t, b.rules.Apply(headerRules()))
			grpc, http := askForHeaders(t, b, test.request)
			if grpc["RateLimit-Policy"] != test.policy || http.Get("RateLimit-Policy") != test.policy {
				t.Errorf("policies %q and %q, want %q", grpc["RateLimit-Policy"],
					http.Get("RateLimit-Policy"), test.policy)
			}
			if grpc["RateLimit"] != test.limit || http.Get("RateLimit") != test.limitOfNext {
				t.Errorf("limits %q and %q, want %q and %q", grpc["RateLimit"], http.Get("RateLimit"), test.limit,
					test.limitOfNext)
			}
			if http.Get("RateLimit-Limit") != "" || len(grpc) > 2 {
				t.Errorf("there are legacy headers: %v, %v", grpc, http)
			}
		})
	}
}

// newHeaderRequest returns a request in the domain h, with a descriptor of each text like
// "a=b,c=d".
func newHeaderRequest(descriptors ...string) *ratelimitpb.RateLimitRequest {
	r := &ratelimitpb.RateLimitRequest{Domain: "h"}
	for _, text := range descriptors {
		var d commonpb.RateLimitDescriptor
		for entry := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(entry, "=")
			d.Entries = append(d.Entries, &commonpb.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		r.Descriptors = append(r.Descriptors, &d)
	}
	return r
}

// TestFormsOfHeaders: the setting chooses which headers there are.
func TestFormsOfHeaders(t *testing.T) {
	for form, want := range map[string][2]bool{
		"": {true, false}, "legacy": {true, false}, "draft": {false, true}, "both": {true, true},
	} {
		b := openFixture(t, withForm(form), nil)
		must.Succeed(t, b.rules.Apply(headerRules()))
		grpc, http := askForHeaders(t, b, newHeaderRequest("named=a"))
		for i, names := range [][]string{
			{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}, {"RateLimit-Policy", "RateLimit"},
		} {
			for _, name := range names {
				if (grpc[name] != "") != want[i] || (http.Get(name) != "") != want[i] {
					t.Errorf("form %q: %s is %q over gRPC and %q over HTTP", form, name, grpc[name], http.Get(name))
				}
			}
		}
	}
	c := withForm("both")
	c.Headers.Enabled = false
	b := openFixture(t, c, nil)
	b.loadRules(t)
	if grpc, http := askForHeaders(t, b, newRequest("k")); len(grpc) > 0 || http.Get("RateLimit") != "" ||
		http.Get("RateLimit-Limit") != "" {
		t.Errorf("headers that are off: %v, %v", grpc, http)
	}
}

// TestDraftHeadersParse: whatever the names and numbers are, the headers are lists that a library
// reads.
func TestDraftHeadersParse(t *testing.T) {
	var decision ratelimit.Decision
	b := openFixture(t, withForm("draft"),
		decide.Func(func(context.Context, *ratelimit.Request) (ratelimit.Decision, error) { return decision, nil }))
	client := b.newClient(t)
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.String().Draw(r, "name")
		status := ratelimit.Status{
			Code:      ratelimit.OK,
			Limit:     ratelimit.Limit{RequestsPerUnit: rapid.Uint32().Draw(r, "limit"), Unit: ratelimit.Year},
			Remaining: rapid.Uint32().Draw(r, "remaining"),
			// The greatest duration of a token bucket is 292 years.
			UntilReset: time.Duration(rapid.Int64Range(1, 9_223_372_036).Draw(r, "reset")) * time.Second,
			Rule:       &ratelimit.Rule{Name: ratelimit.Name(name), Written: []string{name, "x"}},
		}
		decision = ratelimit.Decision{Code: ratelimit.OK, Statuses: []ratelimit.Status{status, status}}
		answer, err := client.ShouldRateLimit(context.Background(), newHeaderRequest("a", "b"))
		must.Succeed(r, err)
		headers := answer.GetResponseHeadersToAdd()
		if len(headers) != 2 {
			r.Fatalf("headers %v", headers)
		}
		wantMembers(r, headers[0].GetValue(), name, map[string]int64{
			"q": int64(status.Limit.RequestsPerUnit), "w": 31_536_000,
		})
		wantMembers(r, headers[1].GetValue(), name, map[string]int64{
			"r": int64(status.Remaining), "t": int64(status.UntilReset / time.Second),
		})
	})
}

// wantMembers checks that a header has two members with the name and parameters.
func wantMembers(t *rapid.T, header, name string, params map[string]int64) {
	list, err := httpsfv.UnmarshalList([]string{header})
	if err != nil || len(list) != 2 {
		t.Fatalf("%s: %v, %v", header, list, err)
	}
	if name == "" {
		name = ",x"
	}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			t.Fatalf("%s: a member is not an item", header)
		}
		got, ok := item.Value.(string)
		if want := []rune(name); !ok || len([]rune(got)) != len(want) ||
			strings.Trim(got, "?") != strings.Trim(onlyPrintable(want), "?") {
			t.Fatalf("%s: the name is %q, want that of %q", header, item.Value, name)
		}
		for key, want := range params {
			if v, _ := item.Params.Get(key); v != want {
				t.Fatalf("%s: %s is %v, want %d", header, key, v, want)
			}
		}
	}
}

// onlyPrintable replaces what is not printable ASCII.
func onlyPrintable(name []rune) string {
	text := make([]byte, len(name))
	for i, r := range name {
		text[i] = '?'
		if r >= 0x20 && r < 0x7f {
			text[i] = byte(r)
		}
	}
	return string(text)
}

func TestHeaderSettings(t *testing.T) {
	for want, change := range map[string]func(*ratelimitapi.HeaderConfig){
		"": func(*ratelimitapi.HeaderConfig) {},
		`LIMIT_RESPONSE_HEADERS: "drafts" is not one of legacy, draft, both`: func(c *ratelimitapi.HeaderConfig) {
			c.Form = "drafts"
		},
		`LIMIT_RESET_HEADER: "a b" is not a valid header name`: func(c *ratelimitapi.HeaderConfig) {
			c.Reset = "a b"
		},
		`LIMIT_LIMIT_HEADER: "ratelimit" is a header of the draft, which LIMIT_RESPONSE_HEADERS=both adds too`: func(c *ratelimitapi.HeaderConfig) {
			c.Limit = "ratelimit"
		},
	} {
		c := withForm("both")
		change(&c.Headers)
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := withForm("draft")
	c.Headers.Limit = "RateLimit"
	if err := c.Validate(); err != nil {
		t.Errorf("a name that is not used: %v", err)
	}
}
