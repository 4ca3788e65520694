package openapi

import (
	"slices"
	"strings"
	"testing"
)

// AdminRoute is a route of operators, with an address whose objects do not exist and a body that
// breaks no rule of form.
type AdminRoute struct {
	Method, Path string
	Body         any
}

// UnknownID is the ID of nothing.
const UnknownID = "00000000-0000-4000-8000-000000000000"

// AdminRoutes returns every route below /admin/v1 that openapi.yaml describes, but for those below
// /me, which are for everybody. A path is without that beginning.
func AdminRoutes(t *testing.T) (all []AdminRoute) {
	t.Helper()
	d, err := ReadDescription()
	if err != nil {
		t.Fatal(err)
	}
	bodies := adminBodies()
	fill := strings.NewReplacer("{name}", "none", "{id}", UnknownID)
	for _, p := range d.paths {
		path, ok := strings.CutPrefix(p.path, "/admin/v1")
		if !ok || strings.HasPrefix(path, "/me") {
			continue
		}
		for method, operation := range p.item.Operations() {
			body, known := bodies[operation.OperationID]
			if needed := operation.RequestBody != nil && operation.RequestBody.Value.Required; needed && !known {
				t.Fatalf("%s %s has no body for the tests", method, path)
			}
			all = append(all, AdminRoute{method, fill.Replace(path), body})
		}
	}
	slices.SortFunc(all, func(a, b AdminRoute) int {
		return strings.Compare(a.Path+a.Method, b.Path+b.Method)
	})
	return all
}

// adminBodies returns the bodies of the operations that need one.
func adminBodies() map[string]any {
	type object = map[string]any
	const pattern = "com.example/none"
	token := object{"name": "t", "scopes": []string{"admin:read"}}
	ids := []string{UnknownID}
	return map[string]any{
		"adminInvitePerson":   object{"email": "new@example.com", "name": "New"},
		"adminChangePerson":   object{},
		"adminAddGrant":       object{"person": UnknownID, "action": "edit", "resource": pattern},
		"adminAddPolicy":      object{"method": "dns", "domain": "example.com", "pattern": pattern},
		"adminPutView":        object{},
		"adminPutClient":      object{"name": "none", "redirectUris": []string{"http://127.0.0.1/callback"}},
		"adminPutResource":    object{"url": "https://tools.example.com/mcp", "servers": []string{pattern}},
		"adminPutToolSource":  object{"server": pattern, "remote": "https://tools.example.com/mcp", "headers": object{"X-Api-Key": "k"}},
		"adminPutCollection":  object{"sentence": "For tests.", "servers": []string{pattern}},
		"adminAddViewToken":   object{"name": "t"},
		"adminPutMirror":      object{"url": "https://registry.invalid"},
		"adminAddWebhook":     object{"url": "https://example.com/hook", "events": []string{"status"}},
		"adminChangeWebhook":  object{},
		"adminRedeliver":      object{},
		"adminAddReviewRule":  object{"pattern": pattern, "when": "any"},
		"adminApproveReviews": object{"ids": ids},
		"adminRejectReviews":  object{"ids": ids, "comment": "no"},
		"adminPutMethods":     object{"methods": []any{}},
		"adminApply":          object{"apiVersion": "tollgate.dev/v1", "kind": "State"},
		"putServiceAccount":   object{},
		"addServiceToken":     token,
		"putAccessRule": object{
			"order": 1, "effect": "deny", "subjects": []string{"everyone"}, "servers": []string{pattern},
		},
		"explainAccess": object{"subject": "anyone", "server": pattern},
		"putProvider":   object{"issuer": "https://login.example.com", "clientId": "tollgate"},
	}
}
