package operating

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/ports/management"
)

// This file has the forms of the objects of any kind, by the description of its fields.

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
		case f.Shape == kinds.Texts:
			values[f.Name] = audit.Texts(readList(v, f))
		case f.Shape == kinds.Flag:
			values[f.Name] = audit.Flag(slices.Contains(v.Form[f.Name], "true"))
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
	return management.Change{Fields: given, Check: management.Check(byHand(exists, ownerOf))}, err
}

func ownerOf(o *management.Object) string { return o.Owner }

// putObject stores the object that a form describes.
func putObject(ctx context.Context, v *site.Visit, objects management.Objects, name string, exists bool) error {
	c, err := formChange(v, objects.Kind(), name, exists)
	if err == nil {
		_, _, err = objects.Put(ctx, c)
	}
	return err
}

// removeObject removes the object in the path. Those of some kinds go with all that came of them.
func removeObject(ctx context.Context, v *site.Visit, objects management.Objects) error {
	return objects.Remove(ctx, key[string](v, "name"), management.Change{
		Force: v.Form.Get("purge") == "true", Check: management.Check(byHand(true, ownerOf)),
	})
}
