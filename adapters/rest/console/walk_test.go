package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestForms sends each form in every way: without a session, from another site, without the
// grant, with each mistake, well, and twice.
func TestForms(t *testing.T) {
	e, s := start(t)
	e.NewPerson(t, "ada@example.com", publish)
	w := &walk{
		nobody: newBrowser(t, s), stranger: newVerified(t, e, s, "eve@example.com"), by: map[string]*browser{},
	}
	for by, email := range map[string]string{operate: "olga@example.com", publish: "pia@example.com", review: "rey@example.com", edit: "edi@example.com"} {
		w.by[by] = newVerified(t, e, s, email, by)
	}
	w.by[""] = w.stranger
	for _, all := range [][]form{formsOfOperators(), formsOfAccess(oidcissuer.StartProvider(t)), formsOfPeople()} {
		for _, f := range all {
			w.send(f)
		}
	}
}

// walk has the people who send forms.
type walk struct {
	nobody, stranger *browser
	by               map[string]*browser // the grants
}

// send sends a form in every way.
func (w *walk) send(f form) {
	b := w.by[f.by]
	b.T.Helper()
	open := func() {
		b.Open(f.page, http.StatusOK)
		if f.link != "" {
			b.Follow(f.link, http.StatusOK)
		}
	}
	open()
	w.nobody.Send(b.Submission(f.button, f.good...), http.StatusOK)
	if w.nobody.Page.URL.Path != "/console/sign-in" || !w.nobody.Page.URL.Query().Has("ended") {
		b.T.Errorf("%s of nobody leads to %s", f.button, w.nobody.Page.URL)
	}
	address := b.Submission(f.button).URL.Path
	b.Send(webtest.FromElsewhere(b.Submission(f.button, f.good...)), http.StatusForbidden)
	b.Open(address, http.StatusOK) // as from the history of the browser: it leads to the page
	if !strings.HasPrefix(address, b.Page.URL.Path) {
		b.T.Errorf("the address of %s leads to %s", f.button, b.Page.URL)
	}
	open()
	if f.by != "" {
		w.stranger.Send(b.Submission(f.button, f.good...), http.StatusForbidden)
	}
	for _, one := range f.wrong {
		open()
		b.Press(f.button, http.StatusUnprocessableEntity, append(f.good[:len(f.good):len(f.good)], one.field, one.value)...)
		b.WantText(one.problem)
		f.wantKept(b, one)
	}
	if f.notice == "" {
		return
	}
	open()
	twice := b.Submission(f.button, f.good...)
	b.expect(b.Submission(f.button, f.good...), f.notice, http.StatusOK)
	if strings.HasPrefix(f.button, "Save this") {
		f.wantKept(b, wrong{})
	}
	b.expect(twice, f.again, map[bool]int{true: http.StatusOK, false: http.StatusUnprocessableEntity}[f.again == ""])
}

// expect sends a form, and checks the status and a text of the page that follows; the text is the
// status if it is a number.
func (b *browser) expect(r *http.Request, text string, status int) {
	b.T.Helper()
	switch text {
	case "404", "409":
		b.Send(r, map[string]int{"404": http.StatusNotFound, "409": http.StatusConflict}[text])
	default:
		b.Send(r, status).WantText(text)
	}
}

// wantKept checks that a form with a mistake still has all that was entered but for secrets, which no page repeats.
func (f form) wantKept(b *browser, mistake wrong) {
	b.T.Helper()
	for i := 0; i < len(f.good); i += 2 {
		name, value := f.good[i], f.good[i+1]
		if name == mistake.field {
			value = mistake.value
		}
		if name == "clientSecret" {
			value = ""
		}
		if got := b.Field(name); strings.TrimSpace(got) != strings.TrimSpace(value) {
			b.T.Errorf("%s with %s=%q: the form has the %s %q, want %q", f.button, mistake.field, mistake.value, name, got, value)
		}
	}
}
