package site

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestExcerpt(t *testing.T) {
	for text, want := range map[string]Excerpt{
		"": {"", false}, "abcd": {"abcd", false}, "abcde": {"abcd", true}, "abcé": {"abc", true}, "éé": {"éé", false},
		"ééé": {"éé", true},
		"日本":  {"日", true}, "\xff\xff\xff\xff\xff": {"\xff\xff\xff\xff", true},
	} {
		if got := NewExcerpt(text, 4); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	if got := IndentJSON([]byte(`{"a":[1]}`)); got.Cut || got.Text != "{\n  \"a\": [\n    1\n  ]\n}" {
		t.Errorf("indented: %+v", got)
	}
	if got := IndentJSON([]byte(`"` + strings.Repeat("é", MaxJSON) + `"`)); !got.Cut || len(got.Text) != MaxJSON-1 {
		t.Errorf("a long text has %d bytes, cut %t", len(got.Text), got.Cut)
	}
}

// TestEscapeInvisible: a text cannot look like another one by characters that are not seen or that
// change its direction.
func TestEscapeInvisible(t *testing.T) {
	for text, want := range map[string]string{
		"a\u202eb\u2066c, خادم":      `a\u202eb\u2066c, خادم`,
		"\u202egnp.exe":              `\u202egnp.exe`,
		"pay\u200bpal\u00ad\ufeff":   `pay\u200bpal\u00ad\ufeff`,
		"pay\u200cpal":               `pay\u200cpal`,
		"é\u200dpal\u200d":           `é\u200dpal\u200d`,
		"می\u200cخواهم 👩\u200d💻":     "می\u200cخواهم 👩\u200d💻",
		"ك\u200c\u200b\u200cك":       `ك\u200c\u200b\u200cك`,
		"a\U000e0041\u3164\u2028b":   `a\udb40\udc41\u3164\u2028b`,
		"\x00\x1b[31m\u0085\n\ttext": `\u0000\u001b[31m\u0085` + "\n\ttext",
		"\u0601۱۲ A\ufe0f":           "\u0601۱۲ A\ufe0f",
		"":                           "", "plain": "plain",
	} {
		if got := EscapeInvisible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	got := IndentJSON([]byte("[\"a\u202eb\U000e0041\", \"خادم\"]"))
	var value []string
	if err := json.Unmarshal([]byte(got.Text), &value); err != nil || value[0] != "a\u202eb\U000e0041" {
		t.Errorf("the JSON %q has other values: %v", got.Text, err)
	}
}

func FuzzEscapeInvisible(f *testing.F) {
	f.Add("a\u202e\u200c\xff")
	f.Fuzz(func(t *testing.T, text string) {
		once := EscapeInvisible(text)
		if strings.ContainsAny(once, "\u202e\u200b\u2066\u00ad") || EscapeInvisible(once) != once {
			t.Errorf("%q is shown as %q", text, once)
		}
	})
}
