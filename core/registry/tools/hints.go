package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Suspicion is what a finding is about.
type Suspicion string

// The suspicions.
const (
	Order     Suspicion = "order"     // an order to the model
	Reference Suspicion = "reference" // the name of another listed server, or of a tool of one
	Secret    Suspicion = "secret"    // words for secrets and files with them
	Invisible Suspicion = "invisible" // characters that are not seen, or a text that is far away
	Script    Suspicion = "script"    // letters of several scripts in one word, or of another form
	Shadow    Suspicion = "shadow"    // a tool of another listed server has the name
)

// Finding is a hint for a reviewer (contract W-4). It is no verdict: harmless tools get some, too.
type Finding struct {
	Suspicion Suspicion
	Tool      string // its name; empty for what else a model reads
	Where     string // the field, for example description or inputSchema.properties.path.description
	Found     string // the words, with characters that are not seen written out
	Reason    string // a sentence
}

// Listed is what other servers of the registry show.
type Listed struct {
	Servers map[string]bool   // the names of the servers
	Tools   map[string]string // the name of a server by the name of each of its tools
}

// MaxFindings is the greatest number of findings in one list.
const MaxFindings = 200

// Inspect returns what a reviewer should look at in a list, in the order of the tools: at most one
// finding for each reason and text, and MaxFindings in all. other is what other servers show.
func Inspect(l List, other Listed) []Finding {
	i := inspection{list: l, other: other}
	for _, t := range l.Tools {
		i.tool = t.Name
		if server, found := other.Tools[t.Name]; found {
			i.add(Shadow, fieldName, t.Name, fmt.Sprintf("the server %s has a tool of this name, too", quote(server)))
		}
		i.value("", t.fields)
	}
	i.tool = ""
	i.text(memberInstructions, l.Instructions)
	i.named(memberPrompts, l.Prompts)
	i.named(memberTemplates, l.ResourceTemplates)
	return i.found
}

// inspection is the inspection of a list.
type inspection struct {
	list  List
	other Listed
	tool  string // that is inspected now
	found []Finding
}

func (i *inspection) add(s Suspicion, where, found, reason string) {
	if len(i.found) < MaxFindings {
		i.found = append(i.found, Finding{s, i.tool, where, strings.Trim(quote(found), `"`), reason})
	}
}

func (i *inspection) named(member string, all []Named) {
	for _, n := range all {
		i.text(join(member, fieldName), n.Name)
		i.text(join(member, fieldDescription), n.Description)
	}
}

// value inspects all texts of a value, and the names of its members.
func (i *inspection) value(path string, v jsonvalue.Value) {
	switch value := v.(type) {
	case jsonvalue.Text:
		i.text(path, string(value))
	case jsonvalue.List:
		for _, item := range value {
			i.value(path, item)
		}
	case jsonvalue.Object:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			i.letters(join(path, name), name)
			i.value(join(path, name), value[name])
		}
	}
}

// text inspects one text.
func (i *inspection) text(where, text string) {
	i.letters(where, text)
	i.distance(where, text)
	plain := fold(text)
	for _, rule := range rules() {
		if words := rule.pattern.FindString(plain); words != "" {
			i.add(rule.suspicion, where, words, rule.reason)
		}
	}
	i.references(where, text)
}

// references looks for names of other servers and of their tools. A name of a tool that is a plain
// word does not count: it is in many texts.
func (i *inspection) references(where, text string) {
	if len(i.other.Servers)+len(i.other.Tools) == 0 || where == fieldName {
		return
	}
	seen := map[string]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !isNamePart(r) }) {
		if word = strings.Trim(word, ".-/"); seen[word] {
			continue
		}
		seen[word] = true
		if i.other.Servers[word] {
			i.add(Reference, where, word, "it names another listed server")
		}
		server, found := i.other.Tools[word]
		if found && i.list.Find(word) == nil && isIdentifier(word) {
			i.add(Reference, where, word, fmt.Sprintf("it names a tool of the server %s", quote(server)))
		}
	}
}

func isNamePart(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./", r)
}

// isIdentifier reports whether a word is more than a plain one: it has a digit, an underscore or a
// hyphen, or a capital letter after a small one.
func isIdentifier(word string) bool {
	small := false
	for _, r := range word {
		if unicode.IsDigit(r) || r == '_' || r == '-' || small && unicode.IsUpper(r) {
			return true
		}
		small = unicode.IsLower(r)
	}
	return false
}

// The distances at which a text is out of sight.
const (
	farSpaces = 60 // on one line
	farLines  = 12 // empty ones
)

// distance looks for a text that is far to the right or below of another one.
func (i *inspection) distance(where, text string) {
	spaces, lines := 0, 0
	for _, r := range text {
		switch {
		case r == '\n':
			lines, spaces = lines+1, 0
		case r == ' ' || r == '\t' || r == '\r' || unicode.Is(unicode.Zs, r):
			spaces++
		case spaces >= farSpaces || lines >= farLines:
			i.add(Invisible, where, fmt.Sprintf("%d spaces, %d line feeds", spaces, lines),
				"words come after so much empty space that they are out of sight")
			return
		default:
			spaces, lines = 0, 0
		}
	}
}

// letters looks for characters that are not seen, and for words of several scripts.
func (i *inspection) letters(where, text string) {
	runes := []rune(text)
	for at := range runes {
		if isUnseen(runes, at) {
			i.add(Invisible, where, string(runes[max(0, at-10):min(len(runes), at+10)]), "it has characters that are not seen")
			break
		}
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		if mixesScripts(word) {
			i.add(Script, where, word, "a word has letters of several scripts, which look like others")
			return
		}
		if hasForms(word) {
			i.add(Script, where, word, "a word is written in letters of another form, which a model reads as plain ones")
			return
		}
	}
}

// mixesScripts reports whether a word has Latin letters, and letters of a script that look like
// them. One Greek letter alone, as in µs or Δx, does not count.
func mixesScripts(word string) bool {
	latin, greek, other := 0, 0, 0
	for _, r := range word {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin++
		case unicode.Is(unicode.Greek, r):
			greek++
		case unicode.In(r, unicode.Cyrillic, unicode.Armenian, unicode.Cherokee, unicode.Lisu):
			other++
		}
	}
	return latin > 0 && (other > 0 || greek > 0 && latin+greek > 3)
}

// minForms is how many letters of another form in a word are no symbol of mathematics.
const minForms = 3

// hasForms reports whether a word has letters of another form: mathematical, enclosed, or wide ones.
func hasForms(word string) bool {
	forms := 0
	for _, r := range word {
		if r >= 0x1d400 && r <= 0x1d7ff || r >= 0xff21 && r <= 0xff5a {
			forms++
		}
	}
	return forms >= minForms
}

// twins are letters of other scripts that look like Latin ones, each before its twin.
const twins = "аaвbеeкkмmнhоoрpсcтtуyхxіiјjѕsһhԁdԛqԝwαaεeιiκkνvοoρpτtυuχx"

// plainLetters has the twin of each of these letters.
var plainLetters = pairs(twins)

func pairs(letters string) map[rune]rune {
	table, runes := map[rune]rune{}, []rune(letters)
	for i := 0; i+1 < len(runes); i += 2 {
		table[runes[i]] = runes[i+1]
	}
	return table
}

// fold returns a text as a model may read it: in plain small letters, without characters that are not
// seen, and with one space between words.
func fold(text string) string {
	text = strings.ToLower(norm.NFKC.String(text))
	var b strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = true
			continue
		case isSuspect(r):
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		if r > unicode.MaxASCII {
			if twin, found := plainLetters[r]; found {
				r = twin
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}
