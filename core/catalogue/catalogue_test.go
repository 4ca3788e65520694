package catalogue_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
)

func method(change func(*catalogue.Method)) catalogue.Method {
	m := catalogue.Method{ID: 7, Path: "/a/{b}/{c}.{format}", ServiceID: 3, ServiceName: "some"}
	change(&m)
	return m
}

func TestNewMethodTakesParametersOfThePath(t *testing.T) {
	t.Parallel()
	want := []string{"b", "c", "format"}
	for _, given := range [][]string{nil, {"b", "c", "format"}, {"format", "c", "b"}} {
		m, err := catalogue.NewMethod(method(func(m *catalogue.Method) { m.Parameters = given }))
		if err != nil || !slices.Equal(m.Parameters, want) {
			t.Errorf("%v: %v, %v", given, m.Parameters, err)
		}
	}
	if m, err := catalogue.NewMethod(method(func(m *catalogue.Method) { m.Path = "/plain" })); err != nil ||
		m.Parameters == nil || len(m.Parameters) != 0 {
		t.Errorf("a path without parameters has %#v, %v", m.Parameters, err)
	}
}

func TestNewMethodNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for names, change := range map[string]func(*catalogue.Method){
		"method id":     func(m *catalogue.Method) { m.ID = 0 },
		"method id ":    func(m *catalogue.Method) { m.ID = catalogue.MaxID + 1 },
		"service id":    func(m *catalogue.Method) { m.ServiceID = -1 },
		"service name":  func(m *catalogue.Method) { m.ServiceName = "" },
		"service name ": func(m *catalogue.Method) { m.ServiceName = "a\nb" },
		"path":          func(m *catalogue.Method) { m.Path = "" },
		"path ":         func(m *catalogue.Method) { m.Path = "a/b" },
		"segment":       func(m *catalogue.Method) { m.Path = "/a//b" },
		"segment ":      func(m *catalogue.Method) { m.Path = "/a/{b" },
		"segment  ":     func(m *catalogue.Method) { m.Path = "/a/{}" },
		"segment   ":    func(m *catalogue.Method) { m.Path = "/a?b=c" },
		"twice":         func(m *catalogue.Method) { m.Path = "/{a}/{a}" },
		"500":           func(m *catalogue.Method) { m.Path = "/" + strings.Repeat("a", 500) },
		"parameters":    func(m *catalogue.Method) { m.Parameters = []string{"b", "c"} },
		"parameters ":   func(m *catalogue.Method) { m.Parameters = []string{"b", "c", "d"} },
	} {
		_, err := catalogue.NewMethod(method(change))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), strings.TrimSpace(names)) {
			t.Errorf("%q: %v", names, err)
		}
	}
}

// TestNewMethodIsIdempotent wants what was taken to be taken again, unchanged.
func TestNewMethodIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.StringMatching(`(/([a-z.{}]|\{[a-z]{1,3}\}){0,4}){1,4}`).Draw(t, "path")
		once, err := catalogue.NewMethod(method(func(m *catalogue.Method) { m.Path = path }))
		if err != nil {
			return
		}
		twice, err := catalogue.NewMethod(once)
		if err != nil || !slices.Equal(once.Parameters, twice.Parameters) {
			t.Errorf("%s: %v, then %v, %v", path, once.Parameters, twice.Parameters, err)
		}
	})
}
