package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestBill validates the list of modules by the schema of CycloneDX, and checks that it has every
// program with its modules.
func TestBill(t *testing.T) {
	content := packed(t)["tollgate_1.2.3_sbom.cdx.json"]
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := cyclonedxSchema(t).Validate(document); err != nil {
		t.Error(err)
	}
	var list cyclonedx.BOM
	if err := json.Unmarshal(content, &list); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		name = strings.Replace(name, "schemax", "schema", 1)
		if err := compiler.AddResource("http://cyclonedx.org/schema/"+name, document); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
