package declaring

import (
	"context"
	"math"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/service"
)

// This file has the kind of the callers that are no people.

func (r *run) serviceAccounts() kind {
	return kind{
		name: kindServiceAccount, member: "serviceAccounts",
		fields: []field{
			{name: "name", required: true, check: checked(service.ParseName)}, {name: "description"}, {name: "state"},
			{name: "workloads", shape: isObjects, inner: []field{
				{name: "issuer", required: true},
				{name: "subject", required: true, check: checked(publisher.ParseSubjectPattern)},
				{name: "claims", shape: isTextMap}, {name: "audience"}, {name: "scopes", required: true, shape: isTexts},
			}},
		},
		decode: func(_ context.Context, v audit.Details) (object, error) {
			draft := service.Draft{Name: v.Text("name"), Description: v.Text("description"), State: v.Text("state")}
			for _, w := range v.Objects("workloads") {
				draft.Workloads = append(draft.Workloads, service.WorkloadDraft{
					Issuer: w.Text("issuer"), Subject: w.Text("subject"), Claims: textMap(w.Inner("claims")),
					Audience: w.Text("audience"), Scopes: texts(w["scopes"]),
				})
			}
			a, err := r.ports.Services.Parse(draft)
			r.accounts[draft.Name] = true
			return r.serviceAccount(&a), err
		},
		stored: func(ctx context.Context) (all []object, err error) {
			list, err := r.ports.Services.List(ctx, "", math.MaxInt32)
			for i := range list {
				a := &list[i]
				if !r.request.Prune || a.ManagedBy != r.request.Owner {
					r.accounts[string(a.Name)] = true
				}
				all = append(all, r.serviceAccount(a))
			}
			return all, err
		},
	}
}

func (r *run) serviceAccount(a *service.Account) object {
	workloads := make(audit.List, len(a.Workloads))
	for i, w := range a.Workloads {
		workloads[i] = present(audit.Details{
			"issuer": audit.Text(w.Identity.Issuer), "subject": audit.Text(w.Identity.Subject.String()),
			"claims": textDetails(w.Identity.Claims), "audience": audit.Text(w.Audience), "scopes": audit.Texts(w.Scopes),
		})
	}
	account := *a
	return object{
		Object: audit.Object{Kind: kindServiceAccount, Key: string(a.Name), Fields: present(audit.Details{
			"name": audit.Text(a.Name), "description": audit.Text(a.Description), "state": audit.Text(a.State),
			"workloads": workloads,
		})},
		owner: a.ManagedBy,
		save: func(ctx context.Context, owner string, _ *object) error {
			account.ManagedBy = owner
			_, _, err := r.ports.Services.Put(ctx, r.request.By, account, nil)
			return err
		},
		remove: func(ctx context.Context) error { return r.ports.Services.Remove(ctx, account.Name, nil) },
	}
}
