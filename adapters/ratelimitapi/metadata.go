package ratelimitapi

import (
	"encoding/json"
	"strconv"

	commonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// newMetadata returns the dynamic metadata of a response in JSON types, like the Envoy rate limit
// service (contract L-18): the request, the metadata of the rules that were not exceeded, and the
// descriptors in quota mode that were exceeded. It returns nil unless RESPONSE_DYNAMIC_METADATA is
// true.
func (s *service) newMetadata(m *ratelimitpb.RateLimitRequest, d *ratelimit.Decision) jsonvalue.Object {
	if !s.dynamicMetadata {
		return nil
	}
	descriptors := make(jsonvalue.List, len(m.GetDescriptors()))
	for i, descriptor := range m.GetDescriptors() {
		descriptors[i] = descriptorFields(descriptor)
	}
	fields := jsonvalue.Object{"domain": jsonvalue.Text(m.GetDomain()), "descriptors": descriptors}
	if hits := m.GetHitsAddend(); hits != 0 {
		fields["hitsAddend"] = jsonvalue.Number(hits)
	}
	if passed := passedMetadata(d); len(passed) > 0 {
		fields["metadata"] = passed
	}
	addQuota(fields, d)
	return fields
}

// descriptorFields returns the metadata of a descriptor of the request.
func descriptorFields(d *commonpb.RateLimitDescriptor) jsonvalue.Object {
	entries := make(jsonvalue.List, len(d.GetEntries()))
	for i, e := range d.GetEntries() {
		entries[i] = jsonvalue.Text(e.GetKey() + "=" + e.GetValue())
	}
	fields := jsonvalue.Object{"entries": entries}
	if limit := d.GetLimit(); limit != nil {
		fields["limit"] = jsonvalue.Text(overrideText(limit))
	}
	if hits := d.GetHitsAddend(); hits != nil {
		fields["hitsAddend"] = jsonvalue.Number(hits.GetValue())
	}
	return fields
}

// overrideText returns an override in protobuf text format. It always has single spaces; the
// library inserts one or two at random.
func overrideText(l *commonpb.RateLimitDescriptor_RateLimitOverride) string {
	unit := "unit:" + l.GetUnit().String()
	if l.GetRequestsPerUnit() == 0 {
		return unit
	}
	return "requests_per_unit:" + strconv.FormatUint(uint64(l.GetRequestsPerUnit()), 10) + " " + unit
}

// passedMetadata merges the metadata of the rules that were not exceeded. Mappings are merged; of
// other values the one of the first descriptor counts.
func passedMetadata(d *ratelimit.Decision) jsonvalue.Object {
	all := jsonvalue.Object{}
	for i := range d.Statuses {
		if s := &d.Statuses[i]; s.Code == ratelimit.OK && s.Rule != nil {
			mergeMetadata(all, s.Rule.Metadata)
		}
	}
	return all
}

// mergeMetadata adds the missing values of more to all. It copies mappings, so that it never
// changes the metadata of a rule.
func mergeMetadata(all, more jsonvalue.Object) {
	for name, value := range more {
		inner, isMap := value.(jsonvalue.Object)
		existing, present := all[name]
		switch {
		case !present && isMap:
			fresh := make(jsonvalue.Object, len(inner))
			mergeMetadata(fresh, inner)
			all[name] = fresh
		case !present:
			all[name] = value
		case isMap:
			if into, ok := existing.(jsonvalue.Object); ok {
				mergeMetadata(into, inner)
			}
		}
	}
}

// addQuota adds the indexes of the descriptors in quota mode that are over their limit.
func addQuota(fields jsonvalue.Object, d *ratelimit.Decision) {
	enabled, violations := false, jsonvalue.List{}
	for i := range d.Statuses {
		s := &d.Statuses[i]
		enabled = enabled || s.Quota
		if s.Quota && s.Code == ratelimit.OverLimit {
			violations = append(violations, jsonvalue.Number(i))
		}
	}
	if enabled {
		fields["quotaModeEnabled"] = jsonvalue.Flag(true)
	}
	if len(violations) > 0 {
		fields["quotaModeViolations"] = violations
	}
}

// newStruct converts metadata for gRPC. It returns nil for nil.
func newStruct(fields jsonvalue.Object) *structpb.Struct {
	if fields == nil {
		return nil
	}
	s := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(fields))}
	for name, value := range fields {
		s.Fields[name] = newValue(value)
	}
	return s
}

func newValue(from jsonvalue.Value) *structpb.Value {
	switch v := from.(type) {
	case jsonvalue.Object:
		return structpb.NewStructValue(newStruct(v))
	case jsonvalue.List:
		list := &structpb.ListValue{Values: make([]*structpb.Value, len(v))}
		for i, item := range v {
			list.Values[i] = newValue(item)
		}
		return structpb.NewListValue(list)
	case jsonvalue.Text:
		return structpb.NewStringValue(string(v))
	case jsonvalue.Number:
		return structpb.NewNumberValue(float64(v))
	case jsonvalue.Flag:
		return structpb.NewBoolValue(bool(v))
	}
	return structpb.NewNullValue()
}

// appendMetadata appends metadata as JSON.
func appendMetadata(dst []byte, fields jsonvalue.Object) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "encode the dynamic metadata", err)
	}
	dst = append(dst, `,"dynamicMetadata":`...)
	return append(dst, text...), nil
}
