package declaring

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// This file has the kind of the providers of company sign-in, which authentication knows.

func (r *run) providers() kind {
	return kind{
		name: "provider", member: "providers",
		fields: []field{
			{name: "name", required: true}, {name: "displayName"}, {name: "issuer", required: true},
			{name: "clientId", required: true}, {name: "clientSecret"}, {name: "scopes", shape: isTexts},
			{name: "domains", shape: isTexts}, {name: "create", shape: isFlag}, {name: "enforce", shape: isFlag},
			{name: "emailClaim"}, {name: "groupsClaim"}, {name: "requiredGroups", shape: isTexts},
			{name: "groupGrants", shape: isObjects, inner: []field{
				{name: "group", required: true}, {name: "action", required: true, check: checked(registry.ParseAction)},
				{name: "resource", required: true, check: checked(registry.ParsePattern)},
			}},
			{name: "secondFactor", shape: isObject, inner: []field{
				{name: "acr", shape: isTexts}, {name: "amr", shape: isTexts},
			}},
			{name: "recheck"}, {name: "maxSession"}, {name: "networks", shape: isTexts},
		},
		decode: func(_ context.Context, v audit.Details) (object, error) {
			parsed, err := r.ports.Providers.Parse(v)
			o := object{Object: parsed}
			o.save = func(ctx context.Context, owner string, _ *object) error {
				return r.ports.Providers.Save(ctx, v, owner)
			}
			return o, err
		},
		stored: func(ctx context.Context) (all []object, err error) {
			list, err := r.ports.Providers.Stored(ctx)
			for _, one := range list {
				all = append(all, object{
					Object: one.Object, owner: one.Owner,
					remove: func(ctx context.Context) error { return r.ports.Providers.Remove(ctx, one.Key) },
				})
			}
			return all, err
		},
	}
}
