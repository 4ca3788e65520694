package postgres

import (
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
)

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{"": "", "plain": "plain", `a\\b`: `a\b`, `\303\251`: "é", `\\\000\377\\`: "\\\x00\xff\\"} {
		if got, rest, err := appendUnescaped([]byte("first"), text+endOfDocument+"rest"); err != nil || string(got) != "first"+want || rest != "rest" {
			t.Errorf("appendUnescaped of %q = %q, %q, %v, want %q at the end", text, got, rest, err, want)
		}
	}
	for _, text := range []string{"", "a", `\`, `\1`, `\12`, `\400`, `\8ab`, `a\x41`} {
		if _, _, err := appendUnescaped(nil, text); err == nil {
			t.Errorf("appendUnescaped of %q returned no error", text)
		}
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
	packed := `9 the facts{"a":"\\"}` + endOfDocument
	got, err := unpack(packed+packed, 3, parseStatus)
	if err != nil || len(got) != 2 || got[1].Status != registry.StatusActive || string(got[1].Document) != `{"a":"\"}` {
		t.Errorf("unpack = %+v, %v", got, err)
	}
	for n := 1; n < len(packed); n++ {
		if _, err := unpack(packed[:n], 1, parseStatus); err == nil {
			t.Errorf("unpack of %q returned no error", packed[:n])
		}
	}
	for _, text := range []string{"-1 the facts{}" + endOfDocument, "x the facts{}" + endOfDocument, "99 the facts{}" + endOfDocument} {
		if _, err := unpack(text, 1, parseStatus); err == nil {
			t.Errorf("unpack of %q returned no error", text)
		}
	}
	if _, err := unpack("3 the{}"+endOfDocument, 1, parseStatus); !errors.Is(err, errFacts) {
		t.Errorf("unpack of broken facts: %v, want the error of the parser", err)
	}
}

func TestUnpackKeepsDocumentsApart(t *testing.T) {
	got, err := unpack("9 the facts{}"+endOfDocument+"9 the facts[1]"+endOfDocument, 2, parseStatus)
	if err != nil || len(got) != 2 {
		t.Fatalf("unpack = %+v, %v", got, err)
	}
	_ = append(got[0].Document, "!!!"...) // must not change the next document
	if string(got[0].Document) != "{}" || string(got[1].Document) != "[1]" {
		t.Errorf("the documents are %q and %q", got[0].Document, got[1].Document)
	}
}
