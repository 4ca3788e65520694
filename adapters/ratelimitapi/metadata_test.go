package ratelimitapi_test

import (
	"strings"
	"testing"

	commonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

// loadMetadataRules loads rules with and without metadata.
func (b *fixture) loadMetadataRules(t *testing.T) {
	t.Helper()
	quota := func(key string, limit uint32, m ratelimit.Metadata) ruleset.Descriptor {
		return ruleset.Descriptor{Key: newText(key), Limit: perMinute(limit), QuotaMode: true, Metadata: m}
	}
	err := b.rules.Apply([]ruleset.Source{{Domain: newText("d"), Descriptors: []ruleset.Descriptor{
		{Key: newText("plain"), Limit: perMinute(100)},
		{Key: newText("zero"), Limit: perMinute(0), Metadata: ratelimit.Metadata{"hidden": jsonvalue.Flag(true)}},
		{
			Key: newText("free"), Limit: &ruleset.Limit{Unlimited: true},
			Metadata: ratelimit.Metadata{"hidden": jsonvalue.Flag(true)},
		},
		{
			Key: newText("named"), Limit: perMinute(100), Metadata: ratelimit.Metadata{
				"name": jsonvalue.Text("first"), "at": jsonvalue.Object{"a": jsonvalue.Text("<1>")},
				"list": jsonvalue.List{nil, jsonvalue.Flag(true)},
			},
		},
		quota("one", 0, ratelimit.Metadata{"hidden": jsonvalue.Flag(true)}),
		quota("two", 100, ratelimit.Metadata{
			"name": jsonvalue.Text("second"), "at": jsonvalue.Object{"a": jsonvalue.Number(2), "b": jsonvalue.Number(2)},
			"list": jsonvalue.Text("other"),
		}),
	}}})
	must.Succeed(t, err)
}

func TestDynamicMetadata(t *testing.T) {
	c := newConfig()
	c.DynamicMetadata = true
	b := openFixture(t, c, nil)
	b.loadMetadataRules(t)
	withHits := newRequest("plain")
	withHits.HitsAddend = 5
	withHits.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
	withHits.Descriptors[0].Entries = append(withHits.Descriptors[0].Entries, &commonpb.RateLimitDescriptor_Entry{
		Key: "w",
	})
	override := newRequest("plain", "plain")
	override.Descriptors[0].Limit = &commonpb.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: 7, Unit: typepb.RateLimitUnit_HOUR,
	}
	override.Descriptors[1].Limit = &commonpb.RateLimitDescriptor_RateLimitOverride{Unit: typepb.RateLimitUnit_DAY}
	unknown := newRequest("plain")
	unknown.Domain = "unknown"
	tests := map[string]struct {
		request *ratelimitpb.RateLimitRequest
		want    string
	}{
		"the response contains the request": {
			newRequest("plain"), `{"domain": "d", "descriptors": [{"entries": ["plain=v"]}]}`,
		},
		"hits of the request and of a descriptor": {
			withHits,
			`{"domain": "d", "descriptors": [{"entries": ["plain=v", "w="], "hitsAddend": 0}], "hitsAddend": 5}`,
		},
		"limits of the request": {override,
			`{"domain": "d", "descriptors": [{"entries": ["plain=v"], "limit": "requests_per_unit:7 unit:HOUR"},
			{"entries": ["plain=v"], "limit": "unit:DAY"}]}`},
		"a domain without rules": {
			unknown, `{"domain": "unknown", "descriptors": [{"entries": ["plain=v"]}]}`,
		},
		"rules without quota mode": {
			newRequest("zero", "free", "none"),
			`{"domain": "d", "descriptors": [{"entries": ["zero=v"]}, {"entries": ["free=v"]}, {"entries": ["none=v"]}]}`,
		},
		"quota mode within the limit": {
			newRequest("two"),
			`{"domain": "d", "descriptors": [{"entries": ["two=v"]}], "metadata": {"name": "second", "at": {"a": 2, "b": 2}, "list": "other"}, "quotaModeEnabled": true}`,
		},
		"quota mode over the second limit": {
			newRequest("two", "one"),
			`{"domain": "d", "descriptors": [{"entries": ["two=v"]}, {"entries": ["one=v"]}], "metadata": {"name": "second", "at": {"a": 2, "b": 2}, "list": "other"}, "quotaModeEnabled": true, "quotaModeViolations": [1]}`,
		},
		"the first value of a key is kept": {newRequest("named", "two"),
			`{"domain": "d", "descriptors": [{"entries": ["named=v"]}, {"entries": ["two=v"]}],
			"metadata": {"name": "first", "at": {"a": "<1>", "b": 2}, "list": [null, true]}, "quotaModeEnabled": true}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := &structpb.Struct{}
			must.Succeed(t, protojson.Unmarshal([]byte(test.want), want))
			for range 2 { // the first response must not change the second
				overGRPC, err := b.newClient(t).ShouldRateLimit(t.Context(), test.request)
				must.Succeed(t, err)
				if got := overGRPC.GetDynamicMetadata(); !proto.Equal(got, want) {
					t.Errorf("gRPC:\ngot  %v\nwant %v", got, want)
				}
			}
			if got := b.overJSON(t, test.request).GetDynamicMetadata(); !proto.Equal(got, want) {
				t.Errorf("/json:\ngot  %v\nwant %v", got, want)
			}
		})
	}
}

// overJSON sends a request to /json and returns the response.
func (b *fixture) overJSON(t *testing.T, r *ratelimitpb.RateLimitRequest) *ratelimitpb.RateLimitResponse {
	t.Helper()
	sent, err := protojson.Marshal(r)
	must.Succeed(t, err)
	status := 200
	overGRPC, err := b.newClient(t).ShouldRateLimit(t.Context(), r)
	must.Succeed(t, err)
	if overGRPC.OverallCode == overCode {
		status = 429
	}
	_, body := b.postJSON(t, string(sent), status)
	answer := &ratelimitpb.RateLimitResponse{}
	if err := protojson.Unmarshal([]byte(body), answer); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return answer
}

func TestDynamicMetadataIsOffByDefault(t *testing.T) {
	b := openFixture(t, newConfig(), nil)
	b.loadMetadataRules(t)
	if _, body := b.postJSON(t, `{"domain":"d","descriptors":[{"entries":[{"key":"two"}]}]}`,
		200); strings.Contains(body, "etadata") {
		t.Error(body)
	}
	r, err := b.newClient(t).ShouldRateLimit(t.Context(), newRequest("two"))
	must.Succeed(t, err)
	if r.DynamicMetadata != nil {
		t.Error(r.DynamicMetadata)
	}
}
