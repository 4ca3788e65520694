package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
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

// node is a descriptor of a rule file.
type node struct {
	key, value string // a value may be missing, or end in "*"
	lines      []string
	children   []*node
}

// domain is a file of rules.
type domain struct {
	name  string
	nodes []*node
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// newDomains returns rules. Only with sameNames, all statistics of them have the same names in both
// services: then no rule is unlimited or has share_threshold.
func newDomains(r *rand.Rand, sameNames bool) []domain {
	all := make([]domain, domainCount)
	for i := range all {
		all[i] = domain{fmt.Sprintf("d%d", i), newNodes(r, 0, sameNames)}
	}
	return all
}

// newNodes returns the descriptors of one level.
func newNodes(r *rand.Rand, depth int, sameNames bool) []*node {
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
			n.addLimit(r, sameNames)
		}
		if depth+1 < maxDepth && r.IntN(2) == 0 {
			n.children = newNodes(r, depth+1, sameNames)
		}
		list = append(list, n)
	}
	return list
}

// addLimit gives a descriptor a limit and the words that go with one.
func (n *node) addLimit(r *rand.Rand, sameNames bool) {
	limit := fmt.Sprintf("unit: %s, requests_per_unit: %d", pick(r, units), r.IntN(4))
	if r.IntN(12) == 0 && !sameNames {
		limit = "unlimited: true"
	}
	name := r.IntN(4 * len(names)) // a quarter have one
	if name < len(names) {
		limit += ", name: " + names[name]
	}
	if r.IntN(8) == 0 {
		limit += ", replaces: [{name: " + names[(name+1)%len(names)] + "}]" // not its own name
	}
	n.lines = append(n.lines, "rate_limit: {"+limit+"}")
	for _, word := range []string{"shadow_mode", "detailed_metric"} {
		if r.IntN(10) == 0 {
			n.lines = append(n.lines, word+": true")
		}
	}
	if strings.Contains(n.value, "*") && r.IntN(3) == 0 && !sameNames {
		n.lines = append(n.lines, "share_threshold: true")
	}
}

// writeRules writes a file for each domain.
func writeRules(folder string, domains []domain) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("folder of the rules: %w", err)
	}
	for _, d := range domains {
		text := "domain: " + d.name + "\ndescriptors:\n" + formatNodes(d.nodes, "  ")
		if err := os.WriteFile(filepath.Join(folder, d.name+".yaml"), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write rules: %w", err)
		}
	}
	return nil
}

func formatNodes(nodes []*node, indent string) string {
	var out strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&out, "%s- key: %s\n", indent, n.key)
		if n.value != "" {
			fmt.Fprintf(&out, "%s  value: %q\n", indent, n.value)
		}
		for _, line := range n.lines {
			fmt.Fprintf(&out, "%s  %s\n", indent, line)
		}
		if len(n.children) > 0 {
			fmt.Fprintf(&out, "%s  descriptors:\n%s", indent, formatNodes(n.children, indent+"    "))
		}
	}
	return out.String()
}

// newRequest returns a request of one to three descriptors, which mostly follow rules. With distinct,
// no two of them have the same first entry, so that they do not share a counter.
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
			return proto.Equal(added.GetEntries()[0], other.GetEntries()[0])
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
			// Always the same, because in the local cache of the Envoy service a key that is over one limit is over
			// all. No rule has this unit, because the Envoy service adds the hits of the override to those of the
			// rule if windows of both units begin at the same time.
			RequestsPerUnit: 2, Unit: typev3.RateLimitUnit_HOUR,
		}
	}
	return descriptor
}
