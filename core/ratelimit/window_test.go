package ratelimit

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWindowAt(t *testing.T) {
	tests := map[string]struct {
		now    int64
		length time.Duration
		start  int64
		reset  time.Duration
	}{
		"first second":     {60, time.Minute, 60, time.Minute},
		"last second":      {119, time.Minute, 60, time.Second},
		"a custom length":  {900 + 5, 15 * time.Minute, 900, 895 * time.Second},
		"a second":         {7, time.Second, 7, time.Second},
		"before the epoch": {-1, time.Minute, -60, time.Second},
		"no length":        {7, 0, 7, time.Second},
		"month of 30 days": {30 * 86400, Month.Window(), 30 * 86400, 30 * day},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(test.now, 999)
			w := WindowAt(now, test.length)
			if w.Start != test.start || w.UntilReset(now) != test.reset {
				t.Errorf("starts %d, resets in %v; want %d, %v", w.Start, w.UntilReset(now), test.start, test.reset)
			}
			if !w.End().Equal(time.Unix(test.start, 0).Add(w.Length)) {
				t.Errorf("ends %v", w.End())
			}
		})
	}
}

func TestAppendKey(t *testing.T) {
	c := Counter{
		Prefix: "p_", Domain: "shop", Entries: []Entry{{"user", "a"}, {"op", ""}}, Window: Window{
			Start: 60, Length: time.Minute,
		},
	}
	if got := string(AppendKey(nil, c)); got != "p_4:shop4:user1:a2:op0:/60/60/2" {
		t.Errorf("key %q", got)
	}
	for name, value := range map[string]string{
		"long": strings.Repeat("x", MaxKey), "space": "a b", "not ASCII": "é", "control": "a\x00",
	} {
		c.Entries[0].Value = value
		got := string(AppendKey([]byte("before"), c))
		if !strings.HasPrefix(got, "beforep_#") || len(got) > MaxKey {
			t.Errorf("%s: key %q", name, got)
		}
	}
}

func TestAppendKeyAllocatesNothing(t *testing.T) {
	c := Counter{Domain: "d", Entries: []Entry{{"k", strings.Repeat("v", 300)}}, Window: Window{Length: time.Hour}}
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buf = AppendKey(buf[:0], c) }); n != 0 {
		t.Errorf("allocates %v times", n)
	}
}

// TestKeysAreUnambiguous draws counters from few letters, digits and the characters of the key's
// own form.
func TestKeysAreUnambiguous(t *testing.T) {
	text := rapid.StringMatching(`[a1:/#]{0,4}`)
	counter := rapid.Custom(func(t *rapid.T) Counter {
		c := Counter{Prefix: text.Draw(t, "prefix"), Domain: Domain(text.Draw(t, "domain"))}
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			c.Entries = append(c.Entries, Entry{text.Draw(t, "key"), text.Draw(t, "value")})
		}
		c.Window = WindowAt(time.Unix(rapid.Int64Range(0, 200).Draw(t, "now"), 0),
			rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "length"))
		return c
	})
	seen := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		c := counter.Draw(t, "counter")
		key := string(AppendKey(nil, c))
		var b strings.Builder
		for _, s := range []string{c.Prefix, string(c.Domain)} {
			b.WriteString(s + "\x00")
		}
		for _, e := range c.Entries {
			b.WriteString(e.Key + "\x00" + e.Value + "\x00")
		}
		b.WriteString(c.Window.Length.String() + time.Unix(c.Window.Start, 0).String())
		if other, ok := seen[key]; ok && other != b.String() {
			t.Fatalf("%q is the key of %q and of %q", key, other, b.String())
		}
		seen[key] = b.String()
	})
}

func TestUnits(t *testing.T) {
	for _, name := range UnitNames() {
		u, ok := ParseUnit(strings.ToUpper(name))
		if !ok || u.String() != name || u.Window() == 0 {
			t.Errorf("%s: %v %v %v", name, u, ok, u.Window())
		}
	}
	for _, name := range []string{"", "unknown", "minutes"} {
		if _, ok := ParseUnit(name); ok {
			t.Errorf("%q is accepted as a unit", name)
		}
	}
	if Unit(99).Window() != 0 || Unit(99).String() != "unknown" {
		t.Error("an unknown unit has a window")
	}
}

func TestClosest(t *testing.T) {
	minute := Limit{RequestsPerUnit: 5, Unit: Minute}
	d := Decision{Statuses: []Status{
		{Code: OK}, {Code: OK, Limit: minute, Remaining: 0}, {Code: OverLimit, Limit: minute}, {
			Code: OverLimit, Limit: minute,
		},
	}}
	if d.Closest() != &d.Statuses[2] {
		t.Error("the first over limit is not the closest")
	}
	d.Statuses = d.Statuses[:2]
	if d.Closest() != &d.Statuses[1] {
		t.Error("the one with a limit is not the closest")
	}
	d.Statuses = d.Statuses[:1]
	if d.Closest() != nil {
		t.Error("a status without a limit is the closest")
	}
}
