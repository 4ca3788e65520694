package xds

import (
	"math"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// The metadata of a descriptor is its field 8. The released module of its type does not have the field
// yet, so it is among the unknown fields.
const (
	metadataField     = 8
	metadataNamespace = "dev.tollgate"
)

// splitUnknown returns the metadata of a descriptor, nil without any, and whether there are other
// unknown fields.
func splitUnknown(from *configpb.RateLimitDescriptor) (metadata []byte, others bool) {
	for unknown := []byte(from.ProtoReflect().GetUnknown()); len(unknown) > 0; {
		number, kind, size := protowire.ConsumeTag(unknown)
		if size < 0 {
			return metadata, true
		}
		value := protowire.ConsumeFieldValue(number, kind, unknown[size:])
		if value < 0 {
			return metadata, true
		}
		if number == metadataField && kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(unknown[size:])
			metadata = append(metadata, content...) // messages that occur twice are merged
		} else {
			others = true
		}
		unknown = unknown[size+value:]
	}
	return metadata, others
}

// ownMetadata returns what the metadata has in our namespace: it is a struct, or the metadata of Envoy,
// which is a struct for each namespace.
func ownMetadata(encoded []byte) map[string]*structpb.Value {
	var plain structpb.Struct
	if err := proto.Unmarshal(encoded, &plain); err == nil {
		if own := plain.GetFields()[metadataNamespace].GetStructValue(); own != nil {
			return own.GetFields()
		}
	}
	var byNamespace corepb.Metadata
	if err := proto.Unmarshal(encoded, &byNamespace); err != nil {
		return nil
	}
	return byNamespace.GetFilterMetadata()[metadataNamespace].GetFields()
}

// addAlgorithm reads the algorithm, the burst and the lease of a limit from the metadata of its
// descriptor (contract L-53, L-70). Other names, and a descriptor without a limit, are noted like
// unknown fields.
func (d *decoder) addAlgorithm(l *ruleset.Limit, metadata []byte, at ruleset.Position) {
	own := ownMetadata(metadata)
	for name := range own {
		if l == nil || name != "algorithm" && name != "burst" && name != "lease" {
			d.unknown = append(d.unknown, at.File)
			break
		}
	}
	if l == nil {
		return
	}
	if v := own["algorithm"]; v != nil {
		name, ok := v.GetKind().(*structpb.Value_StringValue)
		if !ok {
			d.addFault(at, "algorithm in the metadata "+metadataNamespace+" must be a string")
			return
		}
		l.Algorithm = &ruleset.Text{Value: name.StringValue, At: at}
	}
	if v := own["lease"]; v != nil {
		mode, ok := v.GetKind().(*structpb.Value_StringValue)
		if !ok {
			d.addFault(at, "lease in the metadata "+metadataNamespace+" must be a string")
			return
		}
		l.Lease = &ruleset.Text{Value: mode.StringValue, At: at}
	}
	if v := own["burst"]; v != nil {
		burst, ok := v.GetKind().(*structpb.Value_NumberValue)
		if !ok || burst.NumberValue < 0 || burst.NumberValue > math.MaxUint32 || burst.NumberValue != math.Trunc(burst.NumberValue) {
			d.addFault(at, "burst in the metadata "+metadataNamespace+" must be a whole number from 0 to 4294967295")
			return
		}
		l.Burst = &ruleset.Requests{Count: uint32(burst.NumberValue), At: at}
	}
}
