package main

import (
	"testing"
)

func TestNormalizeVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"1.0.8":            "1.0.8",
		"1":                "1.0.0",
		"1.0":              "1.0.0",
		"1.00":             "1.0.0",
		"1.01.1":           "1.1.1",
		"1.00.0.1":         "1.0.0.1",
		"1.0.0.0":          "1.0.0",
		"1.0.01.0":         "1.0.1",
		"0.1.57-Beta":      "0.1.57-beta",
		"1.0.0-rc.01+sha5": "1.0.0-rc.01",
		"1.0.7+r3456":      "1.0.7",
		"1.2.3-a-b":        "1.2.3-a-b",
		"99999999999999.0": "99999999999999.0.0",
		"v1.0.0":           "",
		"1.0.0.0.0":        "",
		"1..0":             "",
		"":                 "",
		"1.0-":             "",
		"1.0-a..b":         "",
		"1.0+":             "",
		"1.0-a/../b":       "",
		"1.0%2f":           "",
		"1.٣":              "",
		"1.0-é":            "",
	} {
		if got, ok := normalizeVersion(version); got != want || ok != (want != "") {
			t.Errorf("normalized(%q) = %q, %v, want %q", version, got, ok, want)
		}
	}
}

func FuzzNormalizeVersion(f *testing.F) {
	for _, seed := range []string{"1.0.8", "1.00.0.0-Beta+x", "", "-", "+", "1.0.0.0.0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, version string) {
		once, ok := normalizeVersion(version)
		if !ok {
			return
		}
		if twice, ok := normalizeVersion(once); !ok || twice != once {
			t.Errorf("normalized(%q) = %q, and that again %q, %v", version, once, twice, ok)
		}
	})
}
