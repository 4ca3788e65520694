package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestRights checks who may do what, since when and by whom, the filters, the file, and that a right is
// confirmed only by an operator and only while it exists.
func TestRights(t *testing.T) {
	e, s := start(t)
	e.WantAuditEvents(t)
	e.NewPerson(t, "ada@example.com", "publish com.example/*", "review *")
	stranger := newVerified(t, e, s, "pia@example.com", "publish *", "review *", "edit *")
	b := newOperator(t, e, s)
	b.Open("/console/operator/rights", http.StatusOK)
	b.WantText("ada@example.com publish com.example/* by hand", "by operator", "All were given or confirmed within 90 days")
	if ada, pia := strings.Index(b.Page.Body, "ada@example.com"), strings.Index(b.Page.Body, "pia@example.com"); ada < 0 || ada > pia {
		t.Error("rights are not in the order of names")
	}
	b.Open("/console/operator/rights?q=ada&action=review", http.StatusOK).WantText("ada@example.com review *")
	b.WantNoText("com.example/*", "pia@example.com")
	id := b.Element("name", "id")
	var grant string
	for _, a := range id.Attr {
		if a.Key == "value" {
			grant = a.Val
		}
	}
	selected := url.Values{"id": {grant}}

	stranger.Open("/console/operator/rights.csv", http.StatusForbidden)
	stranger.Submit("/console/operator/rights", http.StatusForbidden, selected)
	newBrowser(t, s).Submit("/console/operator/rights", http.StatusOK, selected).WantText("Sign in")
	b.Submit("/console/operator/rights", http.StatusUnprocessableEntity, nil).WantText("Select 1 to 100 grants")
	b.Submit("/console/operator/rights", http.StatusUnprocessableEntity, url.Values{"id": make([]string, 101)})
	for _, none := range []string{"x", "\x00", "0e1b8b7a-0000-4000-8000-000000000000"} {
		b.Submit("/console/operator/rights", http.StatusNotFound, url.Values{"id": {grant, none}})
	}
	b.Open("/console/operator/rights?q=ada&action=review", http.StatusOK).WantText("never")

	b.Submit("/console/operator/rights", http.StatusOK, selected).WantText("The selected rights are confirmed.")
	b.Open("/console/operator/rights?q=ada&action=review", http.StatusOK).WantText("by bea@example.com")
	b.Open("/console/operator/log?type=ACCOUNT_CHANGE", http.StatusOK).WantText("confirmed the grant review over *")
	for query, lines := range map[string]int{"?q=ada": 3, "?action=operate": 2, "?q=%00": 1, "?page=99999999999999999999": 7, "?q=nobody": 1} {
		b.Open("/console/operator/rights.csv"+query, http.StatusOK)
		if got := strings.Count(b.Page.Body, "\n"); got != lines {
			t.Errorf("the file of %s has %d lines, want %d:\n%s", query, got, lines, b.Page.Body)
		}
	}
	b.Open("/console/operator/rights?page=99999999999999999999&q=ada", http.StatusOK).WantText("ada@example.com")
	b.Press("Remove the grant to publish com.example/* of ada@example.com", http.StatusOK).WantText("The grant is removed.")
	b.Open("/console/operator/rights?q=ada", http.StatusOK).WantNoText("com.example/*")
}
