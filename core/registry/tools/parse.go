package tools

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Place says of which part of a document a list is: of a remote, or of a package.
type Place struct {
	Remote  string // URL as in the document; empty for a package
	Package int    // index in the document, from 0; used only without Remote
}

// maxPackage is the greatest index of a package that a text may name; documents have fewer.
const maxPackage = 1_000_000

// Parse reads a list from JSON: an object with the members tools, prompts and resourceTemplates, as
// in the answers of a server, and instructions. Other members, also of tools, are ignored, and one
// that is null is absent. It returns fault.Invalid for JSON that RFC 8785 cannot order (a member that
// is there twice, half a surrogate pair, a number out of range), for a member of a wrong type, two
// tools of one name, a name that is empty, too long or has control characters, and a list that is
// too large.
func Parse(text []byte) (List, error) {
	object, err := parseObject(text)
	if err != nil {
		return List{}, err
	}
	return newList(object)
}

// ParseRecorded reads a list as Parse does, with its place: the member remote, or package. It returns
// fault.Invalid also without a place, or with two.
func ParseRecorded(text []byte) (Place, List, error) {
	object, err := parseObject(text)
	if err != nil {
		return Place{}, List{}, err
	}
	place, err := newPlace(object)
	if err != nil {
		return Place{}, List{}, err
	}
	list, err := newList(object)
	return place, list, err
}

// parseObject reads an object of which canonical JSON can be made.
func parseObject(text []byte) (jsonvalue.Object, error) {
	if len(text) > MaxBody {
		return nil, fault.Newf(fault.Invalid, "a tool list has at most %d bytes of JSON", MaxBody)
	}
	ordered, err := jcs.Transform(text)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "this is no JSON that RFC 8785 orders: %s", quote(strings.TrimSpace(err.Error())))
	}
	object, err := jsonvalue.ParseObject(ordered)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "a tool list is a JSON object", err)
	}
	return object, nil
}

func newPlace(o jsonvalue.Object) (Place, error) {
	remote, hasRemote := o["remote"]
	index, hasPackage := o["package"]
	if hasRemote == hasPackage {
		return Place{}, fault.New(fault.Invalid, "name either remote, a URL of the document, or package, the index of one from 0")
	}
	if hasRemote {
		url, ok := remote.(jsonvalue.Text)
		if !ok || url == "" {
			return Place{}, fault.New(fault.Invalid, "remote must be a URL of the document")
		}
		return Place{Remote: string(url)}, nil
	}
	digits, ok := index.(jsonvalue.Exact)
	place := Place{}
	if ok {
		_, err := fmt.Sscanf(string(digits), "%d", &place.Package)
		ok = err == nil && fmt.Sprint(place.Package) == string(digits) && place.Package >= 0 && place.Package <= maxPackage
	}
	if !ok {
		return Place{}, fault.New(fault.Invalid, "package must be the index of a package of the document, from 0")
	}
	return place, nil
}

// newList reads a list from an object.
func newList(o jsonvalue.Object) (l List, err error) {
	r := reader{}
	items := r.objects(o, memberTools, true)
	l.Tools = make([]Tool, 0, len(items))
	for i, item := range items {
		l.Tools = append(l.Tools, r.tool(fmt.Sprintf("%s[%d]", memberTools, i), item))
	}
	l.Prompts, l.ResourceTemplates = r.named(o, memberPrompts), r.named(o, memberTemplates)
	l.Instructions = string(r.text("", o, memberInstructions))
	if r.err != nil {
		return List{}, r.err
	}
	if err := l.complete(); err != nil {
		return List{}, err
	}
	return l, nil
}

// reader reads members, and keeps the first error.
type reader struct{ err error }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fault.Newf(fault.Invalid, format, args...)
	}
}

// objects reads a list of objects, at most MaxTools.
func (r *reader) objects(o jsonvalue.Object, member string, required bool) []jsonvalue.Object {
	value := o[member]
	list, ok := value.(jsonvalue.List)
	switch {
	case value == nil && !required:
		return nil
	case !ok:
		r.fail("%s must be a list", member)
	case len(list) > MaxTools:
		r.fail("%s has %d items: at most %d", member, len(list), MaxTools)
		return nil
	}
	objects := make([]jsonvalue.Object, len(list))
	for i, item := range list {
		if objects[i], ok = item.(jsonvalue.Object); !ok {
			r.fail("%s[%d] must be an object", member, i)
		}
	}
	return objects
}

// text reads a member that is a text or absent.
func (r *reader) text(path string, o jsonvalue.Object, member string) jsonvalue.Text {
	text, ok := o[member].(jsonvalue.Text)
	if !ok && o[member] != nil {
		r.fail("%s must be text", join(path, member))
	}
	return text
}

// name reads the required name of an object.
func (r *reader) name(path string, o jsonvalue.Object) string {
	name := string(r.text(path, o, fieldName))
	switch {
	case name == "":
		r.fail("%s is missing", join(path, fieldName))
	case utf8.RuneCountInString(name) > MaxName:
		r.fail("%s has more than %d characters", join(path, fieldName), MaxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		r.fail("%s has control characters: %s", join(path, fieldName), quote(name))
	}
	return name
}

// named reads prompts or resource templates.
func (r *reader) named(o jsonvalue.Object, member string) (all []Named) {
	for i, item := range r.objects(o, member, false) {
		path := fmt.Sprintf("%s[%d]", member, i)
		all = append(all, Named{r.name(path, item), string(r.text(path, item, fieldDescription))})
	}
	return all
}

// tool reads a tool.
func (r *reader) tool(path string, o jsonvalue.Object) Tool {
	t := Tool{Name: r.name(path, o), fields: jsonvalue.Object{}}
	for _, member := range []string{fieldName, fieldTitle, fieldDescription} {
		if text := r.text(path, o, member); o[member] != nil {
			t.fields[member] = text
		}
	}
	for _, member := range []string{fieldInput, fieldOutput, fieldAnnotations} {
		inner, ok := o[member].(jsonvalue.Object)
		switch {
		case !ok && o[member] != nil:
			r.fail("%s must be an object", join(path, member))
		case member == fieldAnnotations:
			r.annotations(join(path, member), inner, t.fields)
		case ok:
			t.fields[member] = inner
		}
	}
	if r.err != nil {
		return t
	}
	text, err := canonical(t.fields)
	if err != nil && r.err == nil {
		r.err = err
	}
	if len(text) > MaxTool {
		r.fail("%s, %s, has %d bytes of canonical JSON: at most %d", path, quote(t.Name), len(text), MaxTool)
	}
	t.Mark = markOf(text)
	return t
}

// annotations adds the hints of a tool to its fields. Annotations without any are absent.
func (r *reader) annotations(path string, o, fields jsonvalue.Object) {
	hints := jsonvalue.Object{}
	for _, h := range hintsOf() {
		value := o[string(h)]
		flag, ok := value.(jsonvalue.Flag)
		switch {
		case ok:
			hints[string(h)] = flag
		case value != nil:
			r.fail("%s must be true or false", join(path, string(h)))
		}
	}
	if len(hints) > 0 {
		fields[fieldAnnotations] = hints
	}
}

func join(path, member string) string { return strings.TrimPrefix(path+"."+member, ".") }

// maxQuoted is the greatest number of characters of a text in a sentence.
const maxQuoted = 80

// quote returns a text of others for a sentence: in quotes, cut, and with unseen characters written out.
func quote(s string) string {
	if runes := []rune(s); len(runes) > maxQuoted {
		s = string(slices.Concat(runes[:maxQuoted], []rune("…")))
	}
	return `"` + WriteOut(s) + `"`
}
