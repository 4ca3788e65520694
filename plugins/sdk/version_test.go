package sdk

import (
	"os"
	"strings"
	"testing"
)

// versioned is a plugin with a version of its own.
type versioned struct{}

func (versioned) Version() string { return "v2 \xff" }

// TestPluginVersion checks which version a plugin reports, and that the build sets the variable of
// this package: a wrong name would have no effect.
func TestPluginVersion(t *testing.T) {
	defer func(before string) { bundledVersion = before }(bundledVersion)
	bundledVersion = "v1"
	if got := pluginVersion(struct{}{}); got != "v1" {
		t.Errorf("a plugin of Tollgate has the version %q, want v1", got)
	}
	if got := pluginVersion(versioned{}); got != "v2 \uFFFD" {
		t.Errorf("a plugin with a version has the version %q", got)
	}
	build, err := os.ReadFile("../../Makefile")
	if err != nil || !strings.Contains(string(build), "-X $(SDK).bundledVersion=") {
		t.Errorf("the Makefile does not set the version of plugins (%v)", err)
	}
}
