package declaring

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
)

// serviceAccounts returns the kind of the callers that are no people. Grants refer to those that exist after
// the run.
func (r *run) serviceAccounts() kind {
	k := r.managed("serviceAccounts")
	decode, stored := k.decode, k.stored
	k.decode = func(ctx context.Context, v audit.Details) (object, error) {
		r.accounts[v.Text("name")] = true
		return decode(ctx, v)
	}
	k.stored = func(ctx context.Context) ([]object, error) {
		all, err := stored(ctx)
		for i := range all {
			if !r.request.Prune || all[i].owner != r.request.Owner {
				r.accounts[all[i].Key] = true
			}
		}
		return all, err
	}
	return k
}
