package xds

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

func decodeResources(t *testing.T, configs ...*configpb.RateLimitConfig) ([]ruleset.Source, *decoder) {
	t.Helper()
	list := make([]*anypb.Any, len(configs))
	for i, c := range configs {
		var err error
		if list[i], err = anypb.New(c); err != nil {
			t.Fatal(err)
		}
	}
	var d decoder
	return d.decodeSet(list), &d
}

// TestEveryFieldIsRead sets every field of the type. It fails if a newer version of the type has
// fields that the decoder does not read.
func TestEveryFieldIsRead(t *testing.T) {
	for message, fields := range map[proto.Message]int{
		&configpb.RateLimitConfig{}: 3, &configpb.RateLimitDescriptor{}: 8, &configpb.RateLimitPolicy{}: 5,
		&configpb.RateLimitReplace{}: 1,
	} {
		if got := message.ProtoReflect().Descriptor().Fields().Len(); got != fields {
			t.Errorf("%T has %d fields; the decoder reads %d", message, got, fields)
		}
	}
	sources, _ := decodeResources(t,
		&configpb.RateLimitConfig{Name: "resource", Domain: "shop", Descriptors: []*configpb.RateLimitDescriptor{{
			Key: "user", Value: "gold", ShadowMode: true, DetailedMetric: true, QuotaMode: true,
			Metadata: newStruct(t, map[string]any{
				"tier": "gold", "parts": []any{1, true, nil, map[string]any{"deep": "x"}},
			}),
			RateLimit: &configpb.RateLimitPolicy{
				Unit: configpb.RateLimitUnit_HOUR, RequestsPerUnit: 7, Name: "own",
				Replaces: []*configpb.RateLimitReplace{{Name: "base"}},
			},
			Descriptors: []*configpb.RateLimitDescriptor{
				{Key: "path", RateLimit: &configpb.RateLimitPolicy{Unlimited: true}},
			},
		}}})
	yes := true
	at := func(place string) ruleset.Position { return ruleset.Position{File: place} }
	top, below := at("resource: descriptors[0]"), at("resource: descriptors[0].descriptors[0]")
	want := []ruleset.Source{{
		At: at("resource"), Domain: ruleset.Text{Value: "shop", At: at("resource")},
		Descriptors: []ruleset.Descriptor{{
			At: top, Key: ruleset.Text{Value: "user", At: top}, Value: ruleset.Text{Value: "gold", At: top},
			Shadow: &yes, DetailedMetric: true, QuotaMode: true,
			Metadata: ratelimit.Metadata{"tier": jsonvalue.Text("gold"), "parts": jsonvalue.List{
				jsonvalue.Number(1), jsonvalue.Flag(true), nil, jsonvalue.Object{"deep": jsonvalue.Text("x")},
			}},
			Limit: &ruleset.Limit{
				At: top, Unit: &ruleset.Text{Value: "HOUR", At: top}, Requests: &ruleset.Requests{Count: 7, At: top},
				Name: ratelimit.Name("own"), Replaces: []ruleset.Text{{Value: "base", At: top}},
			},
			Descriptors: []ruleset.Descriptor{{
				At: below, Key: ruleset.Text{Value: "path", At: below}, Value: ruleset.Text{At: below},
				Limit: &ruleset.Limit{At: below, Unlimited: true},
			}},
		}},
	}}
	if !reflect.DeepEqual(sources, want) {
		t.Errorf("got %+v\nwant %+v", sources, want)
	}
	if _, err := ruleset.Compile(sources, ruleset.Options{}); err != nil {
		t.Error(err)
	}
}

// TestEveryUnitIsKnown requires each unit of the type, and a number that no unit has.
func TestEveryUnitIsKnown(t *testing.T) {
	units := maps.Clone(configpb.RateLimitUnit_name)
	units[8] = "not a unit"
	for unit := range units {
		sources, _ := decodeResources(t,
			&configpb.RateLimitConfig{Name: "r", Domain: "d", Descriptors: []*configpb.RateLimitDescriptor{
				{Key: "k", RateLimit: &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit(unit)}},
			}})
		_, err := ruleset.Compile(sources, ruleset.Options{})
		if unknown := unit == 0 || unit == 8; unknown != (err != nil) {
			t.Errorf("unit %d: %v", unit, err)
		}
	}
}

func TestOrderedByName(t *testing.T) {
	sources, _ := decodeResources(t, domainResource("c"), &configpb.RateLimitConfig{Domain: "nameless"},
		domainResource("a"))
	var names []string
	for _, s := range sources {
		names = append(names, s.At.File)
	}
	if got := strings.Join(names, ","); got != "a,c,resource 2" {
		t.Errorf("the order is %s, want a,c,resource 2", got)
	}
}

func TestUnknownFieldsAreNoted(t *testing.T) {
	c := domainResource("shop")
	c.Descriptors[0].ProtoReflect().SetUnknown([]byte{0x7a, 0x01, 'x'})
	sources, d := decodeResources(t, c)
	if len(d.unknown) != 1 || d.unknown[0] != "shop: descriptors[0]" {
		t.Errorf("the places with unknown fields are %q", d.unknown)
	}
	if _, err := ruleset.Compile(sources, ruleset.Options{}); err != nil {
		t.Error(err)
	}
}

func TestLimitsOfASet(t *testing.T) {
	deep := &configpb.RateLimitDescriptor{Key: "k"}
	for range maxDepth {
		deep = &configpb.RateLimitDescriptor{Key: "k", Descriptors: []*configpb.RateLimitDescriptor{deep}}
	}
	sources, _ := decodeResources(t, &configpb.RateLimitConfig{
		Name: "deep", Domain: "d", Descriptors: []*configpb.RateLimitDescriptor{deep},
	})
	if f := sources[0].Faults; len(f) != 1 ||
		!strings.Contains(f[0].String(), "deep: descriptors must not be nested deeper") {
		t.Errorf("faults %v", f)
	}
	d := decoder{descriptors: maxDescriptors, source: &ruleset.Source{}}
	for range 3 {
		d.decodeDescriptors([]*configpb.RateLimitDescriptor{{Key: "k"}}, "", 1)
	}
	if f := d.source.Faults; len(f) != 1 || !strings.Contains(f[0].String(), "more than 1000000 descriptors") {
		t.Errorf("faults %v", f)
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range []*configpb.RateLimitConfig{domainResource("a"), largeResource(3), {Name: "x"}, pairResource(0)} {
		value, err := proto.Marshal(c)
		must.Succeed(f, err)
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var d decoder
		sources := d.decodeSet([]*anypb.Any{{TypeUrl: typeURL, Value: value}, {TypeUrl: typeURL, Value: value}})
		if len(sources) != 2 {
			t.Fatalf("%d sources", len(sources))
		}
		set, err := ruleset.Compile(sources[:1], ruleset.Options{})
		switch s := sources[0]; {
		case err == nil && len(s.Faults) > 0:
			t.Error("a source with faults is accepted")
		case s.Unread && len(s.Faults) == 0:
			t.Error("a source that cannot be read has no fault")
		case err == nil && !set.HasDomain(ratelimit.Domain(s.Domain.Value)):
			t.Error("the compiled rules do not have the domain of the resource")
		}
	})
}
