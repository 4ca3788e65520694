package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
)

// TestDescription reads the description of the API in its three forms.
func TestDescription(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, "API_RATE_LIMIT=1", "AUTH_RATE_LIMIT=1", "REGISTRY_RATE_LIMIT=1")
		for range 3 {
			for path, media := range map[string]string{
				"/openapi.yaml": "application/yaml", "/openapi.json": "application/json", "/docs": "text/html; charset=utf-8",
			} {
				a := call(t, "GET", s.api+path, nil).want(t, http.StatusOK)
				if got := a.header.Get("Content-Type"); got != media {
					t.Errorf("%s is %s, want %s", path, got, media)
				}
				call(t, "GET", s.api+path, nil, "If-None-Match", a.header.Get("ETag")).want(t, http.StatusNotModified)
				call(t, "HEAD", s.api+path, nil).want(t, http.StatusOK)
			}
		}
		if a := call(t, "GET", s.api+"/openapi.yaml", nil); !bytes.Equal(a.body, apidocs.Document()) {
			t.Error("/openapi.yaml is not the document that answers are checked against")
		}
		call(t, "POST", s.api+"/docs", "{}").want(t, http.StatusMethodNotAllowed)
	})
}

// TestEveryAnswerIsChecked wants answers refused that the description does not
// have.
func TestEveryAnswerIsChecked(t *testing.T) {
	const limits = "X-RateLimit-Limit: 5\n"
	const cached = "Vary: Accept-Encoding\nCache-Control: no-cache\nAccess-Control-Allow-Origin: *\n" +
		"Access-Control-Allow-Methods: GET, OPTIONS\nAccess-Control-Allow-Headers: Authorization, Content-Type\n"
	for name, c := range map[string]struct{ method, path, status, header, body, want string }{
		"error":          {"GET", "/v0.1/servers", "400", "", `{"error":"a sentence"}`, ""},
		"wrong form":     {"GET", "/v0.1/servers", "400", "", `{"error":"a sentence","message":"x"}`, "message"},
		"other part":     {"GET", "/devices", "401", "Cache-Control: no-store\nWWW-Authenticate: Bearer", `{"error":"a sentence"}`, "error"},
		"no challenge":   {"GET", "/devices", "401", "Cache-Control: no-store", `{"error":"invalid_token","message":"m","details":{}}`, "WWW-Authenticate"},
		"status":         {"GET", "/v0.1/servers", "418", "", `{"error":"a sentence"}`, "418"},
		"no number":      {"GET", "/v0/servers", "400", "X-RateLimit-Limit: many", `{"error":"a sentence"}`, "X-RateLimit-Limit"},
		"other media":    {"GET", "/v0/servers", "400", "Content-Type: text/plain", `{"error":"a sentence"}`, "text/plain"},
		"no JSON":        {"GET", "/v0/servers", "400", limits, `{`, "JSON"},
		"wrong method":   {"POST", "/v0/servers", "405", "Allow: GET, HEAD", `{"error":"a sentence"}`, ""},
		"not that wrong": {"POST", "/v0/servers", "200", "", `{"error":"a sentence"}`, "200"},
		"unknown path":   {"GET", "/v0/nothing", "404", "", `{"error":"a sentence"}`, ""},
		"unknown form":   {"GET", "/auth/nothing", "404", "Cache-Control: no-store", `{"error":"a sentence"}`, "error"},
		"deep path":      {"GET", "/v2/courses/CS/135.json", "404", "Cache-Control: no-store", `{"meta":{},"data":[]}`, "meta"},
		"body with 304":  {"GET", "/v0/servers", "304", cached + "ETag: \"0123456789abcdef\"", `{}`, "body"},
		"weak validator": {"GET", "/v0/servers", "304", cached + "ETag: W/\"0123456789abcdef\"", ``, "ETag"},
		"enum":           {"GET", "/health", "200", "Cache-Control: no-store", `{"status":"fine"}`, "status"},
	} {
		a := answer{header: http.Header{"Content-Type": {"application/json"}}, body: []byte(c.body)}
		for line := range strings.Lines(c.header) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			a.header.Set(key, value)
		}
		var err error
		if a.status, err = strconv.Atoi(c.status); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(c.method, "http://api.example"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = asDescribed(r, a)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// undescribed are the addresses of listeners that are not the API's.
var undescribed sync.Map

// asDescribed tells what an answer of the API listener has that openapi.yaml
// does not.
func asDescribed(r *http.Request, a answer) error {
	d, err := readDescription()
	if err != nil {
		return err
	}
	if err := d.check(r, a); err != nil {
		return fmt.Errorf("%s %s answers %d, which is not as openapi.yaml has it: %w\n%s", r.Method, r.URL, a.status, err, a.body)
	}
	return nil
}

// description is the OpenAPI document, ready to check answers in parallel.
type description struct {
	document *openapi3.T
	paths    []describedPath

	mu       sync.Mutex // guards what follows
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by JSON pointer
}

type describedPath struct {
	pattern *regexp.Regexp
	pointer string
	item    *openapi3.PathItem
}

const descriptionURL = "https://tollgate.example/openapi.json"

// readDescription reads the document once.
var readDescription = sync.OnceValues(func() (*description, error) {
	document, err := openapi3.NewLoader().LoadFromData(apidocs.Document())
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	plain, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("write openapi.yaml as JSON: %w", err)
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml as JSON: %w", err)
	}
	d := &description{document: document, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(descriptionURL, resource); err != nil {
		return nil, fmt.Errorf("read schemas of openapi.yaml: %w", err)
	}
	for _, path := range document.Paths.InMatchingOrder() {
		item := document.Paths.Value(path)
		pattern, err := pathPattern(path, item)
		if err != nil {
			return nil, err
		}
		d.paths = append(d.paths, describedPath{pattern, "#/paths/" + escapePointer(path), item})
	}
	// What stands for any path comes last.
	slices.SortStableFunc(d.paths, func(a, b describedPath) int {
		return strings.Count(a.pattern.String(), ".*") - strings.Count(b.pattern.String(), ".*")
	})
	return d, nil
})

// pathPattern returns what matches the paths of a template. A parameter is one
// segment; one that is called path is any number of them.
func pathPattern(path string, item *openapi3.PathItem) (*regexp.Regexp, error) {
	pattern := regexp.QuoteMeta(path)
	for _, ref := range item.Parameters {
		p, form := ref.Value, `[^/]+`
		if len(p.Schema.Value.Enum) > 0 {
			var names []string
			for _, name := range p.Schema.Value.Enum {
				names = append(names, regexp.QuoteMeta(fmt.Sprint(name)))
			}
			form = "(" + strings.Join(names, "|") + ")"
		} else if p.Name == "path" {
			form = `.*`
		}
		pattern = strings.ReplaceAll(pattern, regexp.QuoteMeta("{"+p.Name+"}"), form)
	}
	compiled, err := regexp.Compile("^" + pattern + "$")
	if err != nil {
		return nil, fmt.Errorf("path %s: %w", path, err)
	}
	return compiled, nil
}

func escapePointer(s string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(s)
}

// check finds the response that an answer is described by, and compares them.
func (d *description) check(r *http.Request, a answer) error {
	pointer, response, err := d.response(r, a.status)
	if err != nil {
		return err
	}
	if response.Ref != "" {
		pointer = response.Ref
	}
	for _, name := range slices.Sorted(maps.Keys(response.Value.Headers)) {
		if err := d.checkHeader(pointer+"/headers/"+name, name, response.Value.Headers[name], a.header); err != nil {
			return err
		}
	}
	if r.Method == http.MethodHead {
		return nil
	}
	return d.checkBody(pointer, response.Value, a)
}

// response returns what describes an answer. Paths and methods that are not
// described are refused in the form of the part they would belong to.
func (d *description) response(r *http.Request, status int) (string, *openapi3.ResponseRef, error) {
	path, method := r.URL.EscapedPath(), r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, p := range d.paths {
		if !p.pattern.MatchString(path) {
			continue
		}
		operation := p.item.GetOperation(method)
		if operation == nil {
			return d.refusal(path, status, http.StatusMethodNotAllowed)
		}
		pointer := p.pointer + "/" + strings.ToLower(method) + "/responses/"
		if response := operation.Responses.Status(status); response != nil {
			return pointer + strconv.Itoa(status), response, nil
		}
		if slices.Contains(protocol, status) {
			return pointer + "default", operation.Responses.Default(), nil
		}
		return "", nil, errors.New("the status is not among the operation's")
	}
	return d.refusal(path, status, http.StatusNotFound)
}

// protocol are the statuses of what HTTP itself refuses, whatever the
// operation.
var protocol = []int{
	http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
	http.StatusRequestHeaderFieldsTooLarge,
}

// refusal returns what describes the refusal of something that is not
// described, with the status that it must have where nothing else is wrong.
func (d *description) refusal(path string, status, must int) (string, *openapi3.ResponseRef, error) {
	other := append([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, protocol...)
	if status != must && !slices.Contains(other, status) {
		return "", nil, fmt.Errorf("the status of what is not described is %d", must)
	}
	part, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for _, p := range d.paths {
		if !strings.HasPrefix(p.pointer+"~1", "#/paths/~1"+escapePointer(part)+"~1") {
			continue
		}
		for _, operation := range p.item.Operations() {
			return "", operation.Responses.Default(), nil
		}
	}
	return "", d.document.Paths.Value("/health").Get.Responses.Default(), nil
}

func (d *description) checkHeader(pointer, name string, h *openapi3.HeaderRef, got http.Header) error {
	text := got.Values(name)
	if len(text) == 0 {
		if h.Value.Required {
			return fmt.Errorf("header %s is missing", name)
		}
		return nil
	}
	if h.Ref != "" {
		pointer = h.Ref
	}
	var value any = text[0]
	if h.Value.Schema.Value.Type.Is("integer") {
		value = json.Number(text[0])
	}
	if err := d.valid(pointer+"/schema", value); err != nil {
		return fmt.Errorf("header %s is %q: %w", name, text[0], err)
	}
	return nil
}

func (d *description) checkBody(pointer string, response *openapi3.Response, a answer) error {
	if len(response.Content) == 0 {
		if len(a.body) > 0 {
			return errors.New("there must be no body")
		}
		return nil
	}
	contentType := a.header.Get("Content-Type")
	media := response.Content.Get(contentType)
	if media == nil {
		return fmt.Errorf("the content type is %q", contentType)
	}
	name, _, _ := strings.Cut(contentType, ";")
	pointer += "/content/" + escapePointer(name) + "/schema"
	if media.Schema.Ref != "" {
		pointer = media.Schema.Ref
	}
	switch name {
	case "application/json":
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
		if err != nil {
			return fmt.Errorf("the body is no JSON: %w", err)
		}
		return d.valid(pointer, value)
	case "application/xml": // its form is not a schema's business
		return nil
	default:
		return d.valid(pointer, string(a.body))
	}
}

// valid checks a value against the schema that a JSON pointer leads to.
func (d *description) valid(pointer string, value any) error {
	schema, err := d.schema(pointer)
	if err != nil {
		return err
	}
	if number, ok := value.(json.Number); ok {
		if _, err := number.Float64(); err != nil {
			return errors.New("it is no number")
		}
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%s: %w", pointer, err)
	}
	return nil
}

// schema returns a schema, compiled once.
func (d *description) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.schemas[pointer]; ok {
		return s, nil
	}
	s, err := d.compiler.Compile(descriptionURL + pointer)
	if err != nil {
		return nil, fmt.Errorf("schema at %s: %w", pointer, err)
	}
	d.schemas[pointer] = s
	return s, nil
}
