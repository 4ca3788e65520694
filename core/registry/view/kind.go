package view

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Kind describes the views, which Parse reads.
var Kind = kinds.Kind{
	Name: "view", List: "views", Category: audit.RegistryChange, Put: "view_change", Remove: "view_remove",
	Most:    100, // which bounds what a Gate keeps in memory
	ListDoc: "Without the view `all`.", GetDoc: "Also the view `all`, which cannot be changed.", RemoveDoc: "With its tokens.", PutDoc: "In force within a second on all instances. The tokens of a view that is replaced stay.",
	Fields: []kinds.Field{
		{Name: "name", Required: true, Check: kinds.Checked(ParseName), Example: "data", Column: "NAME"},
		{
			Name: "include", Shape: kinds.Texts, Check: kinds.Checked(registry.ParsePattern), Label: "Include", Control: "text",
			Hint: "Patterns such as com.example/*, with spaces between them. Empty for all.", Doc: "Patterns; empty for all", Example: "com.example.data/*",
			Usage: "servers of the view: a name, a prefix that ends in *, or *; may be repeated (default all)", Column: "INCLUDE",
		},
		{
			Name: "exclude", Shape: kinds.Texts, Check: kinds.Checked(registry.ParsePattern), Label: "Exclude", Control: "text",
			Hint: "Patterns, also of what is included.", Doc: "Patterns, also of what is included",
			Usage: "servers that are not in the view, also if --include selects them; may be repeated", Column: "EXCLUDE",
		},
		{
			Name: "deprecated", Check: kinds.Checked(ParseDeprecated), Label: "Deprecated versions", Control: "select",
			Options: []kinds.Option{{Value: string(Show), Text: "Show"}, {Value: string(Hide), Text: "Hide"}}, Default: string(Show),
			Usage: "deprecated versions: show or hide", Column: "DEPRECATED",
		},
		{
			Name: "access", Check: kinds.Checked(ParseAccess), Label: "Who may read it", Control: "select",
			Doc: "A public view is public even if all other reads are for people", Default: string(Public), Example: string(WithToken),
			Options: []kinds.Option{
				{Value: string(Public), Text: "Everybody"}, {Value: string(WithToken), Text: "Who has a token of it"},
				{Value: string(People), Text: "People who are signed in"},
			},
			Usage: "who may read the view: public, token or people", Column: "ACCESS",
		},
		{
			Name: "people", Shape: kinds.Texts, Check: kinds.Checked(ParsePerson), Label: "These people",
			Hint: "E-mail addresses, one in each line. With no person and no group, everybody who is signed in.", Doc: "With `people`: the e-mail addresses of who may read it. At most 50 with the groups; without both, everybody who is signed in",
			Flag: "person", Usage: "with --access people: the e-mail address of a person; may be repeated", Whole: true, Column: "PEOPLE",
		},
		{
			Name: "groups", Shape: kinds.Texts, Check: kinds.Checked(ParseGroup), Label: "These groups",
			Hint: "Groups of company sign-in, such as acme/developers, one in each line.", Doc: "With `people`: groups of company sign-in, as PROVIDER/GROUP",
			Usage: "with --access people: a group of company sign-in, PROVIDER/GROUP; may be repeated", Whole: true, Column: "GROUPS",
		},
	},
}

// ReadDraft returns the draft that the fields of a view describe.
func ReadDraft(f audit.Details) Draft {
	return Draft{
		Name: f.Text("name"), Include: f.Texts("include"), Exclude: f.Texts("exclude"), Deprecated: f.Text("deprecated"),
		Access: f.Text("access"), People: f.Texts("people"), Groups: f.Texts("groups"),
	}
}

// Fields returns the view as ReadDraft reads it.
func (v View) Fields() audit.Details {
	return audit.Details{
		"name": audit.Text(v.Name), "include": audit.Texts(each.Texts(v.Include)),
		"exclude": audit.Texts(each.Texts(v.Exclude)), "deprecated": audit.Text(v.Deprecated),
		"access": audit.Text(v.Access), "people": audit.Texts(v.Members.People), "groups": audit.Texts(v.Members.Groups),
	}
}

// Object returns the view for the audit log.
func (v View) Object() audit.Object {
	fields := v.Fields()
	delete(fields, "name")
	fields["managedBy"] = audit.Text(v.ManagedBy)
	return audit.Object{Kind: Kind.Name, Key: string(v.Name), Fields: fields}
}
