// Package kinddocs writes the parts of openapi.yaml that belong to kinds of objects which operators
// manage, from their descriptions: the paths of their list and of each by its name, and the schemas.
package kinddocs

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"unicode"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// All returns the kinds that are described, in the order of their paths.
func All() []*kinds.Kind {
	return []*kinds.Kind{&access.RuleKind, &company.Kind, &service.Kind, &view.Kind, &view.CollectionKind, &mirror.Kind, &oauth.ClientKind, &oauth.ResourceKind, &tools.SourceKind}
}

//go:embed kinds.yaml
var parts string

// templates are those of kinds.yaml.
var templates = template.Must(template.New("").Parse(parts))

// Complete returns openapi.yaml with the parts of kinds as their descriptions have them. Each part is
// between two comments; the paths of a kind that the document does not have yet come after all others.
func Complete(document []byte, all []*kinds.Kind) ([]byte, error) {
	d := sections{text: string(document)}
	if err := d.addPaths(all); err != nil {
		return nil, err
	}
	named := newSchemas(all)
	for _, name := range []string{"state", "schemas"} {
		var b strings.Builder
		if err := templates.ExecuteTemplate(&b, name, named); err != nil {
			return nil, fmt.Errorf("%s of kinds: %w", name, err)
		}
		if err := d.replace(name+" of kinds", b.String()); err != nil {
			return nil, err
		}
	}
	return []byte(d.text), d.checkStale()
}

// sections is a document with parts between comments.
type sections struct {
	text string
	done []string // the names of the parts that were replaced
}

const (
	begins = "# begin: generated "
	ends   = "# end: generated "
)

// replace puts a text between the comments of a part.
func (d *sections) replace(name, text string) error {
	before, rest, found := strings.Cut(d.text, begins+name+"\n")
	_, after, ended := strings.Cut(rest, ends+name+"\n")
	if !found || !ended {
		return fmt.Errorf("openapi.yaml has no two comments %q and %q", begins+name, ends+name)
	}
	line := before[strings.LastIndexByte(before, '\n')+1:] // its indentation
	d.text = before + begins + name + "\n" + text + line + ends + name + "\n" + after
	d.done = append(d.done, name)
	return nil
}

// addPaths replaces the paths of each kind, or adds them.
func (d *sections) addPaths(all []*kinds.Kind) error {
	for _, k := range all {
		name := "paths of " + k.Path()
		if !strings.Contains(d.text, begins+name+"\n") {
			const next = "\ncomponents:\n"
			d.text = strings.Replace(d.text, next, "\n  "+begins+name+"\n  "+ends+name+next, 1)
		}
		var b strings.Builder
		if err := templates.ExecuteTemplate(&b, "paths", kind{k}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := d.replace(name, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// checkStale returns an error for a part that no kind has any more.
func (d *sections) checkStale() error {
	for line := range strings.Lines(d.text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), begins); ok {
			found := false
			for _, one := range d.done {
				found = found || one == name
			}
			if !found {
				return fmt.Errorf("openapi.yaml has the generated %s, which is of no kind: remove it", name)
			}
		}
	}
	return nil
}

// kind is a kind with its names in the document.
type kind struct{ *kinds.Kind }

// Title returns the name of its schema without what is before it, for example "AccessRule".
func (k kind) Title() string { return upper(k.Name) }

// ID returns the id of an operation. Those of older kinds have no "admin" before them.
func (k kind) ID(verb string) string {
	name := k.Title()
	if verb == "list" {
		name = upper(k.List)
	}
	switch k.Name {
	case "accessRule", "provider", "serviceAccount":
		return verb + name
	}
	return "admin" + upper(verb) + name
}

// One returns its name in sentences, for example "access rule".
func (k kind) One() string { return words(k.Name) }

// Many returns the plural of One.
func (k kind) Many() string { return words(k.List) }

// A returns One with its article.
func (k kind) A() string {
	if strings.ContainsRune("aeio", rune(k.Name[0])) {
		return "an " + k.One()
	}
	return "a " + k.One()
}

// The returns what distinguishes it from others after a name in sentences.
func (k kind) The(name string) string { return strings.TrimSpace(name + " " + k.About) }

// Describe returns the description of an operation: who may do it, and what is more to say.
func (k kind) Describe(scope, more string) string {
	who := "By a session at FULL_TRUST of a person with the grant operate, or a token with `admin:" + scope + "`. "
	return quoted(strings.TrimSpace(who + more))
}

// Limited returns PutDoc with how many objects there may be.
func (k kind) Limited() string {
	if k.Most == 0 {
		return k.PutDoc
	}
	return strings.TrimSpace(fmt.Sprintf("%s There are at most %s %s.", k.PutDoc, thousands(k.Most), k.Many()))
}

// Purges returns the description of the parameter purge.
func (k kind) Purges() string { return quoted(k.Purge) }

// thousands returns a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// upper returns a name with a first letter in upper case.
func upper(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// words returns a name such as accessRule as words.
func words(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
