package runtimedir

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Rule files in the forms that gateways write or document.
const (
	// Envoy Gateway writes every field, ordered by name, and a name for the file.
	envoyGateway = `descriptors:
- descriptors:
  - descriptors:
    - descriptors: []
      detailed_metric: false
      key: rule-0-match-0-header-0
      rate_limit:
        name: ""
        replaces: []
        requests_per_unit: 5
        unit: SECOND
        unlimited: false
      shadow_mode: false
      value: rule-0-match-0-header-0
    detailed_metric: false
    key: rule-0-match-0
    rate_limit: null
    shadow_mode: false
    value: rule-0-match-0
  detailed_metric: false
  key: httproute/team/orders/rule/0
  rate_limit: null
  shadow_mode: false
  value: httproute/team/orders/rule/0
domain: team/gateway/http
name: team/gateway/http
`
	// Istio has its rules in a key of a ConfigMap.
	istio = `domain: mesh-ratelimit
descriptors:
  - key: PATH
    value: "/orders"
    rate_limit:
      unit: minute
      requests_per_unit: 1
  - key: PATH
    rate_limit:
      unit: minute
      requests_per_unit: 100
`
	// Contour counts by addresses and by keys that routes set.
	contour = `---
domain: contour
descriptors:
  - key: remote_address
    rate_limit:
      unit: minute
      requests_per_unit: 3
  - key: generic_key
    value: checkout
    descriptors:
      - key: header_match
        value: beta
        rate_limit: {unit: hour, requests_per_unit: 10}
---
`
)

func TestFilesOfGateways(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		domain  ratelimit.Domain
		entries []ratelimit.Entry
		want    ratelimit.Limit
	}{
		"Envoy Gateway": {
			envoyGateway, "team/gateway/http", []ratelimit.Entry{
				{Key: "httproute/team/orders/rule/0", Value: "httproute/team/orders/rule/0"},
				{Key: "rule-0-match-0", Value: "rule-0-match-0"},
				{Key: "rule-0-match-0-header-0", Value: "rule-0-match-0-header-0"},
			}, ratelimit.Limit{RequestsPerUnit: 5, Unit: ratelimit.Second},
		},
		"Istio": {
			istio, "mesh-ratelimit", []ratelimit.Entry{{Key: "PATH", Value: "/other"}}, ratelimit.Limit{
				RequestsPerUnit: 100, Unit: ratelimit.Minute,
			},
		},
		"Contour": {
			contour, "contour", []ratelimit.Entry{
				{Key: "generic_key", Value: "checkout"}, {Key: "header_match", Value: "beta"},
			},
			ratelimit.Limit{RequestsPerUnit: 10, Unit: ratelimit.Hour},
		},
	} {
		source, warnings := parseFile("config.yaml", []byte(test.content))
		set, err := ruleset.Compile([]ruleset.Source{source}, ruleset.Options{})
		if err != nil || len(warnings) != 0 {
			t.Errorf("%s: %v, warnings %q", name, err, warnings)
			continue
		}
		if r := set.Match(test.domain, test.entries); r == nil || r.Limit != test.want {
			t.Errorf("%s: rule %+v, want the limit %+v", name, r, test.want)
		}
	}
}
