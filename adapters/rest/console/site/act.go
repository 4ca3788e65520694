package site

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Act is what a form does when it is sent.
type Act struct {
	// Level is the least trust level of the session; below it, a step-up is offered. The use case
	// that Do calls may require more.
	Level auth.TrustLevel
	// Check returns what is wrong with a form that a step-up would not mend. It is called first, so
	// that no one enters a code for a form that is refused afterwards. It is optional.
	Check Handler
	// Title says what the act does, as on its button: "Revoke this device".
	Title string
	// Do acts and redirects to a page. Of its errors, an invalid form is shown again with the
	// problems, and one for too little trust leads to a step-up.
	Do Handler
	// Show shows the form as it was filled in. If it is nil, there is nothing to mend: a page with the
	// title and a button is shown, and a conflict has the status 409.
	Show func(v *Visit, problems Problems) error
	// Keep makes Show show the form for every error, so that no text is lost.
	Keep bool
}

// Post adds the route of a form that is sent. Its page is as many segments above the path as up
// says.
func (s *Site) Post(r fiber.Router, path string, up int, a Act) { s.PostTo(r, path, up, s.do(a)) }

// PostTo adds the route of a form that a handler gets. Who opens its address, for example again
// from the history, is led to its page.
func (s *Site) PostTo(r fiber.Router, path string, up int, h fiber.Handler) {
	r.Post(path, h)
	if up == 0 { // the page has a route of its own
		return
	}
	r.Get(path, s.Open(func(v *Visit) error {
		segments := strings.Split(strings.Clone(v.Path()), "/")
		return v.Redirect(strings.Join(segments[:len(segments)-up], "/"))
	}))
}

// do returns the handler of a form that is sent.
func (s *Site) do(a Act) fiber.Handler {
	return s.Open(func(v *Visit) error {
		if !v.SignedIn() {
			return v.Redirect(SignInAddress(v.backAddress()) + "&" + endedField + "=1")
		}
		if v.resumed = v.Form.Has(resumeField); v.resumed { // after a step-up: ready to send
			return s.show(v, a, nil)
		}
		var err error
		if a.Check != nil && v.Session.TrustLevel.Admits(auth.Unverified) {
			err = a.Check(v)
		}
		if err == nil {
			err = s.requireLevel(v, a.Level)
		}
		if err == nil {
			if a.Keep {
				v.again = a.Show
			}
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
		if a.Show == nil && f.Kind == fault.Conflict {
			v.Status(http.StatusConflict)
		}
		return s.show(v, a, ProblemsOf(f))
	}
	return err
}

func (s *Site) show(v *Visit, a Act, problems Problems) error {
	if a.Show != nil {
		return a.Show(v, problems)
	}
	back := v.Next()
	if back == Home {
		back = v.backAddress()
	}
	return v.Render(confirmationPage, Head{Title: a.Title, Problems: problems}, confirmationView{
		a.Title, v.address(), back, v.Carried(),
	})
}

// endedField is the field of the sign-in page that says that a form came after the end of the
// session.
const endedField = "ended"

// SessionEnded reports whether the visitor is sent to the sign-in because a form came after the end
// of the session.
func (v *Visit) SessionEnded() bool { return v.Query(endedField) != "" }

// backAddress returns the page from which a form was sent, if the browser says so.
func (v *Visit) backAddress() string {
	u, err := url.Parse(strings.Clone(v.Get(fiber.HeaderReferer)))
	if err != nil || !isLocal(u.RequestURI()) {
		return Home
	}
	return u.RequestURI()
}

// The fields that a step-up adds to those of the act that it interrupts.
const (
	stepUpPrefix = "step-up."
	resumeField  = stepUpPrefix + "act" // the path of the act
)

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

// InterruptedAct returns the path of the act that a step-up interrupts; otherwise empty.
func (v *Visit) InterruptedAct() string {
	if path := v.Form.Get(resumeField); isLocal(path) {
		return path
	}
	return ""
}

// Resume goes on after a step-up: with the form of the act that it interrupted, which the browser
// sends to it once more and which shows it, ready to send; or with a page.
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
	Back   string // the page to leave it for
	Fields []Field
}

// offerStepUp shows the page that offers a step-up for an act. Its forms carry the fields of the
// act.
func (s *Site) offerStepUp(v *Visit, title string) error {
	v.Form.Set(resumeField, v.address())
	v.Form.Set(nextField, v.backAddress())
	v.Status(http.StatusForbidden)
	return s.stepUp(v, title)
}
