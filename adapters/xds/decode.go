package xds

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Limits of one set. They prevent that a short message grows without bound.
const (
	maxDepth       = 64
	maxDescriptors = 1_000_000
)

// decoder converts the resources of one response to sources. Errors in the form of a resource
// become faults of its source.
type decoder struct {
	source      *ruleset.Source // of the resource that is being decoded
	descriptors int
	values      int      // of metadata
	unknown     []string // places with fields unknown to this version
}

// decodeSet returns a source for each resource, ordered by name. The order matters where domains
// are merged, and servers may send the resources in any order.
func (d *decoder) decodeSet(resources []*anypb.Any) []ruleset.Source {
	list := make([]ruleset.Source, len(resources))
	for i, r := range resources {
		d.source = &list[i]
		d.decodeResource(r, "resource "+strconv.Itoa(i+1))
	}
	slices.SortStableFunc(list, func(a, b ruleset.Source) int { return cmp.Compare(a.At.File, b.At.File) })
	return list
}

// decodeResource decodes a resource into the current source.
func (d *decoder) decodeResource(r *anypb.Any, name string) {
	d.source.At.File = name
	var config configpb.RateLimitConfig
	if err := r.UnmarshalTo(&config); err != nil {
		d.source.Unread = true
		d.addFault(d.source.At, "cannot be decoded: "+err.Error())
		return
	}
	if config.GetName() != "" {
		d.source.At.File = config.GetName()
	}
	d.noteUnknownFields(&config, d.source.At)
	d.source.Domain = ruleset.Text{Value: config.GetDomain(), At: d.source.At}
	d.source.Descriptors = d.decodeDescriptors(config.GetDescriptors(), d.source.At.File+": ", 1)
}

func (d *decoder) addFault(at ruleset.Position, rule string) {
	d.source.Faults = append(d.source.Faults, ruleset.Fault{At: at, Rule: rule})
}

// noteUnknownFields notes the place of a message that has fields unknown to this version.
func (d *decoder) noteUnknownFields(m proto.Message, at ruleset.Position) {
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		d.unknown = append(d.unknown, at.File)
	}
}

// decodeDescriptors decodes the descriptors of one level. above is the prefix of their places, for
// example "shop: descriptors[2].".
func (d *decoder) decodeDescriptors(
	list []*configpb.RateLimitDescriptor, above string, depth int,
) []ruleset.Descriptor {
	if len(list) == 0 {
		return nil
	}
	if depth > maxDepth {
		d.addFault(d.source.At, fmt.Sprintf("descriptors must not be nested deeper than %d levels", maxDepth))
		return nil
	}
	if d.descriptors += len(list); d.descriptors > maxDescriptors {
		d.addTooManyDescriptors(d.descriptors - len(list))
		return nil
	}
	decoded := make([]ruleset.Descriptor, len(list))
	for i, one := range list {
		place := above + "descriptors[" + strconv.Itoa(i) + "]"
		decoded[i] = d.decodeDescriptor(one, ruleset.Position{File: place}, depth)
	}
	return decoded
}

// addTooManyDescriptors adds a fault for the first list that exceeds the limit only.
func (d *decoder) addTooManyDescriptors(before int) {
	if before <= maxDescriptors {
		d.addFault(d.source.At, fmt.Sprintf("a configuration must not have more than %d descriptors", maxDescriptors))
	}
}

func (d *decoder) decodeDescriptor(
	from *configpb.RateLimitDescriptor, at ruleset.Position, depth int,
) ruleset.Descriptor {
	d.noteUnknownFields(from, at)
	decoded := ruleset.Descriptor{
		At:             at,
		Key:            ruleset.Text{Value: from.GetKey(), At: at},
		Value:          ruleset.Text{Value: from.GetValue(), At: at},
		Limit:          d.decodeLimit(from.GetRateLimit(), at),
		DetailedMetric: from.GetDetailedMetric(),
		QuotaMode:      from.GetQuotaMode(),
		Metadata:       d.decodeMetadata(from.GetMetadata(), at),
		Descriptors:    d.decodeDescriptors(from.GetDescriptors(), at.File+".", depth+1),
	}
	if shadow := from.GetShadowMode(); shadow {
		decoded.Shadow = &shadow
	}
	d.addOwnMetadata(decoded.Limit, from.GetMetadata(), at)
	return decoded
}

// decodeLimit decodes a policy. Protocol buffers do not distinguish zero from absent. A zero count
// next to unlimited is therefore ignored; otherwise it is the count zero, which blocks every
// request (contract L-38).
func (d *decoder) decodeLimit(from *configpb.RateLimitPolicy, at ruleset.Position) *ruleset.Limit {
	if from == nil {
		return nil
	}
	d.noteUnknownFields(from, at)
	decoded := &ruleset.Limit{At: at, Unlimited: from.GetUnlimited(), Name: ratelimit.Name(from.GetName())}
	if unit := from.GetUnit(); unit != configpb.RateLimitUnit_UNKNOWN {
		decoded.Unit = &ruleset.Text{Value: unit.String(), At: at}
	}
	if count := from.GetRequestsPerUnit(); count > 0 || !decoded.Unlimited {
		decoded.Requests = &ruleset.Requests{Count: count, At: at}
	}
	for _, replaced := range from.GetReplaces() {
		decoded.Replaces = append(decoded.Replaces, ruleset.Text{Value: replaced.GetName(), At: at})
	}
	return decoded
}

// metadataNamespace is the name in the metadata of a descriptor that has our own words.
const metadataNamespace = "dev.tollgate"

// maxValues is the maximum number of metadata values in a set.
const maxValues = 1_000_000

// decodeMetadata returns the metadata of a descriptor, which answers return as dynamic metadata
// (contract L-18).
func (d *decoder) decodeMetadata(from *structpb.Struct, at ruleset.Position) ratelimit.Metadata {
	if from == nil {
		return nil
	}
	return d.decodeObject(from, at, 1)
}

func (d *decoder) decodeObject(from *structpb.Struct, at ruleset.Position, depth int) jsonvalue.Object {
	m := make(jsonvalue.Object, len(from.GetFields()))
	for name, value := range from.GetFields() {
		m[name] = d.decodeValue(value, at, depth+1)
	}
	return m
}

// decodeValue returns a value in the types of JSON, or adds a fault if JSON cannot represent it.
func (d *decoder) decodeValue(from *structpb.Value, at ruleset.Position, depth int) jsonvalue.Value {
	if d.values++; d.values > maxValues || depth > maxDepth {
		if d.values <= maxValues+1 {
			d.addFault(at,
				fmt.Sprintf(
					"metadata must not be nested deeper than %d levels, nor have more than %d values in a configuration", maxDepth, maxValues))
		}
		d.values = maxValues + 1 // report it once
		return nil
	}
	switch v := from.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return jsonvalue.Flag(v.BoolValue)
	case *structpb.Value_StringValue:
		return jsonvalue.Text(v.StringValue)
	case *structpb.Value_NumberValue:
		if math.IsNaN(v.NumberValue) || math.IsInf(v.NumberValue, 0) {
			d.addFault(at, "a number in metadata must be finite")
			return nil
		}
		return jsonvalue.Number(v.NumberValue)
	case *structpb.Value_ListValue:
		list := make(jsonvalue.List, 0, len(v.ListValue.GetValues()))
		for _, item := range v.ListValue.GetValues() {
			list = append(list, d.decodeValue(item, at, depth+1))
		}
		return list
	default:
		if object := objectOf(from); object != nil {
			return d.decodeObject(object, at, depth)
		}
		return nil
	}
}

// objectOf returns the value as an object, or nil if it is of another kind. A management server may
// also send the metadata of Envoy, which has a struct in place of each value on the first level:
// its fields are unknown ones of the value.
func objectOf(v *structpb.Value) *structpb.Struct {
	if v.GetKind() != nil {
		return v.GetStructValue()
	}
	var object structpb.Struct
	if err := proto.Unmarshal(v.ProtoReflect().GetUnknown(), &object); err != nil {
		return nil
	}
	return &object
}

// addOwnMetadata reads the algorithm, the burst and the lease of a limit from the metadata of its
// descriptor (contract L-53, L-70). Other names, and a descriptor without a limit, are noted like
// unknown fields.
func (d *decoder) addOwnMetadata(l *ruleset.Limit, metadata *structpb.Struct, at ruleset.Position) {
	value, given := metadata.GetFields()[metadataNamespace]
	if !given {
		return
	}
	object := objectOf(value)
	if object == nil {
		d.addFault(at, "the metadata "+metadataNamespace+" must be an object")
		return
	}
	own := object.GetFields()
	for name := range own {
		if l == nil || name != "algorithm" && name != "burst" && name != "lease" {
			d.unknown = append(d.unknown, at.File)
			break
		}
	}
	if l == nil {
		return
	}
	l.Algorithm, l.Lease = d.ownText(own, "algorithm", at), d.ownText(own, "lease", at)
	if v := own["burst"]; v != nil {
		burst, ok := v.GetKind().(*structpb.Value_NumberValue)
		if !ok || burst.NumberValue < 0 || burst.NumberValue > math.MaxUint32 ||
			burst.NumberValue != math.Trunc(burst.NumberValue) {
			d.addFault(at, "burst in the metadata "+metadataNamespace+" must be a whole number from 0 to 4294967295")
			return
		}
		l.Burst = &ruleset.Requests{Count: uint32(burst.NumberValue), At: at}
	}
}

// ownText returns a text of our namespace, or nil if it is not there or not a string.
func (d *decoder) ownText(own map[string]*structpb.Value, name string, at ruleset.Position) *ruleset.Text {
	v := own[name]
	if v == nil {
		return nil
	}
	text, ok := v.GetKind().(*structpb.Value_StringValue)
	if !ok {
		d.addFault(at, name+" in the metadata "+metadataNamespace+" must be a string")
		return nil
	}
	return &ruleset.Text{Value: text.StringValue, At: at}
}
