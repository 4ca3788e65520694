// Package contact is a kind of objects that the service does not have: who answers for servers. TestNewKind
// puts it into the service.
package contact

import (
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/kindrecords"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Kind describes contacts.
var Kind = kinds.Kind{
	Name: "ownerContact", List: "ownerContacts", Category: audit.RegistryChange,
	Put: "owner_contact_put", Remove: "owner_contact_remove", Most: 100,
	Fields: []kinds.Field{
		{Name: "name", Required: true, Check: kinds.Checked(view.ParseName), Column: "NAME"},
		{
			Name: "servers", Shape: kinds.Texts, Required: true, Check: kinds.Checked(registry.ParsePattern),
			Label: "Servers", Usage: "servers that it is for; may be repeated", Column: "SERVERS",
		},
		{Name: "email", Required: true, Label: "E-mail address", Usage: "e-mail address", Column: "E-MAIL"},
		{Name: "urgent", Shape: kinds.Flag, Label: "In an emergency", Control: "select", Usage: "also in an emergency", Options: []kinds.Option{
			{Text: "No"}, {Value: "true", Text: "Yes"},
		}},
	},
}

// Contact is who answers for servers.
type Contact struct {
	Name, Email, ManagedBy string
	Servers                []string
	Urgent                 bool
}

func parse(f audit.Details) (Contact, error) {
	c := Contact{Name: f.Text("name"), Email: f.Text("email"), Servers: f.Texts("servers"), Urgent: f.Flag("urgent")}
	if len(c.Servers) == 0 {
		return c, fault.In("servers", fault.New(fault.Invalid, "servers must have at least one pattern"))
	}
	for _, text := range c.Servers {
		if _, err := registry.ParsePattern(text); err != nil {
			return c, fault.In("servers", err)
		}
	}
	return c, nil
}

func (c *Contact) fields() audit.Details {
	return audit.Details{
		"name": audit.Text(c.Name), "email": audit.Text(c.Email), "servers": audit.Texts(c.Servers), "urgent": audit.Flag(c.Urgent),
	}
}

// Add adds the contacts to the kinds.
func Add(all management.Kinds, db *database.DB, transactions transaction.Runner, recorder authority.Recorder) {
	key, owner := func(c *Contact) string { return c.Name }, func(c *Contact) *string { return &c.ManagedBy }
	all[Kind.List] = managing.New(managing.Description[string, Contact]{
		Kind: &Kind, Parse: parse, Key: key, Owner: owner,
		Show: func(c *Contact) management.Object {
			return management.Object{Object: audit.Object{Kind: Kind.Name, Key: c.Name, Fields: c.fields()}, Owner: c.ManagedBy}
		},
	}, managing.Ports[string, Contact]{
		Transactions: transactions, Recorder: recorder, Store: kindrecords.New(db, "owner_contacts",
			kindrecords.Form[string, Contact]{Parse: parse, Fields: (*Contact).fields, Key: key, Owner: owner}),
	}).Objects()
}
