package declaring

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// This file has the kinds of objects that other hexagons know.

func (r *run) providers() kind {
	return managedKind("provider", "providers", r.ports.Managed.Providers, []field{
		{name: "name", required: true}, {name: "displayName"}, {name: "issuer", required: true},
		{name: "clientId", required: true}, {name: "clientSecret"}, {name: "scopes", shape: isTexts},
		{name: "domains", shape: isTexts}, {name: "create", shape: isFlag}, {name: "enforce", shape: isFlag},
		{name: "emailClaim"}, {name: "groupsClaim"}, {name: "scopeClaim"},
		{name: "audiences", shape: isTexts}, {name: "requiredGroups", shape: isTexts},
		{name: "groupGrants", shape: isObjects, inner: []field{
			{name: "group", required: true}, {name: "action", required: true, check: checked(registry.ParseAction)},
			{name: "resource", required: true, check: checked(registry.ParsePattern)},
		}},
		{name: "secondFactor", shape: isObject, inner: []field{
			{name: "acr", shape: isTexts}, {name: "amr", shape: isTexts},
		}},
		{name: "recheck"}, {name: "maxSession"}, {name: "networks", shape: isTexts},
	})
}

// accessRules returns the kind of the rules about calls.
func (r *run) accessRules() kind {
	return managedKind("accessRule", "accessRules", r.ports.Managed.AccessRules, []field{
		{name: "name", required: true}, {name: "order", shape: isNumber, required: true}, {name: "effect", required: true},
		{name: "subjects", shape: isTexts, required: true}, {name: "servers", shape: isTexts, required: true},
		{name: "methods", shape: isTexts}, {name: "tools", shape: isTexts}, {name: "minTrust"},
		{name: "networks", shape: isTexts}, {name: "expiresAt", check: checkTime}, {name: "mode"},
	})
}

// managedKind returns the kind of objects of another hexagon.
func managedKind(name, member string, objects authority.ManagedObjects, fields []field) kind {
	return kind{
		name: name, member: member, fields: fields,
		decode: func(_ context.Context, v audit.Details) (object, error) {
			parsed, err := objects.Parse(v)
			o := object{Object: parsed}
			o.save = func(ctx context.Context, owner string, _ *object) error { return objects.Save(ctx, v, owner) }
			return o, err
		},
		stored: func(ctx context.Context) (all []object, err error) {
			list, err := objects.Stored(ctx)
			for _, one := range list {
				all = append(all, object{
					Object: one.Object, owner: one.Owner,
					remove: func(ctx context.Context) error { return objects.Remove(ctx, one.Key) },
				})
			}
			return all, err
		},
	}
}
