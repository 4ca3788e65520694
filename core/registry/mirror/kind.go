package mirror

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// Kind describes the mirrors, which ReadDraft reads.
var Kind = kinds.Kind{
	Name: "mirror", List: "mirrors", Category: audit.RegistryChange, Put: "mirror_change", Remove: "mirror_remove",
	Most: 50, GetDoc: "With its state.", RemoveDoc: "Its servers stay and can be changed here, or with `purge=true` are deleted.",
	PutDoc: "The other registry is read soon after, and whole.", Purge: "Delete the servers of the mirror",
	Facts: []kinds.Field{
		{Name: "createdAt", Form: "Time"},
		{Name: "state", Shape: kinds.Object, Form: "AdminMirrorState", Example: `{health: ok, nextAt: "2026-01-31T12:00:00.000000Z", lastSuccess: "2026-01-31T12:00:00.000000Z", failingSince: null, servers: 12}`},
	},
	Fields: []kinds.Field{
		{Name: "name", Required: true, Check: kinds.Checked(ParseName), Example: "corp", Column: "NAME"},
		{
			Name: "url", Required: true, Check: kinds.Checked(ParseURL), Label: "Address of the registry",
			Hint: "What is before /v0.1, for example https://registry.example.com.", Doc: "A token of a view in it is returned as `***`; written so, it is kept", Example: "https://registry.example.com",
			Column: "URL",
		},
		{
			Name: "include", Shape: kinds.Texts, Check: kinds.Checked(registry.ParsePattern), Label: "Include", Control: "text",
			Hint: "Patterns such as com.example/*, with spaces between them. Empty takes every name that it lists.", Doc: "Patterns; empty for all",
			Usage: "servers to take: a name, a prefix that ends in *, or *; may be repeated (default all)",
		},
		{
			Name: "exclude", Shape: kinds.Texts, Check: kinds.Checked(registry.ParsePattern), Label: "Exclude", Control: "text",
			Hint: "Patterns, also of what is included.", Doc: "Patterns, also of what is included",
			Usage: "servers that are not taken, also if --include selects them; may be repeated",
		},
		{
			Name: "interval", Check: checkInterval, Label: "Interval",
			Hint: "Time between two reads, for example 10m or 24h. Empty for an hour.", Doc: "A duration from 1m to 168h", Default: DefaultInterval.String(), Example: "1h0m0s",
			Usage: "time between two reads, 1m to 168h",
		},
		{
			Name: "review", Check: kinds.Checked(ParseReview), Label: "If documents are reviewed", Control: "select",
			Doc: "What becomes of its documents if documents are reviewed", Default: string(Pending), Options: []kinds.Option{
				{Value: string(Pending), Text: "They wait for review"}, {Value: string(Trusted), Text: "They are listed at once"},
			},
			Usage: "if documents are reviewed: pending, or trusted to list them at once",
		},
		{
			Name: "lenient", Shape: kinds.Flag, Label: "Documents that break rules", Control: "select",
			Options: []kinds.Option{{Text: "Are refused"}, {Value: "true", Text: "Are taken too"}}, Doc: "Whether documents that break rules are taken too",
			Usage: "also take documents that break rules",
		},
	},
}

// checkInterval checks a duration; New has its bounds.
func checkInterval(s string) error {
	if d, err := time.ParseDuration(s); err != nil || d <= 0 {
		return fault.New(fault.Invalid, "must be a duration, for example 30m")
	}
	return nil
}

// ReadDraft returns the draft that the fields of a mirror describe, or fault.Invalid for an interval that
// is no duration.
func ReadDraft(f audit.Details) (Draft, error) {
	d := Draft{
		Name: f.Text("name"), URL: f.Text("url"), Include: f.Texts("include"), Exclude: f.Texts("exclude"),
		Review: f.Text("review"), Flags: Flags{Lenient: f.Flag("lenient")},
	}
	var err error
	if text := f.Text("interval"); text != "" {
		if d.Interval, err = time.ParseDuration(text); err != nil {
			err = fault.In("interval", fault.New(fault.Invalid, "interval must be a duration, for example 90m"))
		}
	}
	return d, err
}

// Fields returns the mirror as ReadDraft reads it, without the secrets of its URL.
func (m *Mirror) Fields() audit.Details {
	return audit.Details{
		"name": audit.Text(m.Name), "url": audit.Text(m.URL.Public()), "include": audit.Texts(each.Texts(m.Selection.Include)),
		"exclude": audit.Texts(each.Texts(m.Selection.Exclude)), "interval": audit.Text(m.Interval.String()),
		"review": audit.Text(m.Review), "lenient": audit.Flag(m.Lenient),
	}
}

// Object returns the mirror as the audit log describes it: the URL without its secret.
func (m *Mirror) Object() audit.Object {
	fields := m.Fields()
	delete(fields, "name")
	fields[audit.FieldSecret], fields["managedBy"] = audit.Text(audit.HashSecret(m.URL.Address())), audit.Text(m.ManagedBy)
	return audit.Object{Kind: Kind.Name, Key: string(m.Name), Fields: fields}
}

// NewVersionChange returns the audit event of a version that a mirror has changed: added, replaced,
// status or submitted. before are the releases of the server, of which the event says what their
// status was; optional.
func NewVersionChange(change string, m Name, r registry.Release, before ...registry.Release) audit.Change {
	details := registry.VersionDetails(r.Name.String(), r.Version.String())
	details["mirror"] = audit.Text(m)
	registry.StatusChangeOf(before, []registry.Release{r}).Describe(details)
	return registry.NewOperatorChange(audit.Action("mirror_"+change), details)
}
