package authentication

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	authn "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestEnvoyExample parses the filter of docs/authentication.md as Envoy does: without unknown
// fields, and with Envoy's own validation.
func TestEnvoyExample(t *testing.T) {
	content, err := os.ReadFile("../../../docs/authentication.md")
	if err != nil {
		t.Fatal(err)
	}
	found := yamlBlock.FindSubmatch(content)
	if found == nil {
		t.Fatal("the document shows no configuration")
	}
	var tree any
	if err := yaml.Unmarshal(found[1], &tree); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	var filter hcm.HttpFilter
	if err := protojson.Unmarshal(encoded, &filter); err != nil {
		t.Fatal(err)
	}
	var config authn.JwtAuthentication
	if err := filter.GetTypedConfig().UnmarshalTo(&config); err != nil {
		t.Fatal(err)
	}
	if err := config.ValidateAll(); err != nil {
		t.Error(err)
	}
	provider := config.GetProviders()["tollgate"]
	if provider.GetIssuer() != "tollgate" || len(provider.GetAudiences()) != 1 ||
		provider.GetAudiences()[0] != "tollgate" || len(config.GetRules()) != 1 {
		t.Errorf("the filter is %v", &config)
	}
}
