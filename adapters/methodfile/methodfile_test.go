package methodfile_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/methodfile"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
)

var testDefaults = methodfile.Defaults{FirstID: 100, ServiceID: 9, ServiceName: "rest"}

func TestFormats(t *testing.T) {
	t.Parallel()
	one := catalogue.Method{
		ID: 1, Path: "/a/{b}.{format}", ServiceID: 2, ServiceName: "s", Parameters: []string{"b", "format"},
	}
	for name, c := range map[string]struct {
		text string
		want []catalogue.Method
	}{
		"a list": {
			`[{"method_id": 1, "path": "/a/{b}.{format}", "service_id": 2, "service_name": "s", "parameters": ["b", "format"]}]`,
			[]catalogue.Method{one},
		},
		"a list in YAML": {
			"- method_id: 1\n  path: /a/{b}.{format}\n  service_id: 2\n  service_name: s\n", []catalogue.Method{one},
		},
		"an empty list":   {`[]`, []catalogue.Method{}},
		"byte order mark": {"\ufeff[]", []catalogue.Method{}},
		"ids at the path": {
			`{"openapi": "3.1.0", "paths": {"/a/{b}.{format}": {"x-method-id": 1, "x-service-id": 2, "x-service-name": "s", "get": {}}}}`,
			[]catalogue.Method{one},
		},
		"ids at the operation, service by tag": {
			"openapi: 3.0.3\ntags: [{name: s, x-service-id: 2}]\npaths:\n  /a/{b}.{format}:\n    parameters: []\n    get: {tags: [s, t], x-method-id: 1}\n",
			[]catalogue.Method{one},
		},
		"counted in the order of the document": {
			"swagger: '2.0'\npaths:\n  /z: {}\n  /b: {get: {x-method-id: 5}}\n  /a: {get: {tags: [other], x-service-id: 4}}\n",
			[]catalogue.Method{
				{ID: 100, Path: "/z", ServiceID: 9, ServiceName: "rest", Parameters: []string{}},
				{ID: 5, Path: "/b", ServiceID: 9, ServiceName: "rest", Parameters: []string{}},
				{ID: 101, Path: "/a", ServiceID: 4, ServiceName: "other", Parameters: []string{}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := methodfile.Read(strings.NewReader(c.text), testDefaults)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

// TestInvalidFiles checks that errors name the place and the reason.
func TestInvalidFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                               "neither a list",
		`7`:                              "neither a list",
		`{`:                              "neither JSON nor YAML",
		`{"a":1}`:                        "not an OpenAPI document",
		`{"openapi":"3.1.0"}`:            "not an OpenAPI document",
		`{"openapi":"3.1.0","paths":[]}`: "not an OpenAPI document",
		`{"openapi":"3.1.0","paths":{"/a":{"x-method-id":"one"}}}`:       "path /a: a field is of the wrong type",
		`{"openapi":"3.1.0","paths":{"/a":{"get":7}}}`:                   "path /a: a field is of the wrong type",
		`[{"method_id":1,"path":"a","service_id":1,"service_name":"s"}]`: "method 1 of the list: path",
		`[{"method_id":"x"}]`: "method 1 of the list: a field is of the wrong type",
		`[7]`:                 "method 1 of the list: a field is of the wrong type",
		`[{"method_id":1,"path":"/a","service_id":1,"service_name":"s"},{"method_id":1,"path":"/b","service_id":1,"service_name":"s"}]`: "method 2 of the list: method id 1 is also the id of method 1",
		`[{"method_id":1,"path":"/a","service_id":1,"service_name":"s"},{"method_id":2,"path":"/a","service_id":1,"service_name":"s"}]`: "method 2 of the list: path /a is also the path of method 1",
	} {
		_, err := methodfile.Read(strings.NewReader(text), methodfile.Defaults{
			ServiceID: 1, ServiceName: "s", FirstID: 1,
		})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %q", text, err, want)
		}
	}
	if _, err := methodfile.Read(strings.NewReader(`{"openapi":"3.1.0","paths":{"/a":{}}}`),
		methodfile.Defaults{}); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "x-method-id") {
		t.Errorf("Read of a path without an id returned %v", err)
	}
	if _, err := methodfile.Read(strings.NewReader(strings.Repeat(" ", methodfile.MaxBytes+1)),
		testDefaults); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "larger") {
		t.Errorf("Read of a file that is too large returned %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`[{"method_id": 1, "path": "/a/{b}.{format}", "service_id": 2, "service_name": "s"}]`)
	f.Add("openapi: 3.1.0\npaths:\n  /a: {get: {x-method-id: 1, tags: [t]}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		methods, err := methodfile.Read(strings.NewReader(text), testDefaults)
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Fatalf("%q: %v", text, err)
		}
		for _, m := range methods {
			if again, err := catalogue.NewMethod(m); err != nil || !reflect.DeepEqual(again, m) {
				t.Fatalf("%+v was accepted, but NewMethod returns %+v, %v", m, again, err)
			}
		}
	})
}
