package service

import (
	"strings"
	"testing"
)

// TestCheckSystem refuses to serve on Windows, with what to do instead.
func TestCheckSystem(t *testing.T) {
	for _, name := range []string{"linux", "darwin"} {
		if err := checkSystem(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkSystem("windows"); err == nil || !strings.Contains(err.Error(), "--server URL") {
		t.Errorf("windows: %v", err)
	}
}
