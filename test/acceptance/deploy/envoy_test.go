package deploy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tollgate-dev/tollgate/test/must"
)

// toolCalls is the folder of the example that limits tool calls, relative to the deploy folder.
var toolCalls = []string{"..", "docs", "examples", "tool-calls"}

// TestEnvoy parses configurations of Envoy into its own messages, which reject unknown fields, and
// validates all values, also those in extensions.
func TestEnvoy(t *testing.T) {
	for name, path := range map[string][]string{"deploy": {"envoy"}, "tool calls": toolCalls} {
		t.Run(name, func(t *testing.T) {
			tree, config := readEnvoy(t, append(path, "envoy.yaml")...)
			checkMessage(t, config)
			var clusters []string
			for _, c := range config.GetStaticResources().GetClusters() {
				clusters = append(clusters, c.GetName())
			}
			for _, word := range findValues(tree, "cluster", "cluster_name") {
				if !slices.Contains(clusters, word) {
					t.Errorf("the cluster %s is not defined; the clusters are %v", word, clusters)
				}
			}
			all := knownSettings(t)
			for key, setting := range map[string]string{"issuer": "TOKEN_ISSUER", "audiences": "TOKEN_AUDIENCE"} {
				if got := findValues(tree, key); !slices.Equal(got, []string{all[setting].Default}) {
					t.Errorf("%s is %v, want the default of %s", key, got, setting)
				}
			}
			checkDrain(t, config)
			if sets := findValues(tree, "uri"); len(sets) != 1 ||
				!strings.HasSuffix(sets[0], "/.well-known/jwks.json") {
				t.Errorf("keys are fetched from %v, want /.well-known/jwks.json", sets)
			}
		})
	}
}

// TestEnvoyDecisions checks the example with decisions about calls: it sends whole bodies as they are, and
// limits by what the decision says, after it.
func TestEnvoyDecisions(t *testing.T) {
	tree, config := readEnvoy(t, "..", "docs", "examples", "access", "envoy.yaml")
	checkMessage(t, config)
	checkDrain(t, config)
	for _, name := range findValues(tree, "cluster", "cluster_name") {
		if name != "tollgate" && name != "mcp" {
			t.Errorf("the cluster %s is not defined", name)
		}
	}
	filters := strings.Join(findValues(tree, "name"), " ")
	if decides, counts := strings.Index(filters, "http.ext_authz"), strings.Index(filters, "http.ratelimit"); decides < 0 || counts < decides {
		t.Errorf("the filters are %s, want ext_authz before ratelimit", filters)
	}
	for _, part := range []string{"envoy.filters.http.ext_authz", "dev.tollgate.decision", "subject", "tool"} {
		if !slices.Contains(findValues(tree, "key"), part) {
			t.Errorf("no limit is by %s", part)
		}
	}
}

// TestEnvoyTutorial checks the example of docs/start-envoy.md: each limit is by the levels of the rule that the page
// writes, and Envoy notices an instance that drains.
func TestEnvoyTutorial(t *testing.T) {
	tree, config := readEnvoy(t, "..", "docs", "examples", "envoy", "envoy.yaml")
	checkMessage(t, config)
	checkDrain(t, config)
	for _, name := range findValues(tree, "cluster", "cluster_name") {
		if name != "tollgate" && name != "service" {
			t.Errorf("the cluster %s is not defined", name)
		}
	}
	for key, want := range map[string]string{"domain": "front", "descriptor_key": "route", "descriptor_value": "login"} {
		if got := findValues(tree, key); !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %v, want %s", key, got, want)
		}
	}
}

// readEnvoy reads a configuration of Envoy as a tree and as its own message.
func readEnvoy(t *testing.T, path ...string) (tree any, config *bootstrap.Bootstrap) {
	t.Helper()
	must.Succeed(t, yaml.Unmarshal([]byte(readDeployFile(t, path...)), &tree))
	text, err := json.Marshal(tree)
	must.Succeed(t, err)
	config = &bootstrap.Bootstrap{}
	must.Succeed(t, protojson.Unmarshal(text, config))
	return tree, config
}

// checkDrain checks that Envoy marks a draining instance as unhealthy before the instance closes
// its listeners.
func checkDrain(t *testing.T, config *bootstrap.Bootstrap) {
	t.Helper()
	drain, err := time.ParseDuration(knownSettings(t)["SHUTDOWN_DRAIN"].Default)
	must.Succeed(t, err)
	checks := 0
	for _, c := range config.GetStaticResources().GetClusters() {
		for _, check := range c.GetHealthChecks() {
			checks++
			failures := time.Duration(check.GetUnhealthyThreshold().GetValue())
			if detected := failures*check.GetInterval().AsDuration() + check.GetTimeout().
				AsDuration(); detected >= drain {
				t.Errorf("%s: Envoy may need %v to detect that an instance drains, want less than SHUTDOWN_DRAIN (%v)",
					c.GetName(), detected, drain)
			}
		}
	}
	if checks == 0 {
		t.Error("no cluster has a health check")
	}
}

// checkMessage validates a message and, recursively, the messages packed in its Any fields.
func checkMessage(t *testing.T, m proto.Message) {
	t.Helper()
	if v, ok := m.(interface{ ValidateAll() error }); !ok {
		t.Errorf("%T has no method ValidateAll", m)
	} else if err := v.ValidateAll(); err != nil {
		t.Error(err)
	}
	err := protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		packed, ok := p.Index(-1).Value.Interface().(protoreflect.Message)
		if !ok {
			return nil
		}
		if a, ok := packed.Interface().(*anypb.Any); ok {
			inner, err := a.UnmarshalNew()
			if err != nil {
				return err
			}
			checkMessage(t, inner)
			return protorange.Break
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// findValues returns the strings that the keys have as values, directly or in lists, anywhere in a
// tree.
func findValues(tree any, keys ...string) []string {
	var found []string
	switch n := tree.(type) {
	case map[string]any:
		for key, value := range n {
			if slices.Contains(keys, key) {
				found = append(found, flattenValues(value)...)
			}
			found = append(found, findValues(value, keys...)...)
		}
	case []any:
		for _, value := range n {
			found = append(found, findValues(value, keys...)...)
		}
	}
	return found
}

// flattenValues returns a string, or the strings in a list, as one list.
func flattenValues(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, flattenValues(e)...)
		}
		return all
	}
	return nil
}
