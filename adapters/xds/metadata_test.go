package xds

import (
	"strings"
	"testing"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// withMetadata returns a configuration with one rule, whose descriptor has metadata in field 8.
func withMetadata(t *testing.T, metadata proto.Message) *configpb.RateLimitConfig {
	t.Helper()
	encoded, err := proto.Marshal(metadata)
	if err != nil {
		t.Fatal(err)
	}
	d := &configpb.RateLimitDescriptor{Key: "user", RateLimit: &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_MINUTE, RequestsPerUnit: 10}}
	d.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, metadataField, protowire.BytesType), encoded))
	return &configpb.RateLimitConfig{Name: "r", Domain: "shop", Descriptors: []*configpb.RateLimitDescriptor{d}}
}

func newStruct(t *testing.T, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAlgorithmFromMetadata reads the algorithm from the metadata of a descriptor, in both forms that it
// may have. Other metadata does not change a limit, and is no unknown field, unless it is in our namespace.
func TestAlgorithmFromMetadata(t *testing.T) {
	bucket := map[string]any{"algorithm": "token_bucket", "burst": 20}
	plain := ratelimit.Limit{RequestsPerUnit: 10, Unit: ratelimit.Minute}
	want := ratelimit.Limit{RequestsPerUnit: 10, Unit: ratelimit.Minute, Algorithm: ratelimit.TokenBucket, Burst: 20}
	for name, c := range map[string]struct {
		metadata proto.Message
		limit    ratelimit.Limit
		fault    string
		lease    ratelimit.LeaseMode
		unknown  bool
	}{
		"a lease":             {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"lease": "auto"}}), limit: plain, lease: ratelimit.LeaseAuto},
		"no lease":            {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"lease": "off"}}), limit: plain, lease: ratelimit.LeaseOff},
		"unknown lease":       {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"lease": "on"}}), fault: `lease "on" is not one of auto, off`},
		"lease of a type":     {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"lease": true}}), fault: "lease in the metadata dev.tollgate must be a string"},
		"a struct":            {metadata: newStruct(t, map[string]any{"dev.tollgate": bucket, "team": "x"}), limit: want},
		"by namespace":        {metadata: &corepb.Metadata{FilterMetadata: map[string]*structpb.Struct{"dev.tollgate": newStruct(t, bucket)}}, limit: want},
		"other metadata":      {metadata: newStruct(t, bucket), limit: plain},
		"none of it":          {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"x": 1}}), limit: plain, unknown: true},
		"unknown algorithm":   {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"algorithm": "leaky"}}), fault: `algorithm "leaky" is not one of`},
		"algorithm of a type": {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"algorithm": 7}}), fault: "algorithm in the metadata dev.tollgate must be a string"},
		"burst of a type":     {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"burst": "7"}}), fault: "burst in the metadata dev.tollgate must be a whole number"},
		"burst of a fraction": {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"burst": 1.5}}), fault: "burst in the metadata dev.tollgate must be a whole number"},
		"negative burst":      {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"burst": -1}}), fault: "burst in the metadata dev.tollgate must be a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			sources, d := decodeResources(t, withMetadata(t, c.metadata))
			set, err := ruleset.Compile(sources, ruleset.Options{})
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) || !strings.Contains(err.Error(), "descriptors[0]") {
					t.Errorf("the fault is %v, want %q", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			rule := set.Match("shop", []ratelimit.Entry{{Key: "user", Value: "x"}})
			if rule.Lease != c.lease {
				t.Errorf("lease is %q, want %q", rule.Lease, c.lease)
			}
			if got := rule.Limit; got != c.limit || (len(d.unknown) != 0) != c.unknown {
				t.Errorf("the limit is %+v, want %+v; unknown fields at %v", got, c.limit, d.unknown)
			}
		})
	}
}

// FuzzMetadata: no bytes in the field make the decoder panic.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte{0x42, 0x02, 0x0a, 0x00})
	f.Add([]byte{0x42, 0xff, 0xff})
	f.Add([]byte{0x43, 0x44, 0x10, 0x01})
	f.Fuzz(func(t *testing.T, unknown []byte) {
		d := &configpb.RateLimitDescriptor{Key: "k", RateLimit: &configpb.RateLimitPolicy{Unlimited: true}}
		d.ProtoReflect().SetUnknown(unknown)
		metadata, _ := splitUnknown(d)
		(&decoder{source: &ruleset.Source{}}).addAlgorithm(&ruleset.Limit{}, metadata, ruleset.Position{})
	})
}
