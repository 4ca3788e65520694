package declaring

import (
	"context"
	"math"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/ports/management"
)

// managed returns a kind of which only its hexagon knows what the fields mean.
func (r *run) managed(list string) kind {
	objects := r.ports.Managed[list]
	k := objects.Kind()
	toObject := func(o *management.Object) object {
		key := o.Key
		o.Fields = k.Present(o.Fields)
		return object{
			Object: o.Object, owner: o.Owner,
			remove: func(ctx context.Context) error { return objects.Remove(ctx, key, management.Change{}) },
		}
	}
	return kind{
		name: k.Name, member: k.List, fields: k.Declared(),
		decode: func(_ context.Context, v audit.Details) (object, error) {
			for i := range k.Fields {
				if name := k.Fields[i].Name; k.Fields[i].Secret && v.Text(name) == "" {
					delete(v, name) // which keeps the stored one
				}
			}
			parsed, err := objects.Parse(v)
			o := toObject(&parsed)
			o.save = func(ctx context.Context, owner string, _ *object) error {
				_, _, err := objects.Put(ctx, management.Change{Fields: v, Owner: owner})
				return err
			}
			return o, err
		},
		stored: listed(func(ctx context.Context) ([]management.Object, error) {
			return objects.List(ctx, "", math.MaxInt32)
		}, toObject),
	}
}
