package postgres

import (
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
)

func TestAppendDocumentReadsTheEscapeForm(t *testing.T) {
	var encoding textEncoding
	for text, want := range map[string]string{"": "", "plain": "plain", `a\\b`: `a\b`, `\303\251`: "é", `\\\000\377\\`: "\\\x00\xff\\"} {
		if got, err := encoding.AppendDocument([]byte("first"), text); err != nil || string(got) != "first"+want {
			t.Errorf("AppendDocument of %q = %q, %v, want %q at the end", text, got, err, want)
		}
	}
	for _, text := range []string{`\`, `\1`, `\12`, `\400`, `\8ab`, `a\x41`, `a\e`, `a\eb`} {
		if _, err := encoding.AppendDocument(nil, text); err == nil {
			t.Errorf("AppendDocument of %q returned no error", text)
		}
	}
	if _, err := encoding.AppendDocument(nil, 1); err == nil {
		t.Error("AppendDocument of a number returned no error")
	}
}

var errFacts = errors.New("other facts")

// parseStatus accepts one text as facts.
func parseStatus(facts string) (registry.Release, error) {
	if facts != "the facts" {
		return registry.Release{}, errFacts
	}
	return registry.Release{Status: registry.StatusActive}, nil
}

func TestUnpackRefusesAnIncompleteText(t *testing.T) {
	var encoding textEncoding
	packed := `9 the facts{"a":"\\"}` + endOfDocument
	got, counted, err := encoding.Unpack([2]string{packed + packed, "3"}, parseStatus)
	if err != nil || counted != 3 || len(got) != 2 || got[1].Status != registry.StatusActive || string(got[1].Document) != `{"a":"\"}` {
		t.Errorf("Unpack = %+v, %d, %v", got, counted, err)
	}
	for n := 1; n < len(packed); n++ {
		if _, _, err := encoding.Unpack([2]string{packed[:n], "1"}, parseStatus); err == nil {
			t.Errorf("Unpack of %q returned no error", packed[:n])
		}
	}
	for _, text := range []string{"-1 the facts{}" + endOfDocument, "x the facts{}" + endOfDocument, "99 the facts{}" + endOfDocument} {
		if _, _, err := encoding.Unpack([2]string{text, "1"}, parseStatus); err == nil {
			t.Errorf("Unpack of %q returned no error", text)
		}
	}
	if _, _, err := encoding.Unpack([2]string{packed, "many"}, parseStatus); err == nil {
		t.Error("Unpack of a count that is not a number returned no error")
	}
	if _, _, err := encoding.Unpack([2]string{"3 the{}" + endOfDocument, "1"}, parseStatus); !errors.Is(err, errFacts) {
		t.Errorf("Unpack of broken facts: %v, want the error of the parser", err)
	}
}

func TestUnpackKeepsDocumentsApart(t *testing.T) {
	got, _, err := textEncoding{}.Unpack([2]string{"9 the facts{}" + endOfDocument + "9 the facts[1]" + endOfDocument, "2"}, parseStatus)
	if err != nil || len(got) != 2 {
		t.Fatalf("Unpack = %+v, %v", got, err)
	}
	_ = append(got[0].Document, "!!!"...) // must not change the next document
	if string(got[0].Document) != "{}" || string(got[1].Document) != "[1]" {
		t.Errorf("the documents are %q and %q", got[0].Document, got[1].Document)
	}
}
