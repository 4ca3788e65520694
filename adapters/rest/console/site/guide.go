package site

import (
	"bytes"
	"strings"
)

// GuidePath is the path below which the guides are. They need no session.
const GuidePath = "/docs/guide/"

// guides are the guides about pages: that of the longest path with which the path of a page begins.
var guides = map[string]string{
	"": "console#pages", "sign-in": "console#signing-in", "step-up": "risk", "welcome": "first-registry",
	"setup": "console#the-first-person", "invitation": "console#invitations-and-forgotten-passwords",
	"forgot-password": "console#invitations-and-forgotten-passwords", "reset-password": "console#invitations-and-forgotten-passwords",
	"connect": "quickstart#6-connect-an-editor", "command": "publishing#sign-in", "servers": "registry#read",
	"publish": "publishing#in-the-console", "own": "publishing#change-a-status", "own/trusted": "publishing#without-a-person",
	"request": "curation#requests", "reviews": "curation#review", "quarantine": "curation#quarantine",
	"account": "console#pages", "account/password": "console#invitations-and-forgotten-passwords", "account/authenticator": "mfa",
	"account/passkeys": "sign-in/passkeys#for-people", "account/tokens": "tokens#a-personal-token",
	"account/applications": "authorization-server#what-a-person-sees", "account/access": "access", "account/log": "audit-log",
	"account/link": "sign-in/#whose-account-it-is", "operator": "console#for-operators", "operator/rights": "grants",
	"operator/service": "tokens#a-service-account", "operator/providers": "sign-in/#set-a-provider-up",
	"operator/access": "access#in-the-console", "operator/access/explain": "access#explain-and-check-by-command",
	"operator/clients": "authorization-server#clients", "operator/resources": "authorization-server#resources",
	"operator/policies": "publishing#policies", "operator/views": "views", "operator/mirrors": "mirrors", "operator/webhooks": "webhooks",
	"operator/tool-sources": "tools", "operator/review-rules": "curation#spare-reviewers-the-routine", "operator/state": "state",
	"operator/limits": "limit-per-address", "operator/risk": "risk", "operator/log": "audit-log",
}

// guideOf returns where the guide about the page with a path is.
func guideOf(path string) string {
	best := ""
	for begins := range guides {
		if strings.HasPrefix(path, Root+begins) && len(begins) > len(best) {
			best = begins
		}
	}
	return GuidePath + guides[best]
}

// addGuideLink adds the link to the guide about the page with a path after the first heading, which each page
// has in its own place.
func (p *Page) addGuideLink(page []byte, path string) ([]byte, error) {
	if !strings.HasPrefix(path, Root) {
		return page, nil
	}
	var link bytes.Buffer
	err := p.parse().ExecuteTemplate(&link, "help", guideOf(path))
	return bytes.Replace(page, []byte("</h1>"), link.Bytes(), 1), err
}
