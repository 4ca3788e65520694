package deploy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
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
)

// TestEnvoy reads Envoy's configuration into its own messages, which refuse unknown fields and check values, those inside
// of extensions too.
func TestEnvoy(t *testing.T) {
	var tree any
	if err := yaml.Unmarshal([]byte(read(t, "envoy", "envoy.yaml")), &tree); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	var config bootstrap.Bootstrap
	if err := protojson.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	checkMessage(t, &config)
	var clusters []string
	for _, c := range config.GetStaticResources().GetClusters() {
		clusters = append(clusters, c.GetName())
	}
	for _, word := range named(tree, "cluster", "cluster_name") {
		if !slices.Contains(clusters, word) {
			t.Errorf("there is no cluster %s among %v", word, clusters)
		}
	}
	all := known(t)
	for key, setting := range map[string]string{"issuer": "TOKEN_ISSUER", "audiences": "TOKEN_AUDIENCE"} {
		if got := named(tree, key); !slices.Equal(got, []string{all[setting].Default}) {
			t.Errorf("%s is %v, want the default of %s", key, got, setting)
		}
	}
	checkDrain(t, &config)
	if !strings.Contains(string(text), "/.well-known/jwks.json") {
		t.Error("the key set is fetched from elsewhere")
	}
}

// checkDrain wants Envoy to see that an instance drains before its listeners close.
func checkDrain(t *testing.T, config *bootstrap.Bootstrap) {
	t.Helper()
	drain, err := time.ParseDuration(known(t)["SHUTDOWN_DRAIN"].Default)
	if err != nil {
		t.Fatal(err)
	}
	checks := 0
	for _, c := range config.GetStaticResources().GetClusters() {
		for _, check := range c.GetHealthChecks() {
			checks++
			failures := time.Duration(check.GetUnhealthyThreshold().GetValue())
			if noticed := failures*check.GetInterval().AsDuration() + check.GetTimeout().AsDuration(); noticed >= drain {
				t.Errorf("%s: that an instance goes may be noticed after %v, and it answers for %v", c.GetName(), noticed, drain)
			}
		}
	}
	if checks == 0 {
		t.Error("nobody's health is asked for")
	}
}

// checkMessage lets a message check its values, and those packed inside.
func checkMessage(t *testing.T, m proto.Message) {
	t.Helper()
	if v, ok := m.(interface{ ValidateAll() error }); !ok {
		t.Errorf("%T cannot check itself", m)
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

// named returns the texts that stand under keys, or in lists under them.
func named(tree any, keys ...string) []string {
	var found []string
	switch n := tree.(type) {
	case map[string]any:
		for key, value := range n {
			if slices.Contains(keys, key) {
				found = append(found, texts(value)...)
			}
			found = append(found, named(value, keys...)...)
		}
	case []any:
		for _, value := range n {
			found = append(found, named(value, keys...)...)
		}
	}
	return found
}

func texts(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, texts(e)...)
		}
		return all
	}
	return nil
}
