package operating

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/management"
)

// This file has the forms and the pages of the objects of any kind, by the description of its fields.

// noSecretInput removes the stored secret.
const noSecretInput = "noSecret"

// inputsOf returns the inputs of fields, those with a label.
func inputsOf(fields []kinds.Field) (inputs []site.Input) {
	for i := range fields {
		f := &fields[i]
		inputs = append(inputs, inputsOf(f.Inner)...)
		if f.Label == "" {
			continue
		}
		in := site.Input{
			Name: f.Name, Label: f.Label, Kind: f.Control, Hint: f.Hint, Options: f.Options, Required: f.Required,
		}
		switch {
		case f.Control == kinds.ControlEnd:
			in.Kind = ""
		case f.Control == kinds.ControlGrants, f.Control == "" && f.Shape == kinds.Texts:
			in.Kind = "area"
		}
		inputs = append(inputs, in)
	}
	return inputs
}

// formValues returns values of fields as their form has them.
func formValues(fields []kinds.Field, values audit.Details) url.Values {
	form := url.Values{}
	for i := range fields {
		f := &fields[i]
		switch v := values[f.Name].(type) {
		case audit.Text:
			text := string(v)
			if f.Control == kinds.ControlEnd {
				text = strings.TrimSuffix(text, dayBegins)
			}
			form.Set(f.Name, text)
		case audit.Number:
			form.Set(f.Name, strconv.FormatFloat(float64(v), 'f', -1, 64))
		case audit.Flag:
			if v {
				form.Set(f.Name, "true")
			}
		case audit.List:
			form[f.Name] = formList(f, v)
		case audit.Details:
			if f.Shape == kinds.Document {
				text, _ := json.MarshalIndent(v, "", "  ") // no error: it was read from JSON
				form.Set(f.Name, string(text))
			}
			for name, inner := range formValues(f.Inner, v) {
				form[name] = inner
			}
		}
	}
	return form
}

func formList(f *kinds.Field, list audit.List) []string {
	texts := make([]string, len(list))
	for i, one := range list {
		switch one := one.(type) {
		case audit.Text:
			texts[i] = string(one)
		case audit.Details:
			texts[i] = company.GroupGrant{Group: one.Text("group"), Action: one.Text("action"), Resource: one.Text("resource")}.String()
		}
	}
	switch f.Control {
	case "choices":
		return texts
	case "text":
		return []string{strings.Join(texts, " ")}
	}
	return []string{strings.Join(texts, "\n")}
}

// newValues returns the values that the form of a new object has: the flags and choices of fields by default.
func newValues(fields []kinds.Field) url.Values {
	form := formValues(fields, kinds.Complete(fields, nil))
	for i := range fields {
		if f := &fields[i]; f.Control == "select" && f.Default != "" {
			form.Set(f.Name, f.Default)
		}
	}
	return form
}

// dayBegins is what a time at the beginning of a day has after the day.
const dayBegins = "T00:00:00Z"

// readForm returns the values of fields that a form describes.
func readForm(v *site.Visit, fields []kinds.Field) (values audit.Details, err error) {
	values = audit.Details{}
	for i := 0; i < len(fields) && err == nil; i++ {
		f := &fields[i]
		text := v.Trimmed(f.Name)
		switch {
		case f.Shape == kinds.Object:
			values[f.Name], err = readForm(v, f.Inner)
		case f.Control == kinds.ControlGrants:
			values[f.Name], err = company.ReadGroupGrants(formLines(v, f.Name))
		case f.Shape == kinds.TextMap:
			values[f.Name] = readMap(formLines(v, f.Name))
		case f.Shape == kinds.Texts:
			values[f.Name] = audit.Texts(readList(v, f))
		case f.Shape == kinds.Flag:
			values[f.Name] = audit.Flag(slices.Contains(v.Form[f.Name], "true"))
		case f.Shape == kinds.Number && text == "" && !f.Required:
		case f.Shape == kinds.Number:
			n, err := strconv.Atoi(text)
			if err != nil {
				n = -1 // no number of any field
			}
			values[f.Name] = audit.Number(n)
		case f.Secret && text == "" && v.Form.Get(noSecretInput) != "":
			values[f.Name] = audit.Text("")
		case f.Control == kinds.ControlEnd && isDay(text):
			values[f.Name] = audit.Text(text + dayBegins)
		default:
			values.Set(f.Name, text)
		}
	}
	return values, err
}

// readMap returns the texts of lines, each after its name and a colon; nil without any.
func readMap(lines []string) audit.Value {
	texts := audit.Details{}
	for _, line := range lines {
		name, text, _ := strings.Cut(line, ":")
		texts[strings.TrimSpace(name)] = audit.Text(strings.TrimSpace(text))
	}
	if len(texts) == 0 {
		return nil
	}
	return texts
}

func isDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

func readList(v *site.Visit, f *kinds.Field) []string {
	switch f.Control {
	case "choices":
		return v.Form[f.Name]
	case "text":
		return strings.Fields(v.Form.Get(f.Name))
	}
	return formLines(v, f.Name)
}

// formLines returns the lines of a field of a form, without empty ones and spaces around them.
func formLines(v *site.Visit, field string) (lines []string) {
	for line := range strings.Lines(v.Form.Get(field)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// formChange returns the change that a form describes, of the object with a name, which exists or not.
func formChange(v *site.Visit, k *kinds.Kind, name string, exists bool) (management.Change, error) {
	given, err := readForm(v, k.Fields[1:])
	given[k.Fields[0].Name] = audit.Text(name)
	if exists {
		return management.Change{Fields: given, Check: management.Check(byHand(ownerOf))}, err
	}
	return management.Change{Fields: given, Check: func(current *management.Object) error {
		if current == nil {
			return nil
		}
		return fault.Newf(fault.Conflict, "another %s has the %[3]s %[2]q already; choose another %[3]s", k.Noun(), name, strings.ToLower(k.Key()))
	}}, err
}

func ownerOf(o *management.Object) string { return o.Owner }

var (
	kindPage   = site.NewPage(templates, "templates/kind.html")
	objectPage = site.NewPage(templates, "templates/object.html")
)

// kindPages are the pages of the objects of a kind: their list with a form that adds one, and one of each
// with a form that changes it.
type kindPages struct {
	management.Objects

	list, page     shower // the pages; what the description of the kind says without them
	path, one      string // of the list, and of an object without its name, if that is not below the list
	noun           string // in the sentences of forms, if it is not that of the kind
	added, removed string // the notices
	leads          bool   // to the page of what was added

	documents authorization.Sightings // what is shown below clients

	// doubts returns in sentences what of an object may be a mistake; nil for none.
	doubts func(ctx context.Context, o *management.Object) ([]string, error)

	// put stores what a form describes, under a name; without it the kind does.
	put func(ctx context.Context, v *site.Visit, name string, exists bool) error
}

func (p *Pages) mountKind(r fiber.Router, k kindPages) {
	k.noun = cmp.Or(k.noun, k.Kind().Noun())
	if k.list == nil {
		k.list, k.page, k.path = k.showList, k.showPage, Path+"/"+k.Kind().Path()
		k.added, k.removed = "added", "removed"
	}
	p.open(r, k.path, k.list)
	p.site.Post(r, k.path, 0, p.act("Add this "+k.noun, func(ctx context.Context, v *site.Visit) error {
		name := v.Trimmed(k.Kind().Fields[0].Name)
		if k.leads {
			return k.store(ctx, v, name, false, k.path+"/"+name, k.added)
		}
		return k.store(ctx, v, name, false, k.path, k.added+"#row-"+name)
	}, k.list))
	one := cmp.Or(k.one, k.path) + "/:name"
	p.open(r, one, k.page)
	p.site.Post(r, one, 0, p.act("Save this "+k.noun, func(ctx context.Context, v *site.Visit) error {
		return k.store(ctx, v, key[string](v, "name"), true, v.Path(), "saved")
	}, k.page))
	up := 1 + strings.Count(one[len(k.path):], "/") // to the list
	p.site.Post(r, one+"/remove", up, p.act("Remove this "+k.noun, func(ctx context.Context, v *site.Visit) error {
		return v.Done(k.removeObject(ctx, v), k.path, k.removed)
	}, nil))
}

// store stores the object that a form describes, and leads to a page with a notice, or shows the secret
// that was made.
func (k *kindPages) store( //nolint:revive // what a form and its page say
	ctx context.Context, v *site.Visit, name string, exists bool, page, notice string,
) error {
	if k.put != nil {
		return v.Done(k.put(ctx, v, name, exists), page, notice)
	}
	stored, err := putObject(ctx, v, k, name, exists)
	secret := stored.State.Text(k.Kind().Shown)
	if err != nil || secret == "" {
		return v.Done(err, page, notice)
	}
	of := "the " + k.noun + " " + name
	return v.ShowOnce(site.Secret{
		Title: "The secret of " + of, Value: secret, Hint: "Only its hash is stored.",
		Back: site.Link{Text: strings.ToUpper(of[:1]) + of[1:], Path: k.path + "/" + url.PathEscape(name)},
	})
}

// putObject stores the object that a form describes, and returns it.
func putObject(
	ctx context.Context, v *site.Visit, objects management.Objects, name string, exists bool,
) (stored management.Object, err error) {
	c, err := formChange(v, objects.Kind(), name, exists)
	if err == nil {
		stored, _, err = objects.Put(ctx, c)
	}
	return stored, err
}

// removeObject removes the object in the path. Those of some kinds go with all that came of them.
func (k *kindPages) removeObject(ctx context.Context, v *site.Visit) error {
	return k.Remove(ctx, key[string](v, "name"), management.Change{
		Force: v.Form.Get("purge") == "true", Check: management.Check(byHand(ownerOf)),
	})
}

// form returns the form that changes an object, or without one adds it.
func (k *kindPages) form(
	v *site.Visit, problems site.Problems, action string, stored *management.Object, first ...site.Input,
) site.FormView {
	button, values := "Add", newValues(k.Kind().Fields)
	if stored != nil {
		button, values = "Save", formValues(k.Kind().Fields, stored.Fields)
	}
	return v.Fill(site.Form{
		Action: action, Button: button + " this " + k.noun, Inputs: append(first, inputsOf(k.Kind().Fields[1:])...),
	}, values, problems)
}

// keyInput returns the input of the name of a new object.
func (k *kindPages) keyInput() site.Input {
	f := &k.Kind().Fields[0]
	return site.Input{Name: f.Name, Label: k.Kind().Key(), Hint: f.Hint, Required: true}
}

// kindView is the page with the objects of a kind.
type kindView struct {
	Noun    string
	Key     string // how names are called
	Objects []objectView
	Next    string // the address of the next page; empty without one
	Add     site.FormView

	Documents []oauth.Sighting // of clients that are registered nowhere
}

// objectView is an object in words.
type objectView struct {
	management.Object

	Noun, Title, List, Path string
	Change                  site.FormView
	Facts                   []fact
	Doubts                  []string
}

// fact is something that is known of an object and that no one writes.
type fact struct{ Label, Text string }

// factsOf returns the facts with a label that are known of an object.
func factsOf(k *kinds.Kind, o *management.Object) (all []fact) {
	for i := range k.Facts {
		if f := &k.Facts[i]; f.Label != "" {
			all = append(all, fact{f.Label, o.State.Text(f.Name)})
		}
	}
	return all
}

// maxColumns is how many fields of objects a list shows, besides the name.
const maxColumns = 4

// Shown returns the fields that a list shows.
func (o objectView) Shown() site.FormView {
	return site.FormView{Fields: o.Change.Fields[:min(len(o.Change.Fields), maxColumns)]}
}

func (k *kindPages) showList(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := k.List(ctx, v.Text("after"), perPage+1)
	if err != nil {
		return err
	}
	view := kindView{Noun: k.noun, Key: k.Kind().Key(), Add: k.form(v, problems, k.path, nil, k.keyInput())}
	for i := range all[:min(len(all), perPage)] {
		view.Objects = append(view.Objects, k.view(v, nil, &all[i], ""))
	}
	if k.Kind() == &oauth.ClientKind && v.Text("after") == "" {
		if view.Documents, err = k.documents.List(ctx, perPage); err != nil {
			return err
		}
	}
	if len(all) > perPage {
		view.Next = k.path + "?" + url.Values{"after": {all[perPage-1].Key}}.Encode()
	}
	return v.Render(kindPage, newHead(v, k.Kind().Title(), problems, view.Add), view)
}

// view returns an object in words, with the form that sends its change to an address.
func (k *kindPages) view(v *site.Visit, problems site.Problems, o *management.Object, action string) objectView {
	return objectView{
		Object: *o, Noun: k.noun, Title: k.Kind().Title(), List: k.path, Path: k.path + "/" + url.PathEscape(o.Key),
		Change: k.form(v, problems, action, o), Facts: factsOf(k.Kind(), o),
	}
}

func (k *kindPages) showPage(ctx context.Context, v *site.Visit, problems site.Problems) error {
	one, err := k.Get(ctx, key[string](v, "name"))
	if err != nil {
		return err
	}
	setConflict(v, problems, one.Owner)
	action := k.path + "/" + url.PathEscape(one.Key)
	if one.Owner != "" {
		action = "" // the page shows what is stored, also after a change was refused
	}
	view := k.view(v, problems, &one, action)
	if k.doubts != nil {
		if view.Doubts, err = k.doubts(ctx, &one); err != nil {
			return err
		}
	}
	title := strings.ToUpper(k.noun[:1]) + k.noun[1:] + " " + one.Key
	return v.Render(objectPage, newHead(v, title, problems, view.Change), view)
}

// shower shows a page, with the problems of the form on it that was sent.
type shower func(ctx context.Context, v *site.Visit, problems site.Problems) error

// open adds the route of a page with forms.
func (p *Pages) open(r fiber.Router, path string, show shower) {
	r.Get(path, p.page(func(ctx context.Context, v *site.Visit) error { return show(ctx, v, nil) }))
}

// newHead returns the head of a page with forms.
func newHead(v *site.Visit, title string, problems site.Problems, forms ...site.FormView) site.Head {
	return site.Head{Title: title, Notice: notices[v.Text("done")], Problems: problems.Among(forms...)}
}

// setConflict gives a page the status of a conflict if it shows why a change was refused of what a file
// manages: there is no form on it to mend.
func setConflict(v *site.Visit, problems site.Problems, manager string) {
	if manager != "" && len(problems) > 0 {
		v.Status(fiber.StatusConflict)
	}
}

// key returns a parameter of the path as the key of an object; one that cannot be read is the key of
// nothing.
func key[T ~string](v *site.Visit, name string) T {
	text, _ := v.Param(name)
	return T(text)
}

// byHand returns the check of a change by a person: that the object exists, and no file manages it.
func byHand[T any](manager func(*T) string) registry.Check[T] {
	return func(current *T) error {
		if current == nil {
			return fault.New(fault.NotFound, "it was removed while you edited it")
		}
		return registry.CheckByHand(manager(current), "")
	}
}
