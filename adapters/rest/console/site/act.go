package site

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Act is what a form does when it is sent.
type Act struct {
	// Level is the least trust level of the session; below it, a step-up is offered. The use case that
	// Do calls may require more.
	Level auth.TrustLevel
	// Title says what the act does, as on its button: "Revoke this device".
	Title string
	// Do acts and redirects to a page. Of its errors, an invalid form is shown again with the problems,
	// and one for too little trust leads to a step-up.
	Do Handler
	// Show shows the form as it was filled in. If it is nil, a page with the title and a button is
	// shown.
	Show func(v *Visit, problems Problems) error
}

// Do returns the handler of a form that is sent.
func (s *Site) Do(a Act) fiber.Handler {
	if a.Show == nil {
		a.Show = func(v *Visit, problems Problems) error { return s.showConfirmation(v, a, problems) }
	}
	return s.Open(func(v *Visit) error {
		if !v.SignedIn() {
			return v.Redirect(withNext(SignInPath, v.backAddress()))
		}
		if v.Form.Has(resumeField) { // after a step-up: ready to send
			return a.Show(v, nil)
		}
		err := trust.Require(v.Session.TrustLevel, a.Level)
		if err == nil {
			err = a.Do(v)
		}
		return s.handleActError(v, a, err)
	})
}

// handleActError shows why an act was refused: at its form, if the person can mend it there.
func (s *Site) handleActError(v *Visit, a Act, err error) error {
	f, ok := fault.As(err)
	switch {
	case err == nil:
		return nil
	case isRefusedForTrust(err) && v.Session.TrustLevel.Admits(auth.Unverified):
		return s.offerStepUp(v, a.Title)
	case ok && (f.Kind == fault.Invalid || f.Kind == fault.Conflict || f.Kind == fault.Stale):
		v.Status(http.StatusUnprocessableEntity)
		return a.Show(v, ProblemsOf(f))
	}
	return err
}

// backAddress returns the page from which a form was sent, if the browser says so.
func (v *Visit) backAddress() string {
	u, err := url.Parse(strings.Clone(v.Get(fiber.HeaderReferer)))
	if err != nil || !isLocal(u.RequestURI()) {
		return Home
	}
	return u.RequestURI()
}

// Problem is a mistake in a form.
type Problem struct {
	Field string // the name of its field; empty for the whole form
	Text  string
}

// Problems are the mistakes in a form.
type Problems []Problem

// Of returns the first problem of a field; empty for none.
func (p Problems) Of(field string) string {
	i := slices.IndexFunc(p, func(one Problem) bool { return one.Field == field })
	if i < 0 {
		return ""
	}
	return p[i].Text
}

// ProblemsOf returns the problems that an error describes.
func ProblemsOf(f *fault.Error) (problems Problems) {
	fields, _ := f.Details["fields"].(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		problems = append(problems, Problem{name, sentence(name + " " + fields[name])})
	}
	if len(problems) == 0 {
		problems = Problems{{Text: sentence(f.Message)}}
	}
	return problems
}

// Sentence returns the message of an error for people.
func Sentence(err error) string { return sentence(fault.PublicMessage(err)) }

// sentence returns a message of the core as a sentence.
func sentence(message string) string {
	if message == "" {
		return ""
	}
	message = strings.ToUpper(message[:1]) + message[1:]
	if strings.HasSuffix(message, ".") {
		return message
	}
	return message + "."
}

// The fields that a step-up adds to those of the act that it interrupts.
const (
	stepUpPrefix = "step-up."
	resumeField  = stepUpPrefix + "act" // the path of the act
)

// ActField is the field of the pages of a step-up with the path of the act that it interrupts.
const ActField = resumeField

// Field is a field of a form that a page carries along.
type Field struct{ Name, Value string }

// Carried returns the fields of the interrupted act, for the pages of a step-up.
func (v *Visit) Carried() (fields []Field) {
	for _, name := range slices.Sorted(maps.Keys(v.Form)) {
		if strings.HasPrefix(name, stepUpPrefix) || name == nextField {
			continue
		}
		for _, value := range v.Form[name] {
			fields = append(fields, Field{name, value})
		}
	}
	return fields
}

// InterruptedAct returns the path of the act that a step-up interrupts; empty for none.
func (v *Visit) InterruptedAct() string {
	if path := v.Form.Get(resumeField); isLocal(path) {
		return path
	}
	return ""
}

// Resume goes on after a step-up: with the form of the act that it interrupted, which the browser sends
// to it once more and which shows it, ready to send; or with a page.
func (v *Visit) Resume() error {
	if act := v.InterruptedAct(); act != "" {
		return v.Ctx.Redirect(act, http.StatusTemporaryRedirect)
	}
	return v.Redirect(v.Next())
}

// confirmationView is the page of an act that has no page of its own.
type confirmationView struct {
	Title  string
	Path   string
	Fields []Field
}

func (s *Site) showConfirmation(v *Visit, a Act, problems Problems) error {
	return v.Render(confirmationPage, Head{Title: a.Title, Problems: problems}, confirmationView{a.Title, v.address(), v.Carried()})
}

// offerStepUp shows the page that offers a step-up for an act. Its forms carry the fields of the act.
func (s *Site) offerStepUp(v *Visit, title string) error {
	v.Form.Set(resumeField, v.address())
	v.Status(http.StatusForbidden)
	return s.stepUp(v, title)
}
