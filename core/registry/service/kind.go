package service

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// Kind describes the service accounts, which ReadDraft reads. The console has a form for each workload.
var Kind = kinds.Kind{
	Name: "serviceAccount", List: "serviceAccounts", Category: audit.AccountChange, Put: "service_put", Remove: "service_remove",
	PutDoc: "A token gives workloads only scopes that it has. Tokens that workloads got before end.", RemoveDoc: "Its tokens and grants end with it.", Facts: []kinds.Field{{Name: "createdAt", Form: "Time"}},
	Fields: []kinds.Field{
		{Name: "name", Required: true, Check: kinds.Checked(ParseName), Example: "ci", Column: "NAME"},
		{Name: "state", Label: "State", Control: "select", Options: []kinds.Option{
			{Value: string(Active), Text: "Active"}, {Value: string(Disabled), Text: "Disabled"},
		}, Default: string(Active), Column: "STATE"},
		{Name: "description", Label: "Description", Most: maxDescription, Example: "builds of tools", Usage: "what the account is for", Column: "DESCRIPTION"},
		{Name: "workloads", Shape: kinds.Objects, Most: maxWorkloads, Inner: []kinds.Field{
			{Name: "issuer", Required: true, Doc: "One of the issuers whose ID tokens are accepted, or that of GitHub", Example: "https://token.actions.githubusercontent.com"},
			{Name: "subject", Required: true, Check: kinds.Checked(publisher.ParseSubjectPattern), Column: "WORKLOADS", Doc: "The claim sub; a `*` matches characters within a part, and at the end, after `/` or `:`, the rest", Example: "repo:acme/tools:*"},
			{Name: "claims", Shape: kinds.TextMap, Doc: "Claims that the ID token must have, with exactly these values"}, {Name: "audience", Most: maxAudience, Doc: "One of the claim aud; default: the origin of the public URL"},
			{Name: "scopes", Required: true, Shape: kinds.Texts, Form: "AdminScope", Example: "registry:publish"},
		}, Usage: "workload that gets tokens of the account; may be repeated", Column: "WORKLOADS"},
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
