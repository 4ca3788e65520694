package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
)

// textOf returns the text of the first element of a class; empty without one.
func textOf(b *browser, class string) string {
	found := webtest.Find(b.Page.Root, func(n *html.Node) bool { return webtest.Attribute(n, "class") == class })
	if found == nil {
		return ""
	}
	return strings.Join(strings.Fields(webtest.TextOf(found)), " ")
}

// wantOrder checks that a text has parts in their order.
func wantOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%q is not in its place in %s", part, text)
		}
		rest = after
	}
}

// TestCollections makes a collection, finds it first in the catalogue, and its servers in its order. A
// reader sees no server that is not listed, or that the view which is read does not have.
func TestCollections(t *testing.T) {
	e, s := start(t)
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*", "publish com.other/*", "edit com.example/*")
	for i := range 8 {
		publishVersion(t, s, ada, fmt.Sprintf("com.example/server-%02d", i), "1.0.0")
	}
	publishVersion(t, s, ada, "com.other/tool", "1.0.0")
	apiclient.Call(t, "PATCH", s.API+"/v0.1/servers/com.example%2Fserver-04/versions/1.0.0/status", map[string]string{"status": "deleted"},
		ada.Bearer()...).WantStatus(t, http.StatusOK)
	e.RunCommand(t, "", "view", "add", "data", "--include", "com.example/*")
	olga := newOperator(t, e, s)
	olga.Open("/console/operator", http.StatusOK).Follow("Collections", http.StatusOK).Follow("New collection", http.StatusOK)
	filled := []string{"name", "start", "title", "Start\u202e here", "sentence", "What every team needs.", "servers",
		"com.other/tool\ncom.example/absent\ncom.example/server-04\ncom.example/server-03\ncom.example/server-00\ncom.example/server-05\ncom.example/server-01"}
	for _, wrong := range [][]string{
		{"servers", "com.example/*"}, {"servers", "com.example/a\ncom.example/a"}, {"servers", ""}, {"sentence", strings.Repeat("a", 201)},
	} {
		olga.Press("Add this collection", http.StatusUnprocessableEntity, append(filled[:len(filled):len(filled)], wrong...)...).WantFields("name", "start")
	}
	olga.Press("Add this collection", http.StatusOK, filled...).WantText("It is added.", "No server com.example/absent was seen yet.").WantNoText("No server com.example/server-03")

	b := newBrowser(t, s)
	b.Open("/console/", http.StatusOK).WantText("All servers")
	wantOrder(t, textOf(b, "shelves"), `Start\u202e here What every team needs.`, "com.other/tool", "com.example/server-03", "com.example/server-00", "com.example/server-05")
	if text := textOf(b, "shelves"); strings.Contains(text, "server-01") || strings.Contains(text, "absent") || strings.Contains(text, "server-04") {
		t.Errorf("the catalogue has %s", text)
	}
	b.Follow(`Start\u202e here`, http.StatusOK).WantText("What every team needs.", "5 servers")
	wantOrder(t, b.Text(), "com.other/tool", "com.example/server-03", "com.example/server-00", "com.example/server-05", "com.example/server-01")
	b.WantNoText("server-02", "server-04", "absent")
	b.Open("/console/?collection=start&sort=name", http.StatusOK)
	wantOrder(t, b.Text(), "com.example/server-00", "com.example/server-01", "com.other/tool")
	b.Open("/console/?collection=start&view=data", http.StatusOK).WantText("4 servers").WantNoText("com.other/tool")
	b.Open("/console/?collection=start&q=tool", http.StatusOK).WantText("1 server").WantNoText("server-03")
	b.Open("/console/?collection=start&namespace=org.none", http.StatusOK).WantText("No server matches.")
	for _, wrong := range []string{"none", "A", "%00", strings.Repeat("a", 41)} {
		b.Open("/console/?collection="+wrong, http.StatusUnprocessableEntity)
	}
	b.Open("/console/?page=2", http.StatusOK)
	if text := textOf(b, "shelves"); text != "" {
		t.Errorf("the second page has %s", text)
	}

	own := signedIn(t, s, ada)
	own.Open("/console/", http.StatusOK)
	wantOrder(t, own.Text(), `Start\u202e here`, "Your servers", "com.example/server-00")
	eve := newVerified(t, e, s, "eve@example.com", "publish com.other/*")
	eve.Open("/console/", http.StatusOK)
	wantOrder(t, eve.Text(), "Your servers", "com.other/tool", "All servers", "com.example/server-00")
}
