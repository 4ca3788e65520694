package service

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// Kind describes the service accounts, which ReadDraft reads. The console has a form for each workload.
var Kind = kinds.Kind{
	Name: "serviceAccount", List: "serviceAccounts", Category: audit.AccountChange, Put: "service_put", Remove: "service_remove",
	Fields: []kinds.Field{
		{Name: "name", Required: true, Check: kinds.Checked(ParseName)},
		{Name: "description", Label: "Description"},
		{Name: "state", Label: "State", Control: "select", Options: []kinds.Option{
			{Value: string(Active), Text: "Active"}, {Value: string(Disabled), Text: "Disabled"},
		}},
		{Name: "workloads", Shape: kinds.Objects, Inner: []kinds.Field{
			{Name: "issuer", Required: true},
			{Name: "subject", Required: true, Check: kinds.Checked(publisher.ParseSubjectPattern)},
			{Name: "claims", Shape: kinds.TextMap}, {Name: "audience"}, {Name: "scopes", Required: true, Shape: kinds.Texts},
		}},
	},
}

// ReadDraft returns the draft that the fields of an account describe.
func ReadDraft(f audit.Details) Draft {
	d := Draft{Name: f.Text("name"), Description: f.Text("description"), State: f.Text("state")}
	for _, w := range f.Objects("workloads") {
		d.Workloads = append(d.Workloads, WorkloadDraft{
			Issuer: w.Text("issuer"), Subject: w.Text("subject"), Claims: w.Inner("claims").TextMap(),
			Audience: w.Text("audience"), Scopes: w.Texts("scopes"),
		})
	}
	return d
}

// Fields returns the account as ReadDraft reads it.
func (a *Account) Fields() audit.Details {
	workloads := make(audit.List, len(a.Workloads))
	for i, w := range a.Workloads {
		claims := audit.Details{}
		for name, value := range w.Identity.Claims {
			claims[name] = audit.Text(value)
		}
		workloads[i] = kinds.Present(audit.Details{
			"issuer": audit.Text(w.Identity.Issuer), "subject": audit.Text(w.Identity.Subject.String()), "claims": claims,
			"audience": audit.Text(w.Audience), "scopes": audit.Texts(w.Scopes),
		})
	}
	return audit.Details{
		"name": audit.Text(a.Name), "description": audit.Text(a.Description), "state": audit.Text(a.State), "workloads": workloads,
	}
}
