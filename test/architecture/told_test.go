package architecture

import (
	"os"
	"strings"
	"testing"
)

// TestRoomsAreTold wants every room of the tree named in docs/architecture.md.
func TestRoomsAreTold(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"core", "ports", "adapters", "plugins"} {
		rooms, err := os.ReadDir(root + "/" + folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, room := range rooms {
			if room.IsDir() && !strings.Contains(string(text), "`"+room.Name()+"`") && !strings.Contains(string(text), "`"+folder+"/"+room.Name()+"`") {
				t.Errorf("docs/architecture.md does not name %s/%s", folder, room.Name())
			}
		}
	}
}
