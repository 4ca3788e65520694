package console_test

import (
	"net/http"
	"net/url"
	"testing"
)

// TestRegistered registers a client, whose secret is shown once, and a resource.
func TestRegistered(t *testing.T) {
	e, s := start(t, "OAUTH=on", "PUBLIC_URL=http://localhost:9999")
	b := newOperator(t, e, s)
	b.Open("/console/operator", http.StatusOK).Follow("Clients", http.StatusOK)
	filled := []string{
		"clientId", "ide", "name", "IDE of Acme", "redirectUris", "http://127.0.0.1/callback\ncursor://x/y", "method", "client_secret_basic",
		"consent", "skip",
	}
	for _, wrong := range [][]string{
		{"clientId", "https://ide.example.com/x"}, {"redirectUris", "javascript:alert(1)"}, {"method", "private_key_jwt"}, {"jwks", "{"},
	} {
		b.Open("/console/operator/clients?new=1", http.StatusOK)
		b.Press("Add this client", http.StatusUnprocessableEntity, append(filled, wrong...)...).WantFields("name", "IDE of Acme")
	}
	b.Open("/console/operator/clients?new=1", http.StatusOK).Press("Add this client", http.StatusOK, filled...)
	first := b.Secret()
	b.Follow("The client ide", http.StatusOK).WantNoText(first).WantFields("name", "IDE of Acme", "consent", "skip")
	b.Press("Save this client", http.StatusOK, "name", "IDE").WantText(changed)
	b.Press("Save this client", http.StatusOK, "newSecret", "true")
	if second := b.Secret(); second == first {
		t.Error("another secret is the same")
	}
	b.Open("/console/operator/clients", http.StatusOK).WantText("ID", "ide", "IDE", "cursor://x/y").Follow("New client", http.StatusOK)
	b.Press("Add this client", http.StatusUnprocessableEntity, filled...).WantText(`Another client has the id "ide" already; choose another id.`)

	b.Open("/console/operator", http.StatusOK).Follow("Resources", http.StatusOK).Follow("New resource", http.StatusOK)
	resource := []string{"name", "weather", "url", "https://weather.example.com/mcp", "servers", "com.example/weather"}
	b.Press("Add this resource", http.StatusUnprocessableEntity, append(resource, "tokenTtl", "59")...).WantText("Lifetime of tokens must be a whole number")
	const closed = "closed: no listed version of its servers has the URL"
	b.Press("Add this resource", http.StatusOK, "tokenTtl", "").WantText("It is added.", closed)
	b.Follow("weather", http.StatusOK).WantText(closed).WantFields("tokenTtl", "600", "minTrust", "LIMITED_TRUST", "refresh", "true")
	b.Press("Save this resource", http.StatusOK, "refresh", "").WantText(changed).WantFields("refresh", "")
	b.Open("/console/operator/resources?new=1", http.StatusOK)
	b.Press("Add this resource", http.StatusUnprocessableEntity, append(resource, "name", "twin")...).WantText("the resource weather has it already")
	b.Open("/console/operator/resources", http.StatusOK).Press("Remove the resource weather", http.StatusOK).WantText("It is removed.")
}

// TestDocumentsOfClients lists the documents of clients that were read: here one at an address that is not public.
func TestDocumentsOfClients(t *testing.T) {
	const document = "https://127.0.0.1:1/client.json"
	e, s := start(t, "OAUTH=on", "PUBLIC_URL=http://localhost:9999", "OAUTH_CLIENT_HOSTS=127.0.0.1:1")
	b := newOperator(t, e, s)
	b.Open("/console/operator/clients", http.StatusOK).WantNoText("Documents that were read")
	b.Open("/oauth2/authorize?redirect_uri=http://127.0.0.1/&client_id="+url.QueryEscape(document), http.StatusBadRequest)
	b.Open("/console/operator/clients", http.StatusOK).WantText("Documents that were read", document, "Refused")
}

// TestNotRegistered has no pages of clients and resources without the authorization server.
func TestNotRegistered(t *testing.T) {
	e, s := start(t)
	b := newOperator(t, e, s)
	b.Open("/console/operator", http.StatusOK).WantNoText("Clients", "Resources")
	for _, path := range []string{"clients", "resources"} {
		b.Open("/console/operator/"+path, http.StatusNotFound)
	}
}
