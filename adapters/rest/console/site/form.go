package site

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
)

// maxFields is the greatest number of fields of a form.
const maxFields = 200

// readForm returns the fields of a form. The text of a file takes the place of the field with its
// name, if there is a file.
func readForm(c *fiber.Ctx) (url.Values, error) {
	media, parameters, err := mime.ParseMediaType(string(c.Request().Header.ContentType()))
	if err != nil && len(c.Body()) == 0 {
		return url.Values{}, nil
	}
	body := bytes.Clone(c.Request().Body())
	switch {
	case err == nil && media == fiber.MIMEApplicationForm:
		return parseURLEncoded(body)
	case err == nil && media == fiber.MIMEMultipartForm:
		return parseMultipart(body, parameters["boundary"])
	}
	return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "this is not a form")
}

func parseURLEncoded(body []byte) (url.Values, error) {
	if bytes.Count(body, []byte("&")) >= maxFields {
		return nil, errTooManyFields()
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errForm()
	}
	for _, values := range form {
		for i := range values {
			values[i] = newlines.Replace(values[i])
		}
	}
	return form, nil
}

func parseMultipart(body []byte, boundary string) (url.Values, error) {
	form := url.Values{}
	reader := multipart.NewReader(bytes.NewReader(body), boundary)
	for n := 0; ; n++ {
		part, err := reader.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && bytes.Contains(body, []byte("--"+boundary)):
			return form, nil
		case err != nil:
			return nil, errForm()
		case n == maxFields:
			return nil, errTooManyFields()
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, errForm()
		}
		switch name, value := part.FormName(), newlines.Replace(string(content)); {
		case name == "":
		case part.FileName() == "" && isFilePart(part):
			// A file field without a file.
		case isFilePart(part):
			form.Set(name, value)
		default:
			form.Add(name, value)
		}
	}
}

// isFilePart reports whether a part of a form is from a field for files. Browsers send such a part
// also if no file was chosen, with an empty file name.
func isFilePart(p *multipart.Part) bool {
	_, parameters, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	_, named := parameters["filename"]
	return err == nil && named
}

// newlines undoes what browsers do with the ends of lines in forms (HTML, form submission).
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func errForm() error { return fault.New(fault.Invalid, "the form cannot be read") }

func errTooManyFields() error { return fault.New(fault.Invalid, "the form has too many fields") }

// Input is a field of a form that a table describes.
type Input struct {
	Name, Label string
	// Kind is "select", "choices" or "area", or else the type of an input; "text" if it is empty.
	Kind     string
	Hint     string
	Options  []Option // of "select" and "choices"
	Required bool
	Part     string   // of the form, if it has parts
	Suggest  []string // values that exist; an "area" with them has another field of its name, for one more
}

// Option is a value that a field offers.
type Option = kinds.Option

// Options returns options whose texts are their values.
func Options[T ~string](values ...T) []Option { return kinds.Words(values...) }

// Form is a form that a table describes. The template "form" shows it, filled in.
type Form struct {
	Action string // the address that it is sent to
	Button string // what it does
	Inputs []Input
}

// FormView is a form as it is filled in.
type FormView struct {
	Form

	Fields []inputView
}

// Parts returns the fields by parts.
func (f FormView) Parts() (parts []formPart) {
	for _, in := range f.Fields {
		if n := len(parts); n == 0 || parts[n-1].Title != in.Part {
			parts = append(parts, formPart{Title: in.Part})
		}
		last := &parts[len(parts)-1]
		last.Fields, last.Wrong = append(last.Fields, in), last.Wrong || in.Mistake != ""
	}
	return parts
}

// formPart is a part of a form.
type formPart struct {
	Title  string
	Fields []inputView
	Wrong  bool // a field has a mistake
}

type inputView struct {
	fieldView
	Input

	Value   string
	Choices []choiceView
}

// Stored returns what the field has in words, line by line.
func (in inputView) Stored() (lines []string) {
	for _, c := range in.Choices {
		if c.Chosen {
			lines = append(lines, c.Text)
		}
	}
	if len(in.Options) == 0 && in.Value != "" {
		lines = strings.Split(in.Value, "\n")
	}
	return lines
}

type choiceView struct {
	Option

	Chosen bool
}

// Fill returns a form with what was sent to it, and its problems; if the request has another
// address, with what is stored.
func (v *Visit) Fill(f Form, stored url.Values, problems Problems) FormView {
	if v.Method() == fiber.MethodPost && v.Path() == f.Action {
		stored = v.Form
	} else {
		problems = nil
	}
	return FillForm(f, stored, problems)
}

// FillForm returns a form with values and problems.
func FillForm(f Form, values url.Values, problems Problems) FormView {
	view := FormView{Form: f}
	for _, in := range f.Inputs {
		var hint []string
		if in.Hint != "" {
			hint = []string{in.Name + "-hint"}
		}
		if in.Kind == "" {
			in.Kind = "text"
		}
		field := inputView{fieldView: newFieldView(problems, in.Name, hint...), Input: in, Value: values.Get(in.Name)}
		for _, o := range in.Options {
			field.Choices = append(field.Choices, choiceView{o, slices.Contains(values[in.Name], o.Value)})
		}
		view.Fields = append(view.Fields, field)
	}
	return view
}

// Among returns the problems for the summary of a page: those that no field of its forms has are
// about the whole form.
func (p Problems) Among(forms ...FormView) Problems {
	var fields []string
	for _, f := range forms {
		for _, in := range f.Fields {
			if in.Mistake != "" {
				fields = append(fields, in.ID)
			}
		}
	}
	return p.Only(fields...)
}

// Only returns the problems; those of other fields are about the whole form.
func (p Problems) Only(fields ...string) Problems {
	known := slices.Clone(p)
	for i := range known {
		if !slices.Contains(fields, known[i].Field) {
			known[i].Field = ""
		}
	}
	return known
}

// Ask is an act that the template "ask" shows behind a question, because it cannot be undone.
type Ask struct {
	Action, Button string
	Label          string // what the button does, also for those who do not see what is around it
	Question       string
	Fields         []Field
}

// newAsk returns an act with fields, given by their names and values in turn.
func newAsk(action, button, label, question string, fields ...string) Ask {
	a := Ask{Action: action, Button: button, Label: label, Question: question}
	for pair := range slices.Chunk(fields, 2) {
		a.Fields = append(a.Fields, Field{pair[0], pair[1]})
	}
	return a
}

// Secret is a text that the service shows once.
type Secret struct {
	Title, Value string
	Hint         string    // how it is used
	Until        time.Time // it is good once, until then; zero if it is good more often
	Back         Link
}

var secretPage = NewPage(templateFiles, "templates/secret.html")

// ShowOnce sends the page with a secret, as the answer to the form that made it.
func (v *Visit) ShowOnce(s Secret) error { return v.Render(secretPage, Head{Title: s.Title}, s) }

// Trimmed returns a field of the form without spaces around it.
func (v *Visit) Trimmed(field string) string { return strings.TrimSpace(v.Form.Get(field)) }
