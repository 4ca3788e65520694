package sqlite

import (
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
)

var errFacts = errors.New("other facts")

// parseMessage reads facts that are a status message.
func parseMessage(facts string) (registry.Release, error) {
	if facts == "broken" {
		return registry.Release{}, errFacts
	}
	return registry.Release{StatusMessage: facts}, nil
}

func TestUnpack(t *testing.T) {
	const facts = "first" + separator + "second"
	var encoding joinedEncoding
	got, counted, err := encoding.Unpack([2]string{facts, "{}" + separator + "[1]"}, parseMessage)
	if err != nil || counted != 2 || len(got) != 2 || got[0].StatusMessage != "first" || got[1].StatusMessage != "second" {
		t.Fatalf("Unpack = %+v, %d, %v", got, counted, err)
	}
	_ = append(got[0].Document, "!!!"...) // must not change the next document
	if string(got[0].Document) != "{}" || string(got[1].Document) != "[1]" {
		t.Errorf("the documents are %q and %q", got[0].Document, got[1].Document)
	}
	for _, documents := range []string{"", "{}", "{}" + separator + "{}" + separator + "{}"} {
		if got, counted, err := encoding.Unpack([2]string{facts, documents}, parseMessage); len(got) > 0 || counted != 2 || err != nil {
			t.Errorf("Unpack with the documents %q = %+v, %d, %v, want no records", documents, got, counted, err)
		}
	}
	if got, counted, err := encoding.Unpack([2]string{}, parseMessage); len(got) > 0 || counted != 0 || err != nil {
		t.Errorf("Unpack of no rows = %+v, %d, %v", got, counted, err)
	}
	if _, _, err := encoding.Unpack([2]string{"broken", "{}"}, parseMessage); !errors.Is(err, errFacts) {
		t.Errorf("Unpack of broken facts: %v, want the error of the parser", err)
	}
}

func TestAppendDocumentReadsBytes(t *testing.T) {
	var encoding joinedEncoding
	if got, err := encoding.AppendDocument([]byte("a"), []byte("b")); err != nil || string(got) != "ab" {
		t.Errorf("AppendDocument = %q, %v", got, err)
	}
	if _, err := encoding.AppendDocument(nil, "text"); err == nil {
		t.Error("AppendDocument of a text returned no error")
	}
}
