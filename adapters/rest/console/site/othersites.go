package site

import (
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// This file keeps pages of other sites from showing, reading and sending what is here.

const contentPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// securityHeaders are the headers of all pages. A page may load its style, its script and its
// images from here, and nothing from elsewhere. With no-referrer, browsers would send "Origin:
// null".
var securityHeaders = responsebody.NewHeaders(
	fiber.HeaderContentSecurityPolicy, contentPolicy,
	fiber.HeaderReferrerPolicy, "same-origin",
	fiber.HeaderXFrameOptions, "DENY",
	fiber.HeaderVary, fiber.HeaderCookie,
)

// checkOrigin refuses requests that change something and that a page of another site sent.
func (s *Site) checkOrigin(c *fiber.Ctx) error {
	request := &http.Request{
		Method: c.Method(), Host: string(c.Request().Host()), URL: &url.URL{Path: Root}, Header: http.Header{},
	}
	for _, name := range [...]string{"Sec-Fetch-Site", fiber.HeaderOrigin} {
		if value := c.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	if err := s.guard.Check(request); err != nil {
		return fault.New(fault.Forbidden,
			"the form was sent from a page of another site; open the page here and send it again")
	}
	return nil
}

// FromElsewhere reports whether a page of another site, or of another origin of this site, led to the page.
// Browsers that do not say so (before 2023) count as here.
func (v *Visit) FromElsewhere() bool {
	from := v.Get("Sec-Fetch-Site")
	return from != "" && from != "same-origin" && from != "none"
}
