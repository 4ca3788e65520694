package toolserver

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRangesOfPatterns: the range of a pattern has the names that the pattern selects.
func TestRangesOfPatterns(t *testing.T) {
	t.Parallel()
	names := rapid.StringMatching(`[a-c.Zz-]{1,3}/[a-cZz._-]{1,3}`)
	rapid.Check(t, func(rt *rapid.T) {
		name, err := ParseName(names.Draw(rt, "name"))
		must.Succeed(rt, err)
		text := rapid.OneOf(names, rapid.StringMatching(`[a-c.Zz-]{0,3}\*`),
			rapid.StringMatching(`[a-c.Zz-]{1,3}/[a-cZz._-]{0,2}\*`)).Draw(rt, "pattern")
		p, err := ParsePattern(text)
		must.Succeed(rt, err)
		if r := p.Range(); r.Contains(name.String()) != p.Matches(name) {
			rt.Fatalf("the range of %s is %q: has %s = %t, and the pattern matches: %t", p, r, name,
				r.Contains(name.String()), p.Matches(name))
		}
	})
}

func TestRangeOfNoPattern(t *testing.T) {
	t.Parallel()
	if r := (Pattern{}).Range(); r.Contains("") || r.Contains("com.example/a") {
		t.Errorf("the zero pattern has the range %q", r)
	}
}
