package registryrecords

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

func TestFacts(t *testing.T) {
	at := func(micro int64) time.Time { return time.UnixMicro(micro).UTC() }
	got, err := parseFacts("com.example/a deprecated 1 -1 2 300000000000000003 7 1.0 é9gone 1 2 3")
	if err != nil {
		t.Fatal(err)
	}
	if got.Name.String() != "com.example/a" || got.Version.String() != "1.0 é9" || got.Status != registry.StatusDeprecated || !got.Latest ||
		got.StatusMessage != "gone 1 2 3" || !got.StatusChangedAt.Equal(at(-1)) || !got.PublishedAt.Equal(at(2)) || !got.UpdatedAt.Equal(at(300000000000000003)) {
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

// bytesEncoding appends bytes.
type bytesEncoding struct{ database.ListEncoding }

func (bytesEncoding) AppendDocument(dst []byte, src any) ([]byte, error) {
	return append(dst, src.([]byte)...), nil
}

func TestArenaKeepsDocumentsApart(t *testing.T) {
	a := arena{rows: 3, encoding: bytesEncoding{}}
	var all [][]byte
	for _, text := range []string{"one", "two", strings.Repeat("three", 1000)} {
		if err := a.Scan([]byte(text)); err != nil {
			t.Fatal(err)
		}
		all = append(all, a.last)
	}
	_ = append(all[0], "!!!"...) // must not change the next document
	if string(all[0]) != "one" || string(all[1]) != "two" {
		t.Errorf("the first documents are %q and %q", all[0], all[1])
	}
	if err := a.Scan(1); err == nil {
		t.Error("a number was read as a document")
	}
}
