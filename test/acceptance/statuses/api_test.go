package statuses

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// route is a request of a file in testdata, which is sent once by each caller, in each variant.
type route struct {
	method, path string // a page and a form have no method
	variants     []variant
	before       string // makes what the request is for, and says what replaces "{id}" in the path; optional
}

// variant is one body of a route, with more headers.
type variant struct {
	name   string
	body   string // "-" for none
	header []string
}

// readRequests reads a file of requests. publish.txt says what its lines mean.
func readRequests(t *testing.T, file string) (all []route) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "requests", file))
	must.Succeed(t, err)
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "\t"); ok {
			last := &all[len(all)-1]
			last.variants = append(last.variants, readVariants(text)...)
		} else if !strings.HasPrefix(line, "#") {
			request, before, _ := strings.Cut(line, " < ")
			method, path, ok := strings.Cut(request, " ")
			if !ok {
				method, path = "", request
			}
			all = append(all, route{method: method, path: path, before: before})
		}
	}
	return all
}

// readVariants returns the variants of a line.
func readVariants(line string) []variant {
	if line == "no bodies" {
		return []variant{
			{"bad JSON", "{", nil}, {"no JSON object", "[1]", nil}, {"no JSON", "a=b", []string{"Content-Type",
				"text/plain"}},
		}
	}
	parts := strings.Split(line, " | ")
	v := variant{name: parts[0], body: "-"}
	if len(parts) > 1 {
		v.body = parts[1]
	}
	for _, header := range parts[min(2, len(parts)):] {
		name, value, _ := strings.Cut(header, ": ")
		v.header = append(v.header, name, value)
	}
	return []variant{v}
}

// readBody returns the body of a variant for a caller: nil, or a text. "document NAME VERSION" is a
// server document.
func readBody(t *testing.T, body, n string) any {
	t.Helper()
	body = strings.ReplaceAll(body, "{n}", n)
	if body == "-" {
		return nil
	}
	named, ok := strings.CutPrefix(body, "document ")
	if !ok {
		return body
	}
	name, version, _ := strings.Cut(named, " ")
	document, err := json.Marshal(fixture.NewServerDocument(namespace+name, version))
	must.Succeed(t, err)
	return string(document)
}

// prepare makes what a request is for, and returns its path for a caller.
func (s *site) prepare(r route, n string) string {
	s.t.Helper()
	act, what, _ := strings.Cut(strings.ReplaceAll(r.before, "{n}", n), " ")
	id := ""
	if s.sam != nil {
		switch act {
		case "publish":
			name, version, _ := strings.Cut(what, " ")
			id = s.publish(name, version)
		case "submit":
			id = s.submit()
		case "hide":
			s.hide(what)
		case "policy":
			id = s.addPolicy()
		}
	}
	return strings.NewReplacer("{id}", id, "{n}", n).Replace(r.path)
}

func (s *site) addPolicy() string {
	s.t.Helper()
	var added struct{ ID string }
	policy := map[string]string{"method": "dns", "domain": domain, "pattern": namespace + "*"}
	s.sam.PostJSON(s.t, s.Service, "/v0.1/x/dev.tollgate/publishers", policy).WantStatus(s.t, 201).Decode(s.t, &added)
	return added.ID
}

// callAll sends the requests of files to the API and returns a line for each answer.
func (s *site) callAll(t *testing.T, files ...string) (lines []string) {
	t.Helper()
	for _, file := range files {
		for _, r := range readRequests(t, file) {
			lines = append(lines, s.callRoute(t, r)...)
		}
	}
	return lines
}

func (s *site) callRoute(t *testing.T, r route) []string {
	t.Helper()
	if len(r.variants) == 0 {
		r.variants = readVariants("-")
	}
	got := make([]answers, len(r.variants))
	for i, c := range s.callers {
		n := fmt.Sprint(i)
		path := s.prepare(r, n)
		for j, v := range r.variants {
			a := apiclient.Call(t, r.method, s.API+path, readBody(t, v.body, n), append(append([]string{}, c.header...),
				v.header...)...)
			got[j].request = r.method + " " + r.path + " | " + v.name
			got[j].add(c.name, fmt.Sprintf("%d %s", a.Status, errorOf(a)))
		}
	}
	return allLines(got)
}
