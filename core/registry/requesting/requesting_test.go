package requesting_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/requesting"
)

func TestDraftNamesTheField(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"com.vendor/maps", " https://example.com/server.json?ref=main "} {
		if err := (requesting.Draft{Server: right, Reason: "For maps."}).Validate(); err != nil {
			t.Errorf("%q: %v", right, err)
		}
	}
	for field, d := range map[string]requesting.Draft{
		"serverName": {Server: "maps", Reason: "For maps."}, "reason": {Server: "com.vendor/maps"},
		"serverName:": {Server: "https://ada@example.com/server.json", Reason: "For maps."},
	} {
		f, ok := fault.As(d.Validate())
		if !ok || f.Kind != fault.Invalid || f.Field != strings.TrimSuffix(field, ":") ||
			!strings.HasPrefix(f.Message, field+" ") {
			t.Errorf("%+v: %+v", d, f)
		}
	}
}
