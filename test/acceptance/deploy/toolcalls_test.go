package deploy

import (
	"path/filepath"
	"slices"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	limiter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tollgate-dev/tollgate/adapters/runtimedir"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

// toolCall is a request to Envoy of the person sub.
type toolCall struct {
	sub     string
	headers map[string]string
}

func newToolCall(sub, method, tool string) toolCall {
	c := toolCall{sub, map[string]string{":method": "POST"}}
	for name, value := range map[string]string{"mcp-method": method, "mcp-name": tool} {
		if value != "" {
			c.headers[name] = value
		}
	}
	return c
}

// TestToolCalls: Envoy's actions make descriptors of tool calls for which the rules of the example
// have limits, and a call without the headers is refused.
func TestToolCalls(t *testing.T) {
	folder := filepath.Join(append([]string{deployFolder}, append(toolCalls, "config")...)...)
	rules, warnings, err := runtimedir.New(runtimedir.Config{Root: folder}, nil).Compile(t.Context(),
		ruleset.Options{}) // as tollgate ratelimit check
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	_, config := readEnvoy(t, append(toolCalls, "envoy.yaml")...)
	envoy := newToolGateway(t, config)
	matched := map[string]bool{}
	for name, test := range map[string]struct {
		call   toolCall
		limits []string // the names of their rules; nil if Envoy refuses the call
	}{
		"a tool":            {newToolCall("ada", "tools/call", "read_file"), []string{"user", "tools", "tool"}},
		"tools that delete": {newToolCall("ada", "tools/call", "delete_file"), []string{"user", "tools", "deletion"}},
		"an expensive tool": {
			newToolCall("bob", "tools/call", "render_report"), []string{"user", "tools", "tool", "reports"},
		},
		"a list":             {newToolCall("bob", "tools/list", ""), []string{"user"}},
		"a prompt":           {newToolCall("bob", "prompts/get", "greeting"), []string{"user"}},
		"a stream":           {toolCall{"bob", map[string]string{":method": "GET"}}, []string{"user"}},
		"without its method": {newToolCall("bob", "", "read_file"), nil},
		"without its name":   {newToolCall("bob", "tools/call", ""), nil},
	} {
		var limits []string
		for _, entries := range envoy.describe(t, test.call) {
			if rule := rules.Match(envoy.domain, entries); rule != nil {
				limits, matched[rule.Path] = append(limits, string(rule.Name)), true
			}
		}
		if !slices.Equal(limits, test.limits) {
			t.Errorf("%s: the limits are %v, want %v", name, limits, test.limits)
		}
	}
	if all := len(slices.Collect(rules.Rules())); len(matched) != all {
		t.Errorf("%d of %d rules are used: %v", len(matched), all, matched)
	}
}

// toolGateway is what Envoy's configuration says about rate limits.
type toolGateway struct {
	domain    ratelimit.Domain
	tokenPath string // where the JWT filter leaves the claims in its metadata
	routes    []*route.Route
}

func newToolGateway(t *testing.T, config *bootstrap.Bootstrap) toolGateway {
	t.Helper()
	var m manager.HttpConnectionManager
	unpack(t, config.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig(), &m)
	var g toolGateway
	for _, f := range m.GetHttpFilters() {
		switch f.GetName() {
		case "envoy.filters.http.jwt_authn":
			var filter jwt.JwtAuthentication
			unpack(t, f.GetTypedConfig(), &filter)
			g.tokenPath = filter.GetProviders()["tollgate"].GetPayloadInMetadata()
		case "envoy.filters.http.ratelimit":
			var filter limiter.RateLimit
			unpack(t, f.GetTypedConfig(), &filter)
			g.domain = ratelimit.Domain(filter.GetDomain())
		}
	}
	g.routes = m.GetRouteConfig().GetVirtualHosts()[0].GetRoutes()
	return g
}

func unpack(t *testing.T, packed *anypb.Any, m proto.Message) {
	t.Helper()
	must.Succeed(t, packed.UnmarshalTo(m))
}

// describe returns the descriptors of a call, nothing if its route refuses it.
func (g toolGateway) describe(t *testing.T, c toolCall) (all [][]ratelimit.Entry) {
	t.Helper()
	for _, r := range g.routes {
		if !c.matches(r.GetMatch()) {
			continue
		}
		for _, limit := range r.GetRoute().GetRateLimits() {
			if entries := g.applyActions(t, limit.GetActions(), c); entries != nil {
				all = append(all, entries)
			}
		}
		return all
	}
	t.Fatalf("no route matches %v", c)
	return nil
}

// matches reports whether the headers of a call are those of a route, which are compared whole or
// must be there.
func (c toolCall) matches(m *route.RouteMatch) bool {
	for _, h := range m.GetHeaders() {
		value, found := c.headers[h.GetName()]
		if s := h.GetStringMatch(); s != nil {
			found = found && value == s.GetExact()
		}
		if found == h.GetInvertMatch() {
			return false
		}
	}
	return true
}

// applyActions returns a descriptor, or nil if one of its entries is missing, as Envoy does.
func (g toolGateway) applyActions(
	t *testing.T, actions []*route.RateLimit_Action, c toolCall,
) (entries []ratelimit.Entry) {
	t.Helper()
	for _, action := range actions {
		var e ratelimit.Entry
		switch a := action.GetActionSpecifier().(type) {
		case *route.RateLimit_Action_RequestHeaders_:
			e = ratelimit.Entry{
				Key: a.RequestHeaders.GetDescriptorKey(), Value: c.headers[a.RequestHeaders.GetHeaderName()],
			}
		case *route.RateLimit_Action_Metadata:
			key := a.Metadata.GetMetadataKey()
			path := []string{key.GetKey()}
			for _, segment := range key.GetPath() {
				path = append(path, segment.GetKey())
			}
			if want := []string{"envoy.filters.http.jwt_authn", g.tokenPath, "sub"}; slices.Equal(path, want) {
				e = ratelimit.Entry{Key: a.Metadata.GetDescriptorKey(), Value: c.sub}
			}
		}
		if e.Value == "" {
			return nil
		}
		entries = append(entries, e)
	}
	return entries
}
