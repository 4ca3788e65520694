package ratelimitapi

import (
	"encoding/json"
	"strconv"

	commonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// newMetadata returns the dynamic metadata of a response in JSON types, like the Envoy rate limit
// service (contract L-18): the request, the metadata of the rules that were not exceeded, and the
// descriptors in quota mode that were exceeded. It returns nil unless RESPONSE_DYNAMIC_METADATA is
// true.
func (s *service) newMetadata(m *ratelimitpb.RateLimitRequest, d *ratelimit.Decision) map[string]any {
	if !s.dynamicMetadata {
		return nil
	}
	descriptors := make([]any, len(m.GetDescriptors()))
	for i, descriptor := range m.GetDescriptors() {
		descriptors[i] = descriptorFields(descriptor)
	}
	fields := map[string]any{"domain": m.GetDomain(), "descriptors": descriptors}
	if hits := m.GetHitsAddend(); hits != 0 {
		fields["hitsAddend"] = float64(hits)
	}
	if passed := passedMetadata(d); len(passed) > 0 {
		fields["metadata"] = passed
	}
	addQuota(fields, d)
	return fields
}

// descriptorFields returns the metadata of a descriptor of the request.
func descriptorFields(d *commonpb.RateLimitDescriptor) map[string]any {
	entries := make([]any, len(d.GetEntries()))
	for i, e := range d.GetEntries() {
		entries[i] = e.GetKey() + "=" + e.GetValue()
	}
	fields := map[string]any{"entries": entries}
	if limit := d.GetLimit(); limit != nil {
		fields["limit"] = overrideText(limit)
	}
	if hits := d.GetHitsAddend(); hits != nil {
		fields["hitsAddend"] = float64(hits.GetValue())
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
func passedMetadata(d *ratelimit.Decision) map[string]any {
	all := map[string]any{}
	for i := range d.Statuses {
		if s := &d.Statuses[i]; s.Code == ratelimit.OK && s.Rule != nil {
			mergeMetadata(all, s.Rule.Metadata)
		}
	}
	return all
}

// mergeMetadata adds the missing values of more to all. It copies mappings, so that it never
// changes the metadata of a rule.
func mergeMetadata(all, more map[string]any) {
	for name, value := range more {
		inner, isMap := value.(map[string]any)
		existing, present := all[name]
		switch {
		case !present && isMap:
			fresh := make(map[string]any, len(inner))
			mergeMetadata(fresh, inner)
			all[name] = fresh
		case !present:
			all[name] = value
		case isMap:
			if into, ok := existing.(map[string]any); ok {
				mergeMetadata(into, inner)
			}
		}
	}
}

// addQuota adds the indexes of the descriptors in quota mode that are over their limit.
func addQuota(fields map[string]any, d *ratelimit.Decision) {
	enabled, violations := false, []any{}
	for i := range d.Statuses {
		s := &d.Statuses[i]
		enabled = enabled || s.Quota
		if s.Quota && s.Code == ratelimit.OverLimit {
			violations = append(violations, float64(i))
		}
	}
	if enabled {
		fields["quotaModeEnabled"] = true
	}
	if len(violations) > 0 {
		fields["quotaModeViolations"] = violations
	}
}

// metadataToStruct converts metadata for gRPC. It returns nil for nil.
func metadataToStruct(fields map[string]any) (*structpb.Struct, error) {
	if fields == nil {
		return nil, nil
	}
	s, err := structpb.NewStruct(fields)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "encode the dynamic metadata", err)
	}
	return s, nil
}

// appendMetadata appends metadata as JSON.
func appendMetadata(dst []byte, fields map[string]any) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "encode the dynamic metadata", err)
	}
	dst = append(dst, `,"dynamicMetadata":`...)
	return append(dst, text...), nil
}
