package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/test/apiclient"
)

// CheckDescribed returns an error when a response of the API listener does not match openapi.yaml.
func CheckDescribed(r *http.Request, a apiclient.Response) error {
	d, err := ReadDescription()
	if err != nil {
		return err
	}
	if err := d.checkResponse(r, a); err != nil {
		return fmt.Errorf("%s %s answers %d, which is not as openapi.yaml has it: %w\n%s", r.Method, r.URL,
			a.Status, err, a.Body)
	}
	return nil
}

// Description is the OpenAPI document. Its methods are safe for concurrent use.
type Description struct {
	Document *openapi3.T
	paths    []describedPath

	mu       sync.Mutex // guards what follows
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by JSON pointer
}

type describedPath struct {
	path    string
	pattern *regexp.Regexp
	pointer string
	item    *openapi3.PathItem
}

const descriptionURL = "https://tollgate.example/openapi.json"

// ReadDescription reads the document on the first call and returns the same one on each call.
var ReadDescription = sync.OnceValues(func() (*Description, error) {
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
	d := &Description{Document: document, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
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
		d.paths = append(d.paths, describedPath{path, pattern, "#/paths/" + escapePointer(path), item})
	}
	// Paths that match any request come last.
	slices.SortStableFunc(d.paths, func(a, b describedPath) int {
		return strings.Count(a.pattern.String(), ".*") - strings.Count(b.pattern.String(), ".*")
	})
	return d, nil
})

// pathPattern returns an expression that matches the paths of a template. A parameter is one
// segment; a parameter with the name path is any number of segments.
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

// checkResponse compares a response with the response that the document describes for its request.
func (d *Description) checkResponse(r *http.Request, a apiclient.Response) error {
	pointer, response, err := d.findResponse(r, a.Status)
	if err != nil {
		return err
	}
	if o, item := d.operation(r); o != nil && a.Status < http.StatusBadRequest {
		if err := d.checkRequest(o, item, r); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	if response.Ref != "" {
		pointer = response.Ref
	}
	if err := d.checkHeaders(pointer, response.Value.Headers, a.Header); err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil
	}
	return d.checkBody(pointer, response.Value, a)
}

// findResponse returns the described response for a request and a status, and records that a test
// got it. For a path or method that the document does not describe, it returns the refusal that the
// part of the API describes.
func (d *Description) findResponse(r *http.Request, status int) (string, *openapi3.ResponseRef, error) {
	p := d.findPath(r.URL.EscapedPath())
	if p == nil {
		return d.findRefusal(r, status, http.StatusNotFound)
	}
	method := describedMethod(r.Method)
	operation := p.item.GetOperation(method)
	if operation == nil {
		return d.findRefusal(r, status, http.StatusMethodNotAllowed)
	}
	pointer := p.pointer + "/" + strings.ToLower(method) + "/responses/"
	if response := operation.Responses.Status(status); response != nil {
		received.Store(responseName(operation.OperationID, status), nil)
		return pointer + strconv.Itoa(status), response, nil
	}
	if slices.Contains(protocolStatuses, status) {
		return pointer + "default", operation.Responses.Default(), nil
	}
	return "", nil, errors.New("the status is not among the operation's")
}

// findPath returns the entry of the document for a path, or nil.
func (d *Description) findPath(path string) *describedPath {
	for i := range d.paths {
		if d.paths[i].pattern.MatchString(path) {
			return &d.paths[i]
		}
	}
	return nil
}

// operation returns the operation and the path item that describe a request, or nil.
func (d *Description) operation(r *http.Request) (*openapi3.Operation, *openapi3.PathItem) {
	p := d.findPath(r.URL.EscapedPath())
	if p == nil {
		return nil, nil
	}
	return p.item.GetOperation(describedMethod(r.Method)), p.item
}

// describedMethod returns the method that describes a request: GET for HEAD.
func describedMethod(method string) string {
	if method == http.MethodHead {
		return http.MethodGet
	}
	return method
}

// protocolStatuses holds the statuses with which HTTP itself refuses a request to any operation.
var protocolStatuses = []int{
	http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
	http.StatusRequestHeaderFieldsTooLarge,
}

// findRefusal returns the description of the refusal of an undescribed request. must is the status
// of that refusal when nothing else is wrong with the request.
func (d *Description) findRefusal(r *http.Request, status, must int) (string, *openapi3.ResponseRef, error) {
	other := append([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, protocolStatuses...)
	if status != must && !slices.Contains(other, status) {
		return "", nil, fmt.Errorf("the status of what is not described is %d", must)
	}
	operation := d.similarOperation(r)
	if response := operation.Responses.Status(status); response != nil && status != must {
		return "", response, nil
	}
	return "", operation.Responses.Default(), nil
}

// similarOperation returns an operation of the part of the API that a request belongs to: the one
// whose path begins most like the request's, and of several the one with the shortest path. It
// prefers an operation with the same method, because reads and writes of a part may have different
// error responses.
func (d *Description) similarOperation(r *http.Request) *openapi3.Operation {
	asked := strings.Split(r.URL.EscapedPath(), "/")
	for _, method := range []string{describedMethod(r.Method), http.MethodPost, http.MethodGet} {
		var similar *openapi3.Operation
		most, length := 2, 0 // the empty segment before the first slash, and the part
		for _, p := range d.paths {
			segments := strings.Split(p.path, "/")
			n, operation := commonSegments(asked, segments), p.item.GetOperation(method)
			if operation != nil && (n > most || n == most && (similar == nil || len(segments) < length)) {
				similar, most, length = operation, n, len(segments)
			}
		}
		if similar != nil {
			return similar
		}
	}
	return d.Document.Paths.Value("/health").Get
}

// commonSegments returns how many segments two paths have in common at their start.
func commonSegments(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func (d *Description) checkBody(pointer string, response *openapi3.Response, a apiclient.Response) error {
	if len(response.Content) == 0 {
		if len(a.Body) > 0 {
			return errors.New("there must be no body")
		}
		return nil
	}
	contentType := a.Header.Get("Content-Type")
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
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Body))
		if err != nil {
			return fmt.Errorf("the body is no JSON: %w", err)
		}
		return d.validate(pointer, value)
	case "application/xml":
		value, err := decodeXML(media.Schema.Value, a.Body)
		if err != nil {
			return err
		}
		return d.validate(pointer, value)
	default:
		return d.validate(pointer, string(a.Body))
	}
}

// validate checks a value against the schema at a JSON pointer.
func (d *Description) validate(pointer string, value any) error {
	schema, err := d.compileSchema(pointer)
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

// compileSchema returns the schema at a JSON pointer, and compiles each schema once.
func (d *Description) compileSchema(pointer string) (*jsonschema.Schema, error) {
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
