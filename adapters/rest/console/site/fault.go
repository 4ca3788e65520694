package site

import (
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/moment"
)

// messageView is a page that says why there is no other page.
type messageView struct {
	Title string
	Text  string
	Help  string // what to do
	Ask   bool   // the person can ask for a right
	ID    string // of the request; empty if it does not help
}

// WriteFault sends the page of an error. Status and headers are set already.
func (s *Site) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	c.Response().Header.Del(fiber.HeaderWWWAuthenticate) // browsers would ask for a password
	c.Set(fiber.HeaderCacheControl, "no-store")
	if WantsJSON(c) {
		return c.JSON(map[string]string{"error": f.Message})
	}
	view := newMessageView(c, f)
	v, known := s.visitOf(c)
	if known && v.again != nil && v.again(v, Problems{{Text: strings.TrimSpace(view.Text + " " + view.ID)}}) == nil {
		return nil
	}
	if f.Kind == fault.Forbidden && v.Session.TrustLevel.Admits(auth.Unverified) {
		view.Help = "If you need this, an operator of this service can allow it."
		view.Ask = !strings.HasPrefix(v.Path(), Root+"operator")
	}
	frame, err := s.frame(v, Head{Title: view.Title}, view)
	if err != nil || !known { // the database is away, or it is not known who asks
		frame = s.bareFrame(v, Head{Title: view.Title}, view)
	}
	frame.Section = nil
	return v.send(messagePage, frame)
}

// WantsJSON reports whether a request comes from a program that wants JSON and no page.
func WantsJSON(c *fiber.Ctx) bool {
	return c.Accepts(fiber.MIMETextHTML, fiber.MIMEApplicationJSON) == fiber.MIMEApplicationJSON
}

// visitOf returns the visit of a request that failed, and whether it is known who sent it. For a
// page that does not exist, it finds that out.
func (s *Site) visitOf(c *fiber.Ctx) (*Visit, bool) {
	if v, known := c.Locals(visitKey).(*Visit); known {
		return v, true
	}
	if c.Method() == http.MethodGet && c.Response().StatusCode() == http.StatusNotFound {
		if v, err := s.visit(c); err == nil {
			return v, true
		}
	}
	return &Visit{Ctx: c, site: s}, false
}

// newMessageView returns what the page of an error says.
func newMessageView(c *fiber.Ctx, f *fault.Error) messageView {
	view := messageView{Title: "Not possible", Text: asSentence(f.Message)}
	switch {
	case c.Response().StatusCode() == http.StatusNotFound:
		view.Title = "Not found"
	case f.Kind == fault.Forbidden:
		view.Title = "Not allowed"
	case f.Kind == fault.Exhausted:
		view.Title = "Too many requests"
		if view.Text == view.Title+"." {
			view.Text, view.Help = "", "People behind one address, as in an office, share this limit."
		}
		view.Text += retryText(f, "")
	case f.Kind == fault.Unavailable:
		view.Title, view.Text, view.ID = "Not available", view.Text+retryText(f, "in a moment"), rest.RequestID(c)
	case f.Kind == fault.Internal:
		view.Title, view.Text, view.ID = "Something went wrong",
			"This is a fault of the service. If it happens again, tell its operators the number below.",
			rest.RequestID(c)
	}
	return view
}

// retryText returns when to try again, a minute or more from now; without a time it is as soon as otherwise says,
// which may be empty for no text.
func retryText(f *fault.Error, otherwise string) string {
	if f.RetryAfter > 0 {
		now := time.Now()
		otherwise = moment.Ago(now.Add(f.RetryAfter+time.Minute), now)
	}
	if otherwise == "" {
		return ""
	}
	return " Try again " + otherwise + "."
}

type localKey int

// visitKey is the key of the visit among the values of a request.
const visitKey localKey = 0
