package history

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/test/must"
)

var start = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func TestDecay(t *testing.T) {
	seen := Count{}.Plus(Addition{Weight: Growth(start)}, start)
	for age, want := range map[time.Duration]float64{
		0: 1, 45 * day: math.Sqrt(.5), 90 * day: .5, 179 * day: math.Exp2(-179. / 90), 180 * day: 0,
	} {
		if got := seen.Weight(start.Add(age)); math.Abs(got-want) > 1e-9 {
			t.Errorf("after %s a sign-in weighs %v, want %v", age, got, want)
		}
	}
	if w := (Count{}).Weight(start); w != 0 {
		t.Errorf("a value that was never seen weighs %v", w)
	}
}

// TestPlusInAnyOrder checks that the order of additions does not matter, so that instances can add
// at once.
func TestPlusInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hours := rapid.SliceOfN(rapid.IntRange(0, 4000), 1, 20).Draw(t, "hours")
		shuffled := rapid.Permutation(hours).Draw(t, "shuffled")
		sum := func(hours []int) (c Count) {
			for _, h := range hours {
				at := start.Add(time.Duration(h) * time.Hour)
				c = c.Plus(Addition{Weight: Growth(at), Version: uint32(h)}, at)
			}
			return c
		}
		a, b := sum(hours), sum(shuffled)
		if math.Abs(a.Sum-b.Sum) > 1e-9*a.Sum || !a.Last.Equal(b.Last) || a.Version != b.Version {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}

func TestStored(t *testing.T) {
	root := auth.RootSecret(strings.Repeat("k", 32))
	key, err := root.Derive(KeyPurpose)
	must.Succeed(t, err)
	for _, plain := range []Value{
		{SignIns, ""}, {Novel, "24"}, {EarlyNovel, "3|12"}, {Hidden, ""}, {Upgrade, "device|2d|same"},
		{Return, "|12h|near"},
	} {
		if got := plain.Stored(key, "ada"); got != plain.Text {
			t.Errorf("%v is stored as %q", plain, got)
		}
		if text, other := plain.Clear(); other {
			t.Errorf("%v was stored as %q", plain, text)
		}
	}
	stored := map[string]bool{}
	for _, v := range []Value{
		{Address, "203.0.113.7/32"}, {Prefix, "203.0.113.0/24"}, {Network, widePrefix + "203.0.0.0/16"}, {
			NetworkDevice, widePrefix + "203.0.0.0/16|x",
		},
		{Device, "Chrome|Windows 203.0.113.7|1920x1080"}, // long
		{Network, "AS64500 203.0 13.0"}, {Language, "de-203.0"}, {Return, "203.0" + far},
	} {
		for _, user := range []auth.UserID{"", "ada", "bob"} {
			text := v.Stored(key, user)
			if strings.Contains(text, "203.0") || len(text) != 12 || stored[text] {
				t.Errorf("%v of %q is stored as %q", v, user, text)
			}
			stored[text] = true
			if again := (Value{v.Feature, text}).Restored(key, user); again != text {
				t.Errorf("%v of %q is read as %q, and stored as %q", v, user, again, text)
			}
			if clear, other := v.Clear(); other && (Value{v.Feature, clear}).Restored(key, user) != text {
				t.Errorf("%v of %q was stored as %q, and does not become %q", v, user, clear, text)
			}
		}
	}
}
