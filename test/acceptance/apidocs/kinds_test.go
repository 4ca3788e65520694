package apidocs_test

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/test/kinddocs"
	"github.com/tollgate-dev/tollgate/test/must"
)

// invented is a kind with fields of each shape, and no more than a description needs.
var invented = kinds.Kind{
	Name: "orangeCrate", List: "orangeCrates",
	Facts: []kinds.Field{{Name: "packedAt", Form: "Time"}, {Name: "soldAt", Form: "Time", Null: true}},
	Fields: []kinds.Field{
		{Name: "name", Required: true},
		{Name: "label", Null: true}, {Name: "owner", Required: true}, {Name: "eatenBy", Form: "date-time", Required: true},
		{Name: "size", Required: true, Options: kinds.Words("small", "large")}, {Name: "key", Secret: true},
		{Name: "sorts", Shape: kinds.Texts, Required: true, Most: 3}, {Name: "colours", Shape: kinds.Texts, Default: "orange red"},
		{Name: "ripe", Shape: kinds.Flag}, {Name: "number", Shape: kinds.Number, Most: 12, Required: true},
		{Name: "notes", Shape: kinds.TextMap}, {Name: "box", Shape: kinds.Object, Inner: []kinds.Field{
			{Name: "lid", Shape: kinds.Flag, Doc: "Whether it has one"}, {Name: "width", Shape: kinds.Number},
		}},
		{Name: "oranges", Shape: kinds.Objects, Required: true, Inner: []kinds.Field{
			{Name: "from", Required: true}, {Name: "weight", Shape: kinds.Number},
		}},
	},
}

// TestDescriptionOfAKindIsEnough expects a valid document with everything about a kind that it has no
// line of, from nothing but the description of the kind.
func TestDescriptionOfAKindIsEnough(t *testing.T) {
	text, err := kinddocs.Complete(apidocs.Document(), append(kinddocs.All(), &invented))
	must.Succeed(t, err)
	document, err := openapi3.NewLoader().LoadFromData(text)
	must.Succeed(t, err)
	must.Succeed(t, document.Validate(t.Context())) // also the examples
	one, list := document.Paths.Value("/admin/v1/orange-crates/{name}"), document.Paths.Value("/admin/v1/orange-crates")
	if one == nil || one.Get == nil || one.Put == nil || one.Delete == nil || list == nil || list.Get == nil {
		t.Fatal("the document does not have all operations")
	}
	if got := one.Put.OperationID + ": " + one.Put.Summary; got != "adminPutOrangeCrate: Make or replace an orange crate" {
		t.Error(got)
	}
	schemas := document.Components.Schemas
	for name, want := range map[string]string{
		"AdminOrangeCrate":      "name label owner eatenBy size sorts colours ripe number notes box oranges packedAt soldAt managedBy",
		"AdminOrangeCrateDraft": "owner eatenBy size sorts number oranges",
		"StateOrangeCrate":      "name owner eatenBy size sorts number oranges",
		"AdminOrange":           "from",
		"AdminOrangeCrateList":  "orangeCrates metadata",
	} {
		if s := schemas[name]; s == nil {
			t.Errorf("there is no schema %s", name)
		} else if got := strings.Join(s.Value.Required, " "); got != want {
			t.Errorf("%s requires %s, want %s", name, got, want)
		}
	}
	if p := schemas["AdminOrangeCrate"].Value.Properties; p["key"] != nil || p["label"].Value.Type.Permits("null") == false {
		t.Error("a response has the secret, or no null for what is missing")
	}
	draft := schemas["AdminOrangeCrateDraft"].Value.Properties
	if draft["name"] != nil || !draft["key"].Value.WriteOnly || *draft["number"].Value.Max != 12 || *draft["sorts"].Value.MaxItems != 3 {
		t.Error("a request has the name, or not the bounds")
	}
	if schemas["State"].Value.Properties["orangeCrates"] == nil {
		t.Error("a state does not have the kind")
	}
}

// TestPartsOfKindsMustHaveAPlace changes the comments around parts of the document.
func TestPartsOfKindsMustHaveAPlace(t *testing.T) {
	document := string(apidocs.Document())
	for name, c := range map[string]struct{ document, want string }{
		"no schemas":   {strings.ReplaceAll(document, "generated schemas of kinds", ""), "schemas of kinds"},
		"without end":  {strings.Replace(document, "# end: generated paths of views\n", "", 1), "paths of views"},
		"a kind fewer": {strings.ReplaceAll(document, "paths of views", "paths of vistas"), "paths of vistas, which is of no kind"},
	} {
		if _, err := kinddocs.Complete([]byte(c.document), kinddocs.All()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
