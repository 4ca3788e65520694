package site

import "strings"

// ContinuePath is the path below which the pages of authorization requests of applications are
// (contract T-10). The id of the request follows it.
const ContinuePath = "/oauth2/continue/"

const (
	requestIDLength = 43 // of 256 bits
	base64URL       = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

	// backSegment follows the page of a request: the way back to the application without access.
	backSegment = "/back"
	steppedMark = "?stepped"
)

// IsContinue reports whether an address is exactly the page of an authorization request.
func IsContinue(address string) bool {
	id, ok := strings.CutPrefix(address, ContinuePath)
	return ok && len(id) == requestIDLength && strings.Trim(id, base64URL) == ""
}

// markStep adds to the page of an authorization request that a page of the console leads there. The answer
// to a form may have begun that, and browsers hold each address to which it is redirected against the
// policy of the form's page: the page of the request must not redirect to the application then.
func markStep(to string) string {
	if IsContinue(to) {
		return to + steppedMark
	}
	return to
}

// Stepped reports whether a page of the console has led to the page of an authorization request.
func (v *Visit) Stepped() bool {
	return v.Context().QueryArgs().Has(strings.TrimPrefix(steppedMark, "?"))
}

// ServesApplication reports whether the page is a step of an authorization request, to which it leads.
func (v *Visit) ServesApplication() bool { return IsContinue(v.Next()) }

// OfferBack makes the page, which is that of an authorization request, offer the way back to the
// application. The pages that lead to it do so by themselves.
func (v *Visit) OfferBack() { v.offersBack = true }

// applicationAddress returns where the form "Back to the application" is sent; empty for a page that is no
// step of an authorization request.
func (v *Visit) applicationAddress() string {
	switch page := strings.Clone(v.Path()); {
	case v.offersBack && IsContinue(page):
		return page + backSegment
	case v.ServesApplication():
		return v.Next() + backSegment
	}
	return ""
}
