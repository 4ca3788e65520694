package relational

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
)

func TestPart(t *testing.T) {
	const facts, more = "com.example/a active 0 1 2 3 5 1.0.0", "com.example/a deleted 1 1 2 3 5 2.0.0gone"
	got, found, err := splitJoined(facts+endOfPart+more, "{}"+endOfPart+"[1]")
	if err != nil || found != 2 || len(got) != 2 || got[0].Version.String() != "1.0.0" || got[1].StatusMessage != "gone" {
		t.Fatalf("got %+v, %d, %v", got, found, err)
	}
	_ = append(got[0].Document, "!!!"...) // what matters is what it does not touch
	if string(got[0].Document) != "{}" || string(got[1].Document) != "[1]" {
		t.Errorf("the documents are %q and %q", got[0].Document, got[1].Document)
	}
	for _, documents := range []string{"", "{}", "{}" + endOfPart + "{}" + endOfPart + "{}"} {
		if got, found, err := splitJoined(facts+endOfPart+more, documents); len(got) > 0 || found != 2 || err != nil {
			t.Errorf("%q: got %+v, %d, %v", documents, got, found, err)
		}
	}
	if got, found, err := splitJoined("", ""); len(got) > 0 || found != 0 || err != nil {
		t.Errorf("nothing is %+v, %d, %v", got, found, err)
	}
	if _, _, err := splitJoined("com.example/a", "{}"); !fault.Is(err, fault.Internal) {
		t.Errorf("spoilt facts: %v, want a fault of kind internal", err)
	}
}
