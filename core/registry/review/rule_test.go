package review_test

import (
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newRule(t *testing.T, id review.RuleID, pattern, publisher string, when review.When) review.Rule {
	t.Helper()
	p, err := registry.ParsePattern(pattern)
	must.Succeed(t, err)
	return review.Rule{ID: id, Pattern: p, Publisher: publisher, When: when}
}

func TestFirstRule(t *testing.T) {
	t.Parallel()
	name, err := registry.ParseName("com.example/weather")
	must.Succeed(t, err)
	person, publisher := review.Submitter{Key: "ada"}, review.Submitter{Key: "dns:example.com", Policy: "policy"}
	other := newRule(t, "other", "com.exampleX/*", "", review.Any)
	anyRule := newRule(t, "any", "com.example/*", "", review.Any)
	same := newRule(t, "same", "com.example/weather", "", review.SameOrigins)
	ofAda := newRule(t, "ada", "*", "ada", review.Any)
	ofPolicy := newRule(t, "policy", "*", "policy", review.Any)
	for label, c := range map[string]struct {
		rules  []review.Rule
		by     review.Submitter
		within bool
		want   review.RuleID
		asked  bool
	}{
		"no rules":                 {nil, person, true, "", false},
		"another server":           {[]review.Rule{other}, person, true, "", false},
		"any":                      {[]review.Rule{other, anyRule}, person, false, "any", false},
		"same origins":             {[]review.Rule{same}, person, true, "same", true},
		"other origins":            {[]review.Rule{same}, person, false, "", true},
		"any makes the look vain":  {[]review.Rule{same, anyRule}, person, false, "any", false},
		"of a person":              {[]review.Rule{ofAda}, person, false, "ada", false},
		"of another person":        {[]review.Rule{ofAda}, review.Submitter{Key: "bea"}, true, "", false},
		"of a policy":              {[]review.Rule{ofAda, ofPolicy}, publisher, false, "policy", false},
		"a publisher is no person": {[]review.Rule{ofAda}, publisher, true, "", false},
	} {
		asked := false
		got, err := review.FirstRule(c.rules, name, c.by, func() (bool, error) { asked = true; return c.within, nil })
		if err != nil || got != c.want || asked != c.asked {
			t.Errorf("%s: FirstRule = %q, %v, asked for origins %v; want %q, %v", label, got, err, asked,
				c.want, c.asked)
		}
	}
	broken := errors.New("broken")
	if _, err := review.FirstRule([]review.Rule{same}, name, person, func() (bool, error) {
		return true, broken
	}); !errors.Is(err, broken) {
		t.Errorf("FirstRule: %v, want the error", err)
	}
}
