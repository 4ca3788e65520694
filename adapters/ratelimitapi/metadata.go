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

// metadata returns the dynamic metadata of an answer, in types of JSON, as the Envoy service has it
// (contract L-18): what was asked, the metadata of the rules that were not exceeded, and which
// descriptors of quota mode were over. It is nil unless RESPONSE_DYNAMIC_METADATA is true.
func (s *service) newMetadata(m *ratelimitpb.RateLimitRequest, d *ratelimit.Decision) map[string]any {
	if !s.dynamicMetadata {
		return nil
	}
	descriptors := make([]any, len(m.GetDescriptors()))
	for i, asked := range m.GetDescriptors() {
		descriptors[i] = descriptorFields(asked)
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

// asAsked is a descriptor of the request.
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

// overrideText is an override in the text form of its message, but always with one
// space, where the library's own writer puts one or two at random.
func overrideText(l *commonpb.RateLimitDescriptor_RateLimitOverride) string {
	unit := "unit:" + l.GetUnit().String()
	if l.GetRequestsPerUnit() == 0 {
		return unit
	}
	return "requests_per_unit:" + strconv.FormatUint(uint64(l.GetRequestsPerUnit()), 10) + " " + unit
}

// ofPassed puts together the metadata of the rules that were not exceeded. What an
// earlier descriptor says stands; mappings come together.
func passedMetadata(d *ratelimit.Decision) map[string]any {
	all := map[string]any{}
	for i := range d.Statuses {
		if s := &d.Statuses[i]; s.Code == ratelimit.OK && s.Rule != nil {
			mergeMetadata(all, s.Rule.Metadata)
		}
	}
	return all
}

// merge adds what is not there. It shares nothing that it may write to with the
// rule.
func mergeMetadata(all, more map[string]any) {
	for name, value := range more {
		inner, isMap := value.(map[string]any)
		known, there := all[name]
		switch {
		case !there && isMap:
			fresh := make(map[string]any, len(inner))
			mergeMetadata(fresh, inner)
			all[name] = fresh
		case !there:
			all[name] = value
		case isMap:
			if into, ok := known.(map[string]any); ok {
				mergeMetadata(into, inner)
			}
		}
	}
}

// addQuota tells which descriptors of quota mode are over their limit, by their
// places in the request.
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

// toStruct is the form of metadata over gRPC; nil for none.
func metadataToStruct(fields map[string]any) (*structpb.Struct, error) {
	if fields == nil {
		return nil, nil
	}
	s, err := structpb.NewStruct(fields)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "", "dynamic metadata", err)
	}
	return s, nil
}

// appendMetadata is its form over /json.
func appendMetadata(dst []byte, fields map[string]any) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "", "dynamic metadata", err)
	}
	dst = append(dst, `,"dynamicMetadata":`...)
	return append(dst, text...), nil
}
