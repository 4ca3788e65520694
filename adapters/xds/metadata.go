package xds

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

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
