package registryrecords

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestFacts(t *testing.T) {
	at := func(micro int64) time.Time { return time.UnixMicro(micro).UTC() }
	got, err := parseFacts("com.example/a deprecated 1 -1 2 300000000000000003 7 1.0 é9gone 1 2 3")
	must.Succeed(t, err)
	if got.Name.String() != "com.example/a" || got.Version.String() != "1.0 é9" ||
		got.Status != registry.StatusDeprecated || !got.Latest ||
		got.StatusMessage != "gone 1 2 3" || !got.StatusChangedAt.Equal(at(-1)) || !got.PublishedAt.Equal(at(2)) ||
		!got.UpdatedAt.Equal(at(300000000000000003)) {
		t.Errorf("got %+v", got)
	}
	for defect, text := range map[string]string{
		"empty":               "",
		"no name":             " active 1 1 2 3 5 1.0.0",
		"bad name":            "a active 1 1 2 3 5 1.0.0",
		"bad status":          "com.example/a gone 1 1 2 3 5 1.0.0",
		"no number":           "com.example/a active 1 x 2 3 5 1.0.0",
		"a minus alone":       "com.example/a active 1 - 2 3 5 1.0.0",
		"too great a number":  "com.example/a active 1 1 2 9999999999999999999 5 1.0.0",
		"version too short":   "com.example/a active 1 1 2 3 6 1.0.0",
		"negative length":     "com.example/a active 1 1 2 3 -5 1.0.0",
		"no version":          "com.example/a active 1 1 2 3 0 ",
		"version is an alias": "com.example/a active 1 1 2 3 6 latest",
	} {
		if _, err := parseFacts(text); !fault.Is(err, fault.Internal) {
			t.Errorf("%s: %v, want a fault of kind internal", defect, err)
		}
	}
}
