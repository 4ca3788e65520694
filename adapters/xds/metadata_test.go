package xds

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

// withMetadata returns a configuration with one rule, whose descriptor has any message as its
// metadata, as a management server sends it.
func withMetadata(t *testing.T, metadata proto.Message) *configpb.RateLimitConfig {
	t.Helper()
	encoded, err := proto.Marshal(metadata)
	must.Succeed(t, err)
	d := &configpb.RateLimitDescriptor{
		Key: "user", RateLimit: &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_MINUTE, RequestsPerUnit: 10},
	}
	must.Succeed(t, (proto.UnmarshalOptions{Merge: true}).Unmarshal(metadataField(encoded), d))
	return &configpb.RateLimitConfig{Name: "r", Domain: "shop", Descriptors: []*configpb.RateLimitDescriptor{d}}
}

// metadataField returns the metadata of a descriptor as it is encoded.
func metadataField(content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 8, protowire.BytesType), content)
}

func newStruct(t *testing.T, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	must.Succeed(t, err)
	return s
}

// TestAlgorithmFromMetadata reads the algorithm from the metadata of a descriptor, in both forms
// that it may have. Other metadata does not change a limit, and is no unknown field, unless it is
// in our namespace.
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
		"a lease": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"lease": "auto"}}), limit: plain,
			lease: ratelimit.LeaseAuto,
		},
		"no lease": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"lease": "off"}}), limit: plain,
			lease: ratelimit.LeaseOff,
		},
		"unknown lease": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"lease": "on"}}),
			fault:    `lease "on" is not one of auto, off`,
		},
		"lease of a type": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"lease": true}}),
			fault:    "lease in the metadata dev.tollgate must be a string",
		},
		"a struct": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": bucket, "team": "x"}), limit: want,
		},
		"by namespace": {
			metadata: &corepb.Metadata{
				FilterMetadata: map[string]*structpb.Struct{"dev.tollgate": newStruct(t, bucket)},
			}, limit: want,
		},
		"other metadata": {metadata: newStruct(t, bucket), limit: plain},
		"no object": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": "x"}),
			fault:    "the metadata dev.tollgate must be an object",
		},
		"null": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": nil}),
			fault:    "the metadata dev.tollgate must be an object",
		},
		"an empty object": {metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{}}), limit: plain},
		"none of it": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"x": 1}}), limit: plain, unknown: true,
		},
		"unknown algorithm": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"algorithm": "leaky"}}),
			fault:    `algorithm "leaky" is not one of`,
		},
		"algorithm of a type": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"algorithm": 7}}),
			fault:    "algorithm in the metadata dev.tollgate must be a string",
		},
		"burst of a type": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"burst": "7"}}),
			fault:    "burst in the metadata dev.tollgate must be a whole number",
		},
		"burst of a fraction": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"burst": 1.5}}),
			fault:    "burst in the metadata dev.tollgate must be a whole number",
		},
		"negative burst": {
			metadata: newStruct(t, map[string]any{"dev.tollgate": map[string]any{"burst": -1}}),
			fault:    "burst in the metadata dev.tollgate must be a whole number",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sources, d := decodeResources(t, withMetadata(t, c.metadata))
			set, err := ruleset.Compile(sources, ruleset.Options{})
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) ||
					!strings.Contains(err.Error(), "descriptors[0]") {
					t.Errorf("the fault is %v, want %q", err, c.fault)
				}
				return
			}
			must.Succeed(t, err)
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

// TestMetadataIsBounded requires a fault for metadata that answers cannot return.
func TestMetadataIsBounded(t *testing.T) {
	deep := map[string]any{}
	for range maxDepth {
		deep = map[string]any{"a": deep}
	}
	for name, c := range map[string]struct {
		metadata map[string]any
		values   int // that other descriptors had before
		fault    string
	}{
		"nested too deep": {metadata: deep, fault: "metadata must not be nested deeper than 64 levels"},
		"too many values": {
			metadata: map[string]any{"a": 1, "b": 2}, values: maxValues, fault: "more than 1000000 values",
		},
		"not a number": {
			metadata: map[string]any{"a": []any{math.NaN()}}, fault: "a number in metadata must be finite",
		},
		"infinite": {metadata: map[string]any{"a": math.Inf(1)}, fault: "a number in metadata must be finite"},
	} {
		t.Run(name, func(t *testing.T) {
			d := decoder{source: &ruleset.Source{}, values: c.values}
			d.decodeMetadata(newStruct(t, c.metadata), ruleset.Position{File: "r"})
			if f := d.source.Faults; len(f) != 1 || !strings.Contains(f[0].String(), c.fault) {
				t.Errorf("the faults are %v, want %q", f, c.fault)
			}
		})
	}
}

// FuzzMetadata: no bytes in the field make the decoder panic, and what it accepts can be returned.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte{0x0a, 0x00})
	f.Add([]byte{0xff, 0xff})
	f.Add([]byte("\x0a\x12\x0a\x0cdev.tollgate\x12\x02\x0a\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		var from configpb.RateLimitDescriptor
		if proto.Unmarshal(metadataField(content), &from) != nil {
			return
		}
		d := decoder{source: &ruleset.Source{}}
		decoded := d.decodeDescriptor(&from, ruleset.Position{}, 1)
		if _, err := json.Marshal(decoded.Metadata); err != nil && len(d.source.Faults) == 0 {
			t.Error(err)
		}
	})
}
