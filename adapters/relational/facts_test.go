package relational

import (
	"strings"
	"testing"
	"time"

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

func TestUnescape(t *testing.T) {
	var a arena
	for text, want := range map[string]string{"": "", "plain": "plain", `a\\b`: `a\b`, `\303\251`: "é", `\\\000\377\\`: "\\\x00\xff\\"} {
		if err := a.Scan(text); err != nil || string(a.last) != want {
			t.Errorf("%q is %q (%v), want %q", text, a.last, err, want)
		}
	}
	for _, text := range []string{`\`, `\1`, `\12`, `\400`, `\8ab`, `a\x41`, `a\e`, `a\eb`} {
		if err := a.Scan(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	if err := a.Scan(1); err == nil {
		t.Error("a number was read")
	}
}

// TestArenaKeepsDocumentsApart appends to one document: its neighbour stays.
func TestArenaKeepsDocumentsApart(t *testing.T) {
	a := arena{rows: 3}
	var all [][]byte
	for _, text := range []string{"one", "two", strings.Repeat("three", 1000)} {
		if err := a.Scan([]byte(text)); err != nil {
			t.Fatal(err)
		}
		all = append(all, a.last)
	}
	_ = append(all[0], "!!!"...) // what matters is what it does not touch
	if string(all[1]) != "two" {
		t.Errorf("the second is %q", all[1])
	}
}

func TestUnpackRefusesWhatIsCutShort(t *testing.T) {
	const facts = "com.example/a active 1 1 2 3 5 1.0.0"
	packed := "36 " + facts + "{}" + endOfDocument
	if got, err := unpackRecords(packed+packed, 2); err != nil || len(got) != 2 || string(got[1].Document) != "{}" {
		t.Errorf("got %+v, %v", got, err)
	}
	for n := 1; n < len(packed); n++ {
		if _, err := unpackRecords(packed[:n], 1); err == nil {
			t.Errorf("%q was read", packed[:n])
		}
	}
}
