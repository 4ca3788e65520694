// Package fields reads the fields of an object that a person or a file describes, and returns the
// first that is wrong, by its name. What the fields mean, the object's own package knows.
package fields

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// MaxText is the greatest length of a text of a list, in characters.
const MaxText = 255

// Reader reads fields and keeps the first error.
type Reader struct {
	Values  jsonvalue.Object
	Err     error
	MaxText int // of the texts of lists, in place of the constant; 0 for that
}

// Note keeps an error, unless it is nil or there was one before.
func (r *Reader) Note(err error) {
	if r.Err == nil {
		r.Err = err
	}
}

// Text returns a text of 1 to most characters, or the other one if it is empty.
func (r *Reader) Text(name, otherwise string, most int) string {
	s := strings.TrimSpace(r.Values.Text(name))
	if s == "" {
		s = otherwise
	}
	if !IsText(s, most) {
		r.Note(Invalid(name, " must have 1 to %d characters, without control characters", most))
	}
	return s
}

// Texts returns a list of at most so many texts, of which no two are equal.
func (r *Reader) Texts(name string, most int) (all []string) {
	return r.LongTexts(name, most, cmp.Or(r.MaxText, MaxText))
}

// LongTexts is Texts for texts of at most so many characters.
func (r *Reader) LongTexts(name string, most, longest int) (all []string) {
	list := r.Values.List(name)
	if len(list) > most {
		r.Note(Invalid(name, " must have at most %d entries", most))
		return nil
	}
	known := make(map[string]bool, len(list))
	for i, v := range list {
		s, _ := v.(jsonvalue.Text)
		if !IsText(string(s), longest) {
			r.Note(Invalid(Item(name, i), " must have 1 to %d characters, without control characters", longest))
		}
		if known[string(s)] {
			r.Note(Invalid(Item(name, i), " is there twice"))
		}
		known[string(s)], all = true, append(all, string(s))
	}
	return all
}

// Word returns one of the words of a field; otherwise is that of an empty field.
func Word[T ~string](r *Reader, name string, otherwise T, words ...T) T {
	word := cmp.Or(T(r.Values.Text(name)), otherwise)
	if !slices.Contains(words, word) {
		last := len(words) - 1
		first := jsonvalue.Object{"": jsonvalue.Texts(words[:last])}.Texts("")
		r.Note(Invalid(name, " must be %s or %s", strings.Join(first, ", "), words[last]))
	}
	return word
}

// Networks returns a list of at most so many networks.
func (r *Reader) Networks(name string, most int) (all []netip.Prefix) {
	for i, s := range r.Texts(name, most) {
		n, err := netip.ParsePrefix(s)
		if err != nil {
			r.Note(Invalid(Item(name, i), " must be a network, for example 10.0.0.0/8"))
		}
		all = append(all, n.Masked())
	}
	return all
}

// Parsed returns a list of 1, if it is required, to most texts as parse returns them.
func Parsed[T any](r *Reader, name string, required bool, most int, parse func(string) (T, error)) (all []T) {
	texts := r.Texts(name, most)
	if required && len(texts) == 0 {
		r.Note(Invalid(name, " must have 1 to %d entries", most))
	}
	for i, s := range texts {
		v, err := parse(s)
		if err != nil {
			r.Note(Invalid(Item(name, i), " is wrong: %s", fault.PublicMessage(err)))
		}
		all = append(all, v)
	}
	return all
}

// IsText reports whether s is text without control characters, of 1 to most characters.
func IsText(s string, most int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most && !strings.ContainsFunc(s, unicode.IsControl)
}

// Item returns the name of an item of a field.
func Item(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// Invalid returns the error of a field. The message is the name of the field, and a format.
func Invalid(field, format string, args ...any) error {
	return fault.In(field, fault.Newf(fault.Invalid, field+format, args...))
}

// SetTexts sets a field to texts, unless the list is empty.
func SetTexts[T ~string](o jsonvalue.Object, name string, texts []T) {
	if len(texts) > 0 {
		o[name] = jsonvalue.Texts(texts)
	}
}

// NetworkTexts returns networks as Networks reads them.
func NetworkTexts(networks []netip.Prefix) []string {
	return slices.Collect(func(yield func(string) bool) {
		for _, n := range networks {
			if !yield(n.String()) {
				return
			}
		}
	})
}

// NameForm is the pattern of the names of objects.
const NameForm = "^[a-z0-9-]{1,40}$"

var nameForm = regexp.MustCompile(NameForm)

// CheckName returns fault.Invalid, about the field name, for a text that is no name of an object:
// 1 to 40 lower-case letters, digits and hyphens.
func CheckName(s string) error { return fault.In("name", CheckNameOf("name", s)) }

// CheckNameOf is CheckName for a name that is no field: what is how the message calls it.
func CheckNameOf(what, s string) error {
	if !nameForm.MatchString(s) {
		return fault.Newf(fault.Invalid, what+" must have 1 to 40 lower-case letters, digits and hyphens, not %.60q", s)
	}
	return nil
}

// EditDistance returns the number of characters to add, remove or replace.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// Nearest returns which of some texts is most like a text: at most a few characters differ, or the case of
// letters. Otherwise it is empty.
func Nearest(text string, all []string) (nearest string) {
	least := min(len(text)/4, 3) + 1 //nolint:mnd // a quarter of it, and at most three
	for _, one := range slices.Sorted(slices.Values(all)) {
		if d := len(one) - len(text); d >= least || -d >= least {
			continue
		}
		if d := EditDistance(strings.ToLower(text), strings.ToLower(one)); d < least {
			nearest, least = one, d
		}
	}
	return nearest
}

// Clip shortens a text for a message to a number of bytes.
func Clip(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
