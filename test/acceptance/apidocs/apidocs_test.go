// Package apidocs checks the description of the API that adapters/rest/apidocs serves: whether
// it is valid and complete, and the page that shows it. It does not compare responses with the
// description; the other packages of test/acceptance do.
package apidocs_test

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gofiber/fiber/v2"
	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/adapters/decideapi"
	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/adminapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/methodsapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/tokenapi"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/registering"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/test/must"
)

// docs is shared by the tests, so that its bodies are compressed only once.
var docs = apidocs.New()

// TestDocumentIsValid validates the document and its examples with an OpenAPI library.
func TestDocumentIsValid(t *testing.T) {
	document := loadDocument(t)
	if !strings.HasPrefix(document.OpenAPI, "3.1.") {
		t.Errorf("the OpenAPI version is %s, want 3.1", document.OpenAPI)
	}
	if err := document.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

var readDocument = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData(apidocs.Document())
})

func loadDocument(t *testing.T) *openapi3.T {
	t.Helper()
	document, err := readDocument()
	must.Succeed(t, err)
	return document
}

// TestDocumentHasAllRoutes compares the routes of the document with the routes of the listener.
// HEAD is left out, because every GET route has it.
func TestDocumentHasAllRoutes(t *testing.T) {
	registry, end := registryapi.New(registryapi.Config{Resource: registryapi.Resource{URL: "https://tools.example.com", Decides: true}}, nil, registryapi.Reads{}, nil, readcache.Ports{})
	t.Cleanup(end)
	server := rest.New(rest.Config{}, rest.Ports{
		Parts: []rest.Part{
			registry, authapi.New(authapi.UseCases{}),
			methodsapi.New(methodsapi.Config{}, nil, nil, nil, nil), registryapi.NewPublishers(nil, registryapi.Resource{}, nil, nil),
			registryapi.NewReviews(nil, registryapi.Resource{}, nil),
			registryapi.NewQuarantine(nil, registryapi.Resource{}, nil), adminapi.New(adminapi.UseCases{Kinds: inprocess.NewKinds(
				new(federating.Providers), ruling.New(ruling.Ports{}), new(viewing.Operator), new(mirroring.Operator), new(delegating.Services),
				registering.NewClients(registering.Ports{}), registering.NewResources(registering.Ports{}), watching.NewSources(watching.SourcePorts{}), viewing.NewCollections(nil, nil, nil), authorizing.Config{On: true},
			)}),
			decideapi.NewWeb(decideapi.New(decideapi.Config{}, decideapi.Ports{}), rest.Address), tokenapi.New(tokenapi.UseCases{}),
		},
		Health: new(rest.Health), Docs: docs,
	})
	served := map[string]bool{}
	for _, r := range server.Routes() {
		if r.Method != "HEAD" {
			served[r.Method+" "+r.Path] = true
		}
	}
	parameter := regexp.MustCompile(`\{([a-zA-Z]+)\}`)
	described := map[string]bool{}
	for path, item := range loadDocument(t).Paths.Map() {
		paths := []string{parameter.ReplaceAllString(path, ":$1")}
		switch path {
		case "/v2/{path}": // of any depth
			paths = []string{"/v2/*"}
		case "/v2/api/methods.{format}":
			paths = []string{"/v2/api/methods.json", "/v2/api/methods.xml"}
		}
		for method := range item.Operations() {
			for _, p := range paths {
				described[method+" "+p] = true
			}
		}
	}
	for route := range served {
		if !described[route] {
			t.Errorf("%s is served but not in the document", route)
		}
	}
	for route := range described {
		if !served[route] {
			t.Errorf("%s is in the document but not served", route)
		}
	}
}

// TestPrefixesAreTheSame expects the same description for each path below /v0 and below /v0.1.
func TestPrefixesAreTheSame(t *testing.T) {
	var document struct{ Paths map[string]map[string]any }
	must.Succeed(t, yaml.Unmarshal(apidocs.Document(), &document))
	compared := 0
	for path, item := range document.Paths {
		rest, ok := strings.CutPrefix(path, "/v0/")
		if !ok {
			continue
		}
		for _, o := range item {
			if operation, ok := o.(map[string]any); ok {
				operation["operationId"] = strings.TrimSuffix(operation["operationId"].(string), "V0")
			}
		}
		if !reflect.DeepEqual(item, document.Paths["/v0.1/"+rest]) {
			t.Errorf("%s and /v0.1/%s differ", path, rest)
		}
		compared++
	}
	if compared != 25 {
		t.Errorf("compared %d paths, want 25", compared)
	}
}

// needsNoSession reports whether an operation may return 401 although it takes no access token: its
// body has the proof.
func needsNoSession(operationID string) bool {
	return slices.Contains([]string{
		"login", "beginCommandLogin", "loginByCode", "verifyMFA", "refresh", "finishPasskeySignIn", "resendStepUp", "proveDNS", "proveHTTP", "proveGitHub",
		"proveIdentity", "proveWorkload",
	}, strings.TrimSuffix(operationID, "V0"))
}

// TestEveryOperationIsComplete checks the parts that readers and code generators need.
func TestEveryOperationIsComplete(t *testing.T) {
	ids := map[string]bool{}
	for path, item := range loadDocument(t).Paths.Map() {
		for method, o := range item.Operations() {
			if o.OperationID == "" || ids[o.OperationID] || o.Summary == "" || len(o.Tags) != 1 ||
				o.Responses.Default() == nil {
				t.Errorf("%s %s is incomplete, or its operation id is not unique", method, path)
			}
			ids[o.OperationID] = true
			if (o.Security != nil) != (o.Responses.Status(401) != nil && !needsNoSession(o.OperationID)) {
				t.Errorf("%s %s: a 401 response and security do not match", method, path)
			}
		}
	}
}

// TestEveryBodyHasAnExample expects an example of each JSON request and response body.
// TestDocumentIsValid validates the examples against their schemas.
func TestEveryBodyHasAnExample(t *testing.T) {
	expectExample := func(what string, content openapi3.Content) {
		if m := content["application/json"]; m != nil && m.Example == nil && len(m.Examples) == 0 {
			t.Errorf("%s has no example", what)
		}
	}
	for _, item := range loadDocument(t).Paths.Map() {
		for _, o := range item.Operations() {
			if o.OperationID == "getDocumentJSON" { // its example would be this document
				continue
			}
			if o.RequestBody != nil {
				expectExample(o.OperationID, o.RequestBody.Value.Content)
			}
			for status, r := range o.Responses.Map() {
				expectExample(o.OperationID+" "+status, r.Value.Content)
			}
		}
	}
}

func get(t *testing.T, path string, headers ...string) (status int, header func(string) string, body string) {
	t.Helper()
	app := fiber.New()
	docs.Mount(app)
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := app.Test(r, -1)
	must.Succeed(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	return response.StatusCode, response.Header.Get, string(text)
}

func TestFormats(t *testing.T) {
	status, header, text := get(t, "/openapi.yaml")
	if status != 200 || header("Content-Type") != "application/yaml" || text != string(apidocs.Document()) {
		t.Errorf("YAML: %d %s", status, header("Content-Type"))
	}
	var fromYAML, fromJSON any
	must.Succeed(t, yaml.Unmarshal([]byte(text), &fromYAML))
	status, header, text = get(t, "/openapi.json")
	if status != 200 || header("Content-Type") != "application/json" || header("Access-Control-Allow-Origin") != "*" {
		t.Errorf("JSON: %d %s", status, header("Content-Type"))
	}
	must.Succeed(t, json.Unmarshal([]byte(text), &fromJSON))
	asJSON, err := json.Marshal(fromYAML)
	must.Succeed(t, err)
	var again any
	must.Succeed(t, json.Unmarshal(asJSON, &again))
	if !reflect.DeepEqual(again, fromJSON) {
		t.Error("YAML and JSON differ")
	}
	if !strings.HasPrefix(text, `{"openapi":"3.1.0","info":`) {
		t.Errorf("the JSON does not begin like the YAML: %.60s", text)
	}
	for _, path := range []string{"/openapi.yaml", "/openapi.json", "/docs"} {
		_, header, _ := get(t, path, "Accept-Encoding", "gzip")
		if header("Content-Encoding") != "gzip" {
			t.Errorf("%s is not compressed", path)
		}
		if status, _, body := get(t, path, "Accept-Encoding", "gzip", "If-None-Match",
			header("ETag")); status != 304 || body != "" {
			t.Errorf("%s with its entity tag: status %d", path, status)
		}
	}
}
