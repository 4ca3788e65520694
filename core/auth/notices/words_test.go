package notices

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"testing"
)

// TestWords expects a text of each kind, without a misspelt name of a part.
func TestWords(t *testing.T) {
	source, err := os.ReadFile("notices.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`(?m)^\t\w+ +Kind = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(kinds) == 0 || len(kinds) != len(wordings()) {
		t.Errorf("there are %d kinds and %d texts", len(kinds), len(wordings()))
	}
	for _, kind := range kinds {
		w := wordings()[Kind(kind[1])]
		isLink := Kind(kind[1]) == Invitation || Kind(kind[1]) == PasswordLink // sent by e-mail alone
		for _, part := range []string{w.Subject, w.Event, w.Advice, w.Brief} {
			if part == "" && !(isLink && w.Brief == "") {
				t.Errorf("%s lacks a part: %+v", kind[1], w)
			}
		}
	}
	strict := json.NewDecoder(bytes.NewReader(words))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(map[Kind]wording)); err != nil {
		t.Error(err)
	}
}
