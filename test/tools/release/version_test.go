package main

import (
	"os/exec"
	"testing"
)

// TestPlainVersion checks the versions of packages, and that dpkg sorts them by age.
func TestPlainVersion(t *testing.T) {
	last := ""
	for _, c := range []struct{ described, want string }{
		{"unversioned", "0.0.0+unversioned"},
		{"v0.4.0", "0.4.0"},
		{"v0.4.0-dirty", "0.4.0+dirty"},
		{"v0.4.1-3-g0a1b2c3-dirty", "0.4.1+3.g0a1b2c3.dirty"},
		{"v0.5.0-rc.1", "0.5.0~rc.1"},
		{"v0.5.0-rc.1-2-gabc", "0.5.0~rc.1+2.gabc"},
		{"v0.5.0", "0.5.0"},
		{"v0.5.0-12-gabc", "0.5.0+12.gabc"},
		{"v0.10.0", "0.10.0"},
	} {
		got := source{version: c.described}.plainVersion()
		if got != c.want {
			t.Errorf("%s becomes %s, want %s", c.described, got, c.want)
		}
		if _, err := exec.LookPath("dpkg"); err == nil && last != "" {
			if err := exec.Command("dpkg", "--compare-versions", last, "lt", got).Run(); err != nil {
				t.Errorf("dpkg does not sort %s before %s (%v)", last, got, err)
			}
		}
		last = got
	}
	if got := (source{version: "a07c7792-dirty"}).plainVersion(); got != "0.0.0+a07c7792.dirty" {
		t.Errorf("a commit without a tag becomes %s", got)
	}
}
