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

	"github.com/tollgate-dev/tollgate/test/must"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestEnvoyExample parses the filter of docs/authentication.md as Envoy does: without unknown
// fields, and with Envoy's own validation.
func TestEnvoyExample(t *testing.T) {
	content, err := os.ReadFile("../../../docs/authentication.md")
	must.Succeed(t, err)
	found := yamlBlock.FindSubmatch(content)
	if found == nil {
		t.Fatal("the document shows no configuration")
	}
	var tree any
	must.Succeed(t, yaml.Unmarshal(found[1], &tree))
	encoded, err := json.Marshal(tree)
	must.Succeed(t, err)
	var filter hcm.HttpFilter
	must.Succeed(t, protojson.Unmarshal(encoded, &filter))
	var config authn.JwtAuthentication
	must.Succeed(t, filter.GetTypedConfig().UnmarshalTo(&config))
	if err := config.ValidateAll(); err != nil {
		t.Error(err)
	}
	provider := config.GetProviders()["tollgate"]
	if provider.GetIssuer() != "tollgate" || len(provider.GetAudiences()) != 1 ||
		provider.GetAudiences()[0] != "tollgate" || len(config.GetRules()) != 1 {
		t.Errorf("the filter is %v", &config)
	}
}
