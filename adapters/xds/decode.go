package xds

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Bounds of one set, so that a short message cannot grow without end.
const (
	maxDepth       = 64
	maxDescriptors = 1_000_000
)

// decoder turns the resources of one response into sources. What is wrong with
// the form of a resource stands in its source's faults.
type decoder struct {
	source      *ruleset.Source // the one at hand
	descriptors int
	unknown     []string // where fields are that this version does not know
}

// decode returns a source for each resource, ordered by name: servers send them
// in any order, and where domains are merged the order counts.
func (d *decoder) decode(resources []*anypb.Any) []ruleset.Source {
	list := make([]ruleset.Source, len(resources))
	for i, r := range resources {
		d.source = &list[i]
		d.resource(r, "resource "+strconv.Itoa(i+1))
	}
	slices.SortStableFunc(list, func(a, b ruleset.Source) int { return cmp.Compare(a.At.File, b.At.File) })
	return list
}

func (d *decoder) resource(r *anypb.Any, name string) {
	d.source.At.File = name
	var config configpb.RateLimitConfig
	if err := r.UnmarshalTo(&config); err != nil {
		d.source.Unread = true
		d.fault(d.source.At, "cannot be decoded: "+err.Error())
		return
	}
	if config.GetName() != "" {
		d.source.At.File = config.GetName()
	}
	d.look(&config, d.source.At)
	d.source.Domain = ruleset.Text{Value: config.GetDomain(), At: d.source.At}
	d.source.Descriptors = d.list(config.GetDescriptors(), d.source.At.File+": ", 1)
}

func (d *decoder) fault(at ruleset.Position, rule string) {
	d.source.Faults = append(d.source.Faults, ruleset.Fault{At: at, Rule: rule})
}

// look notes where a message has fields that this version does not know.
func (d *decoder) look(m proto.Message, at ruleset.Position) {
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		d.unknown = append(d.unknown, at.File)
	}
}

// list decodes the descriptors of one level. above ends with what separates it
// from a descriptor's own place, such as "shop: descriptors[2].".
func (d *decoder) list(list []*configpb.RateLimitDescriptor, above string, depth int) []ruleset.Descriptor {
	if len(list) == 0 {
		return nil
	}
	if depth > maxDepth {
		d.fault(d.source.At, fmt.Sprintf("descriptors must not be nested deeper than %d levels", maxDepth))
		return nil
	}
	if d.descriptors += len(list); d.descriptors > maxDescriptors {
		d.tooMany(d.descriptors - len(list))
		return nil
	}
	decoded := make([]ruleset.Descriptor, len(list))
	for i, one := range list {
		place := above + "descriptors[" + strconv.Itoa(i) + "]"
		decoded[i] = d.descriptor(one, ruleset.Position{File: place}, depth)
	}
	return decoded
}

// tooMany reports the first list that goes over the bound only.
func (d *decoder) tooMany(before int) {
	if before <= maxDescriptors {
		d.fault(d.source.At, fmt.Sprintf("a configuration must not have more than %d descriptors", maxDescriptors))
	}
}

func (d *decoder) descriptor(from *configpb.RateLimitDescriptor, at ruleset.Position, depth int) ruleset.Descriptor {
	d.look(from, at)
	decoded := ruleset.Descriptor{
		At:             at,
		Key:            ruleset.Text{Value: from.GetKey(), At: at},
		Value:          ruleset.Text{Value: from.GetValue(), At: at},
		Limit:          d.limit(from.GetRateLimit(), at),
		DetailedMetric: from.GetDetailedMetric(),
		Descriptors:    d.list(from.GetDescriptors(), at.File+".", depth+1),
	}
	if shadow := from.GetShadowMode(); shadow {
		decoded.Shadow = &shadow
	}
	return decoded
}

// limit decodes a policy. A zero on the wire is the same as nothing: next to unlimited it counts as
// nothing, otherwise as the count zero, which blocks everything (contract L-38).
func (d *decoder) limit(from *configpb.RateLimitPolicy, at ruleset.Position) *ruleset.Limit {
	if from == nil {
		return nil
	}
	d.look(from, at)
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
