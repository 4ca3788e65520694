package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestBill validates the list of modules by the schema of CycloneDX, and checks that it has every
// program with its modules.
func TestBill(t *testing.T) {
	s, files := collectPrograms(t)
	b, name := newBill(s), filepath.Join(t.TempDir(), "sbom.json")
	must.Succeed(t, errors.Join(b.addPrograms(here, files), b.write(name)))
	content, err := os.ReadFile(name)
	must.Succeed(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	must.Succeed(t, err)
	if err := cyclonedxSchema(t).Validate(document); err != nil {
		t.Error(err)
	}
	var list cyclonedx.BOM
	must.Succeed(t, json.Unmarshal(content, &list))
	if list.SerialNumber != "" || list.Metadata.Timestamp != "2026-01-02T03:04:05Z" {
		t.Errorf("serial number %q and time %q would differ between builds", list.SerialNumber, list.Metadata.Timestamp)
	}
	known := map[string]bool{list.Metadata.Component.BOMRef: true}
	for _, c := range *list.Components {
		if known[c.BOMRef] {
			t.Errorf("%s is listed twice", c.BOMRef)
		}
		known[c.BOMRef] = true
	}
	uses := map[string]string{}
	for _, d := range *list.Dependencies {
		uses[d.Ref] = strings.Join(*d.Dependencies, "\n")
		for _, ref := range append(*d.Dependencies, d.Ref) {
			if !known[ref] {
				t.Errorf("%s is used and not listed", ref)
			}
		}
	}
	for program, module := range map[string]string{
		"tollgate":          "pkg:golang/modernc.org/sqlite@v1.",
		"plugins/otp-email": "pkg:golang/github.com/wneessen/go-mail@v0.",
		"ratelimit-client":  "pkg:golang/std@1.",
	} {
		if !strings.Contains(uses[here.String()+"/"+program], module) {
			t.Errorf("%s does not list %s, but\n%s", program, module, uses[here.String()+"/"+program])
		}
	}
}

// cyclonedxSchema compiles the schema of the specification, which the module of the library has.
func cyclonedxSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	must.Succeed(t, err)
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "schema", name))
		must.Succeed(t, err)
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		must.Succeed(t, err)
		name = strings.Replace(name, "schemax", "schema", 1)
		must.Succeed(t, compiler.AddResource("http://cyclonedx.org/schema/"+name, document))
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	must.Succeed(t, err)
	return schema
}
