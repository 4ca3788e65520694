package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
)

// domain is a file of rules, or a resource of a management server.
type domain struct {
	name  string
	nodes []*node
}

// node is a descriptor of the configuration.
type node struct {
	key, value                     string // a value may be missing, or have a "*"
	limit                          *limit
	shadow, detailed, quota, share bool
	metadata                       map[string]any
	children                       []*node
}

// limit is the rate_limit of a descriptor.
type limit struct {
	unit      string
	requests  uint32
	unlimited bool
	name      string
	replaces  string // a name, or nothing
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
		if n.limit != nil {
			fmt.Fprintf(&out, "%s  rate_limit: {%s}\n", indent, n.limit.format())
		}
		for word, given := range map[string]bool{
			"shadow_mode": n.shadow, "detailed_metric": n.detailed, "quota_mode": n.quota, "share_threshold": n.share,
		} {
			if given {
				fmt.Fprintf(&out, "%s  %s: true\n", indent, word)
			}
		}
		if n.metadata != nil {
			text, _ := json.Marshal(n.metadata) // maps, lists and plain values only
			fmt.Fprintf(&out, "%s  metadata: %s\n", indent, text)
		}
		if len(n.children) > 0 {
			fmt.Fprintf(&out, "%s  descriptors:\n%s", indent, formatNodes(n.children, indent+"    "))
		}
	}
	return out.String()
}

func (l *limit) format() string {
	text := fmt.Sprintf("unit: %s, requests_per_unit: %d", l.unit, l.requests)
	if l.unlimited {
		text = "unlimited: true"
	}
	if l.name != "" {
		text += ", name: " + l.name
	}
	if l.replaces != "" {
		text += ", replaces: [{name: " + l.replaces + "}]"
	}
	return text
}

// serveRules runs a management server with the domains. It returns the settings with which the
// services use it.
func serveRules(domains []domain) (environ []string, stop func(), err error) {
	resources := make([]types.Resource, len(domains))
	for i, d := range domains {
		nodes, err := encodeNodes(d.nodes)
		if err != nil {
			return nil, nil, err
		}
		resources[i] = &config.RateLimitConfig{Name: d.name, Domain: d.name, Descriptors: nodes}
	}
	snapshot, err := cache.NewSnapshot("1", map[resource.Type][]types.Resource{resource.RateLimitConfigType: resources})
	if err != nil {
		return nil, nil, fmt.Errorf("set of rules: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	rules := cache.NewSnapshotCache(false, cache.IDHash{}, nil)
	if err := rules.SetSnapshot(ctx, "compare", snapshot); err != nil {
		cancel()
		return nil, nil, fmt.Errorf("offer the rules: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("listen for the services: %w", err)
	}
	g := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, rules, server.CallbackFuncs{}))
	go func() { _ = g.Serve(l) }() // it returns when it is stopped
	return []string{
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_NODE_ID=compare",
		"CONFIG_GRPC_XDS_SERVER_URL=" + l.Addr().String(),
	}, func() { g.Stop(); cancel() }, nil
}

func encodeNodes(nodes []*node) ([]*config.RateLimitDescriptor, error) {
	list := make([]*config.RateLimitDescriptor, len(nodes))
	for i, n := range nodes {
		children, err := encodeNodes(n.children)
		if err != nil {
			return nil, err
		}
		list[i] = &config.RateLimitDescriptor{
			Key: n.key, Value: n.value, RateLimit: n.limit.encode(), Descriptors: children,
			ShadowMode: n.shadow, DetailedMetric: n.detailed, QuotaMode: n.quota,
		}
		if n.metadata == nil {
			continue
		}
		if list[i].Metadata, err = structpb.NewStruct(n.metadata); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
	}
	return list, nil
}

func (l *limit) encode() *config.RateLimitPolicy {
	if l == nil {
		return nil
	}
	p := &config.RateLimitPolicy{
		Unit:            config.RateLimitUnit(config.RateLimitUnit_value[strings.ToUpper(l.unit)]),
		RequestsPerUnit: l.requests, Unlimited: l.unlimited, Name: l.name,
	}
	if l.replaces != "" {
		p.Replaces = []*config.RateLimitReplace{{Name: l.replaces}}
	}
	return p
}
