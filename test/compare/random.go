package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	domainCount = 40
	maxDepth    = 3
)

// Few keys and values, so that requests match often. No text is the beginning of another one joined
// by "_": the Envoy service cannot tell such rules apart.
var (
	keys   = []string{"k", "l", "m"}
	values = []string{"x", "y", "z", "xz"}
	units  = []string{"day", "week", "month", "year"} // none turns over while the comparison runs
	names  = []string{"a", "b", "c"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// words are the parts of rules that a comparison leaves out.
type words struct {
	sameNames bool // only rules whose statistics have the same names in both services
	noSharing bool // no share_threshold, which xDS does not have
	noQuota   bool // no quota_mode: the response headers of the services describe different descriptors
}

// newDomains returns rules. With sameNames, no rule is unlimited or has share_threshold.
func newDomains(r *rand.Rand, w words) []domain {
	all := make([]domain, domainCount)
	for i := range all {
		all[i] = domain{fmt.Sprintf("d%d", i), newNodes(r, 0, w)}
	}
	return all
}

// newNodes returns the descriptors of one level.
func newNodes(r *rand.Rand, depth int, w words) []*node {
	var list []*node
	taken := map[[2]string]bool{}
	for range 1 + r.IntN(5) {
		n := &node{key: pick(r, keys)}
		if r.IntN(4) > 0 {
			n.value = pick(r, append([]string{"x*", "*"}, values...))
		}
		if taken[[2]string{n.key, n.value}] {
			continue
		}
		taken[[2]string{n.key, n.value}] = true
		if r.IntN(4) > 0 {
			n.addLimit(r, w)
		}
		if depth+1 < maxDepth && r.IntN(2) == 0 {
			n.children = newNodes(r, depth+1, w)
		}
		list = append(list, n)
	}
	return list
}

// addLimit gives a descriptor a limit and the words that go with one.
func (n *node) addLimit(r *rand.Rand, w words) {
	n.limit = &limit{unit: pick(r, units), requests: uint32(r.IntN(4))} //nolint:gosec // less than 4
	if r.IntN(12) == 0 && !w.sameNames {
		n.limit = &limit{unlimited: true}
	}
	name := r.IntN(4 * len(names)) // a quarter have one
	if name < len(names) {
		n.limit.name = names[name]
	}
	if r.IntN(8) == 0 {
		n.limit.replaces = names[(name+1)%len(names)] // not its own name
	}
	n.shadow, n.detailed = r.IntN(10) == 0, r.IntN(10) == 0
	n.quota = r.IntN(4) == 0 && !w.noQuota
	n.share = strings.Contains(n.value, "*") && r.IntN(3) == 0 && !w.sameNames && !w.noSharing
	if r.IntN(4) == 0 {
		n.addMetadata(r)
	}
}

// addMetadata gives a descriptor metadata. Only a value that is no mapping has a name that other
// descriptors have too: the Envoy service changes its rules when it merges two mappings. And it
// forgets the metadata of rules whose statistics it names anew.
func (n *node) addMetadata(r *rand.Rand) {
	if n.detailed || n.share {
		return
	}
	n.metadata = map[string]any{"tier": pick(r, []string{"gold", "silver"})}
	if r.IntN(2) == 0 {
		n.metadata[fmt.Sprint("own", r.Uint32())] = map[string]any{"list": []any{1.5, true, nil, "text"}}
	}
}

// newRequest returns a request of one to three descriptors, which mostly follow rules. With
// distinct, no two of them have the same first key, so that they do not share a counter, nor that
// of a pattern.
func newRequest(r *rand.Rand, domains []domain, distinct bool) *ratelimit.RateLimitRequest {
	d := pick(r, domains)
	request := &ratelimit.RateLimitRequest{Domain: d.name}
	if r.IntN(100) == 0 {
		request.Domain = "unknown"
	}
	if r.IntN(3) == 0 {
		request.HitsAddend = uint32(1 + r.IntN(3)) //nolint:gosec // 1 to 3
	}
	for range 1 + r.IntN(3) {
		added := newDescriptor(r, d.nodes)
		if !distinct || !slices.ContainsFunc(request.GetDescriptors(), func(other *common.RateLimitDescriptor) bool {
			return added.GetEntries()[0].GetKey() == other.GetEntries()[0].GetKey()
		}) {
			request.Descriptors = append(request.Descriptors, added)
		}
	}
	return request
}

func newDescriptor(r *rand.Rand, nodes []*node) *common.RateLimitDescriptor {
	descriptor := &common.RateLimitDescriptor{}
	for depth := 0; depth == 0 || depth < maxDepth && r.IntN(3) > 0; depth++ {
		entry := &common.RateLimitDescriptor_Entry{Key: pick(r, keys), Value: pick(r, append([]string{"w"}, values...))}
		if len(nodes) > 0 && r.IntN(4) > 0 { // follow a rule
			n := pick(r, nodes)
			entry.Key, nodes = n.key, n.children
			if n.value != "" {
				entry.Value = strings.ReplaceAll(n.value, "*", pick(r, values))
			}
		} else {
			nodes = nil
		}
		descriptor.Entries = append(descriptor.Entries, entry)
	}
	if r.IntN(10) == 0 {
		descriptor.HitsAddend = wrapperspb.UInt64(uint64(1 + r.IntN(3))) //nolint:gosec // 1 to 3
	}
	if r.IntN(12) == 0 {
		descriptor.Limit = &common.RateLimitDescriptor_RateLimitOverride{
			// Always the same, because in the local cache of the Envoy service a key that is over
			// one limit is over all. No rule has this unit, because the Envoy service adds the hits
			// of the override to those of the rule if windows of both units begin at the same time.
			RequestsPerUnit: 2, Unit: typev3.RateLimitUnit_HOUR,
		}
	}
	return descriptor
}
