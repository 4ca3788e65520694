package registryrecords

import (
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
)

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", `a\\b`: `a\b`, `\303\251`: "é", `\\\000\377\\`: "\\\x00\xff\\",
	} {
		if got, rest, err := appendUnescaped([]byte("first"),
			text+endOfDocument+"rest"); err != nil || string(got) != "first"+want || rest != "rest" {
			t.Errorf("appendUnescaped of %q = %q, %q, %v, want %q at the end", text, got, rest, err, want)
		}
	}
	for _, text := range []string{"", "a", `\`, `\1`, `\12`, `\400`, `\8ab`, `a\x41`} {
		if _, _, err := appendUnescaped(nil, text); err == nil {
			t.Errorf("appendUnescaped of %q returned no error", text)
		}
	}
}

// packedFacts are facts with their size.
const packedFacts = "36 com.example/a active 1 1 2 3 5 1.0.0"

func TestUnpackRefusesAnIncompleteText(t *testing.T) {
	packed := packedFacts + `{"a":"\\"}` + endOfDocument
	got, err := unpack(packed+packed, 3)
	if err != nil || len(got) != 2 || got[1].Status != registry.StatusActive || string(got[1].Document) != `{"a":"\"}` {
		t.Errorf("unpack = %+v, %v", got, err)
	}
	for n := 1; n < len(packed); n++ {
		if _, err := unpack(packed[:n], 1); err == nil {
			t.Errorf("unpack of %q returned no error", packed[:n])
		}
	}
	for _, text := range []string{
		"-1 com.example/a{}" + endOfDocument, "x com.example/a{}" + endOfDocument, "99 com.example/a{}" + endOfDocument,
	} {
		if _, err := unpack(text, 1); err == nil {
			t.Errorf("unpack of %q returned no error", text)
		}
	}
	if _, err := unpack("3 the{}"+endOfDocument, 1); !errors.Is(err, errFacts) {
		t.Errorf("unpack of broken facts: %v, want the error of the parser", err)
	}
}

func TestUnpackKeepsDocumentsApart(t *testing.T) {
	got, err := unpack(packedFacts+"{}"+endOfDocument+packedFacts+"[1]"+endOfDocument, 2)
	if err != nil || len(got) != 2 {
		t.Fatalf("unpack = %+v, %v", got, err)
	}
	_ = append(got[0].Document, "!!!"...) // must not change the next document
	if string(got[0].Document) != "{}" || string(got[1].Document) != "[1]" {
		t.Errorf("the documents are %q and %q", got[0].Document, got[1].Document)
	}
}
