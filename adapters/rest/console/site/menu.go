package site

import (
	"slices"
	"strings"
)

// section is a part of the console that has a menu of its own. Its first link is its root. Links
// without a path are headings.
type section struct {
	Name  string
	Links []navigationLink
}

// newSection returns a section whose pages are below a path.
func newSection(name, root string, links ...Link) section {
	s := section{Name: name}
	for i, l := range links {
		if i > 0 && l.Path != "" {
			l.Path = "/" + l.Path
		}
		if i == 0 || l.Path != "" {
			l.Path = root + l.Path
		}
		s.Links = append(s.Links, navigationLink{Link: l})
	}
	return s
}

// sections are the parts with menus, which are next to the page as in GitHub's settings.
var sections = []section{
	newSection("My servers", Root+"own",
		Link{Text: "My servers"}, Link{Text: "Trusted publishing", Path: "trusted"},
	),
	newSection("Operator", Root+"operator",
		Link{Text: "Overview"},
		Link{Text: "Access"}, Link{Text: "People", Path: "people"},
		Link{Text: "Rights", Path: "rights"}, Link{Text: "Requests", Path: "requests"},
		Link{Text: "Service accounts", Path: "service-accounts"}, Link{Text: "Company sign-in", Path: "providers"},
		Link{Text: "Access rules", Path: "access"}, Link{Text: "Clients", Path: "clients"}, Link{Text: "Resources", Path: "resources"},
		Link{Text: "Registry"}, Link{Text: "Policies", Path: "policies"}, Link{Text: "Views", Path: "views"}, Link{Text: "Collections", Path: "collections"},
		Link{Text: "Mirrors", Path: "mirrors"}, Link{Text: "Webhooks", Path: "webhooks"},
		Link{Text: "Tool sources", Path: "tool-sources"},
		Link{Text: "Review rules", Path: "review-rules"}, Link{Text: "Applied state", Path: "state"},
		Link{Text: "Activity"}, Link{Text: "Limits", Path: "limits"}, Link{Text: "Risk", Path: "risk"},
		Link{Text: "Audit log", Path: "log"},
	),
	newSection("My account", Root+"account",
		Link{Text: "My account"}, Link{Text: "Password", Path: "password"},
		Link{Text: "Authenticator app", Path: "authenticator"}, Link{Text: "Passkeys", Path: "passkeys"},
		Link{Text: "Tokens", Path: "tokens"}, Link{Text: "Applications with access", Path: "applications"},
		Link{Text: "What may I use", Path: "access"}, Link{Text: "My audit log", Path: "log"},
	),
}

// ApplicationsPath is the page with the applications that act for the person.
const ApplicationsPath = Root + "account/applications"

// sectionOf returns the menu of the section of a page, without the links to hidden pages; nil without one.
func sectionOf(path string, hidden ...string) *section {
	for _, s := range sections {
		if !isCurrent(s.Links[0].Path, path) {
			continue
		}
		own, current := section{Name: s.Name}, 0
		for _, l := range s.Links {
			if slices.Contains(hidden, l.Path) {
				continue
			}
			i := len(own.Links)
			own.Links = append(own.Links, l)
			if l.Path != "" && isCurrent(l.Path, path) && len(l.Path) >= len(own.Links[current].Path) {
				current = i
			}
		}
		own.Links[current].Current = true
		return &own
	}
	return nil
}

// isCurrent reports whether a page belongs to a link of the navigation.
func isCurrent(link, path string) bool {
	if link == Home {
		return path == Home || strings.HasPrefix(path, Root+"servers/")
	}
	if link == Root+"inbox" && (path == Root+"reviews" || strings.HasPrefix(path, Root+"reviews/")) {
		return true
	}
	return path == link || strings.HasPrefix(path, link+"/")
}
