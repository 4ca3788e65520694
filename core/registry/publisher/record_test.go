package publisher

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
)

func TestParseRecordsReadsKeys(t *testing.T) {
	t.Parallel()
	_, p384 := newP384(t)
	ed := newEd25519(t, 1)
	for name, test := range map[string]struct {
		text string
		want Key
	}{
		"ed25519":               {"v=MCPv1; k=ed25519; p=" + ed.encoded, ed},
		"ecdsap384":             {"v=MCPv1; k=ecdsap384; p=" + p384.encoded, p384},
		"no spaces":             {"v=MCPv1;k=ed25519;p=" + ed.encoded, ed},
		"many spaces":           {" \tv=MCPv1 ;  k = ed25519 ;\tp = " + ed.encoded + " \r", ed},
		"p before k":            {"v=MCPv1; p=" + ed.encoded + "; k=ed25519", ed},
		"a semicolon behind":    {"v=MCPv1; k=ed25519; p=" + ed.encoded + ";", ed},
		"an unknown field":      {"v=MCPv1; k=ed25519; n=1; p=" + ed.encoded, ed},
		"a word":                {"v=MCPv1; k=ed25519; word; p=" + ed.encoded, ed},
		"quotes":                {`"v=MCPv1; k=ed25519; p=` + ed.encoded + `"`, ed},
		"spaces within quotes":  {` " v=MCPv1; k=ed25519; p=` + ed.encoded + ` " `, ed},
		"as many bytes as 1024": {padRecord("v=MCPv1; k=ed25519; p="+ed.encoded, 1024), ed},
	} {
		keys, problems := ParseRecords([]string{test.text})
		if len(keys) != 1 || len(problems) != 0 || keys[0].String() != test.want.String() {
			t.Errorf("%s: ParseRecords(%q) = %v, %v, want %s", name, test.text, keys, problems, test.want)
		}
	}
}

// padRecord returns a record of the given length.
func padRecord(text string, length int) string {
	text += "; x="
	return text + strings.Repeat("x", length-len(text))
}

func TestParseRecordsIgnoresOtherTexts(t *testing.T) {
	t.Parallel()
	rest := "; k=ed25519; p=" + newEd25519(t, 1).encoded
	texts := []string{
		"", " ", `"`, "v=spf1 -all", "v=MCPv2" + rest, "v=MCPv11" + rest, "v=mcpv1" + rest, "V=MCPv1" + rest,
		"v = MCPv1" + rest, "xv=MCPv1" + rest,
		"MCPv1" + rest, "k=ed25519; v=MCPv1" + rest, "'v=MCPv1" + rest, strings.Repeat("x", 5000),
	}
	for _, text := range texts {
		if keys, problems := ParseRecords([]string{text}); len(keys)+len(problems) != 0 {
			t.Errorf("ParseRecords(%q) = %v, %v, want nothing", text, keys, problems)
		}
	}
}

func TestParseRecordsReportsBrokenRecords(t *testing.T) {
	t.Parallel()
	ed := newEd25519(t, 1).encoded
	for defect, test := range map[string]struct{ text, message string }{
		"the version alone":  {"v=MCPv1", "a record has no k"},
		"no k":               {"v=MCPv1; p=" + ed, "a record has no k"},
		"no p":               {"v=MCPv1; k=ed25519", "a record has no p"},
		"an empty k":         {"v=MCPv1; k=; p=" + ed, "a record has no k"},
		"an empty p":         {"v=MCPv1; k=ed25519; p= ", "a record has no p"},
		"K in upper case":    {"v=MCPv1; K=ed25519; p=" + ed, "a record has no k"},
		"k twice":            {"v=MCPv1; k=ed25519; k=ed25519; p=" + ed, `a record has "k" twice`},
		"an empty p before":  {"v=MCPv1; p=; k=ed25519; p=" + ed, `a record has "p" twice`},
		"v twice":            {"v=MCPv1; v=MCPv1; k=ed25519; p=" + ed, `a record has "v" twice`},
		"unknown algorithm":  {"v=MCPv1; k=rsa; p=" + ed, `not "rsa"`},
		"bad base64":         {"v=MCPv1; k=ed25519; p=#" + ed, "not valid base64"},
		"a space in the key": {"v=MCPv1; k=ed25519; p=" + ed[:9] + " " + ed[9:], "not valid base64"},
		"a line end in it":   {"v=MCPv1; k=ed25519; p=" + ed[:9] + "\n" + ed[9:], "not valid base64"},
		"other base64":       {"v=MCPv1; k=ed25519; p=" + strings.Repeat("A", 42) + "B=", "not valid base64"},
		"a wrong size":       {"v=MCPv1; k=ed25519; p=AAAA", "has 3"},
		"a small order":      {"v=MCPv1; k=ed25519; p=" + encodeKey(make([]byte, 32)), "everybody can sign"},
		"more bytes":         {padRecord("v=MCPv1; k=ed25519; p="+ed, 1025), "more than 1024 bytes"},
	} {
		keys, problems := ParseRecords([]string{test.text})
		if len(keys) != 0 || len(problems) != 1 || !fault.Is(problems[0], fault.Invalid) ||
			!strings.Contains(problems[0].Error(), test.message) {
			t.Errorf("%s: ParseRecords(%q) = %v, %v, want a fault with %q", defect, test.text, keys, problems,
				test.message)
		}
	}
}

func TestParseRecordsTriesEachRecord(t *testing.T) {
	t.Parallel()
	first, second := newEd25519(t, 1), newEd25519(t, 2)
	keys, problems := ParseRecords([]string{
		"v=MCPv1; k=rsa; p=AAAA", recordOf(first), "v=spf1 -all", "v=MCPv1", recordOf(second),
	})
	if len(keys) != 2 || len(problems) != 2 || keys[0].String() != first.String() ||
		keys[1].String() != second.String() {
		t.Errorf("ParseRecords = %v, %v, want %s and %s in this order, and two faults", keys, problems, first, second)
	}
}

func TestParseRecordsReadsSixteen(t *testing.T) {
	t.Parallel()
	var texts []string
	for n := range 18 {
		texts = append(texts, fmt.Sprintf("another text %d", n), recordOf(newEd25519(t, byte(n))))
	}
	keys, problems := ParseRecords(texts)
	if len(keys) != 16 || len(problems) != 0 || keys[15].String() != newEd25519(t, 15).String() {
		t.Errorf("of 18 records among other texts, %d were read: %v, %v", len(keys), keys, problems)
	}
	texts[1] = "v=MCPv1"
	if keys, problems = ParseRecords(texts); len(keys) != 15 || len(problems) != 1 {
		t.Errorf("of 18 records with a broken one, ParseRecords read %d and %d broken ones, want 15 and 1", len(keys),
			len(problems))
	}
}

// recordOf returns the record with which a domain publishes a key.
func recordOf(k Key) string {
	algorithm, encoded, _ := strings.Cut(k.String(), ":")
	return "v=MCPv1; k=" + algorithm + "; p=" + encoded
}
