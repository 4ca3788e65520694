package access

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// RuleKind describes the rules about calls, which ParseRule reads.
var RuleKind = kinds.Kind{
	Name: "accessRule", List: "accessRules", Category: audit.RegistryChange, Put: "access_rule_put", Remove: "access_rule_remove",
	About: "by which calls are decided", Most: MaxRules,
	PutDoc: "In force within a second on all instances.", RemoveDoc: "In force within a second on all instances.",
	Fields: []kinds.Field{
		{Name: "name", Required: true, Example: "readers", Column: "NAME"},
		{
			Name: "order", Shape: kinds.Number, Required: true, Label: "Order", Control: "number",
			Hint: "0 to 10,000. The lowest is tried first.", Doc: "Rules are tried from the lowest order, at one order those that deny first", Most: maxOrder, Example: "100",
			Usage: "place among the rules, 0 to 10000; the lowest is tried first", Default: "1000", Column: "ORDER",
		},
		{Name: "effect", Required: true, Label: "Effect", Control: "select", Options: []kinds.Option{
			{Value: string(Allow), Text: "Allow"}, {Value: string(Deny), Text: "Deny"},
		}, Usage: "what the rule does: allow or deny", Column: "EFFECT"},
		{
			Name: "subjects", Shape: kinds.Texts, Required: true, Label: "Subjects",
			Hint: "One on each line: person:EMAIL, group:PROVIDER/GROUP, grant:ACTION, service:NAME, everyone (any valid token), anyone.",
			Doc:  "`person:EMAIL`, `group:PROVIDER/GROUP`, `grant:ACTION`, `service:NAME`, `everyone` (any valid token) or `anyone`", Most: maxSubjects, Example: "group:acme/developers",
			Usage: "whose calls; may be repeated", Whole: true, Column: "SUBJECTS",
		},
		{
			Name: "servers", Shape: kinds.Texts, Required: true, Label: "Servers",
			Hint: "Names, prefixes like com.example/*, or *, one on each line.",
			Doc:  "Names of servers, prefixes that end in *, or *", Most: maxServers, Example: "com.example/*",
			Usage: "servers: a name, a prefix that ends in *, or *; may be repeated", Column: "SERVERS",
		},
		{
			Name: "methods", Shape: kinds.Texts, Label: "Methods", Control: "choices", Hint: "None for all.",
			Options: kinds.Words(Classes()...), Doc: "Empty for all", Most: len(Classes()),
			Usage: "methods: tools/call, tools/list, prompts/*, resources/* or other; may be repeated (default all)", Column: "METHODS",
		},
		{
			Name: "tools", Shape: kinds.Texts, Label: "Tools",
			Hint: "Names, or prefixes such as read_*, one on each line. Empty for all.", Most: maxTools, Example: "read_*",
			Doc:   "Names of tools, or prefixes that end in *; empty for all. A rule with tools does not match tools/list",
			Usage: "tool, or a prefix that ends in *; may be repeated (default all)", Whole: true, Column: "TOOLS",
		},
		{
			Name: "hints", Shape: kinds.Texts, Label: "Hints", Control: "choices",
			Hint: "What holds of the tool by its approved list; one that says nothing is destructive and open-world. Empty for all.",
			Doc: "All of them hold of the tool, by the approved lists of the server; a tool that says nothing, or is in no list, is destructive and open-world. " +
				"Empty for all. A rule with hints matches calls of tools only", Most: maxHints, Example: "readOnly", Options: kinds.Words(Hints()...),
			Usage:  "what holds of the tool: readOnly, destructive, idempotent or openWorld, or not: and one of them; may be repeated (default all)",
			Column: "HINTS",
		},
		{
			Name: "minTrust", Label: "Least trust", Control: "select", Hint: "Of a rule that allows. Who has less is asked to verify.",
			Options: append([]kinds.Option{{Text: "Any"}}, kinds.Words(trustlevel.Names()...)...), Null: true,
			Doc: "The trust level that a rule that allows requires; a caller below it is challenged", Example: "LIMITED_TRUST",
			Usage: "trust level that the caller needs, for a rule that allows", Column: "MIN TRUST",
		},
		{
			Name: "networks", Shape: kinds.Texts, Label: "Networks",
			Hint: "Of the client, such as 10.0.0.0/8, one on each line. Empty for all.", Doc: "Networks of the client; empty for all", Most: maxNetworks,
			Usage: "network of the client, for example 10.0.0.0/8; may be repeated (default all)", Column: "NETWORKS",
		},
		{
			Name: "clients", Shape: kinds.Texts, Label: "Clients",
			Hint: "Of the authorization server: names, or URLs of documents, one on each line. Empty for all callers.",
			Doc:  "Clients of the authorization server: names, or URLs of documents. Only tokens of these match the rule; empty for all callers",
			Most: maxClients, Usage: "client whose tokens the rule is about: a name, or the URL of its document; may be repeated (default all callers)",
			Whole: true, Column: "CLIENTS",
		},
		{
			Name: "expiresAt", Check: kinds.CheckTime, Label: "End", Control: kinds.ControlEnd,
			Hint: "A day such as 2027-01-31, at whose beginning it ends, or a time such as 2027-01-31T18:00:00Z. Empty: never.", Form: "date-time", Null: true,
			Usage: "RFC 3339 time at which the rule ends (default never)", Column: "EXPIRES",
		},
		{Name: "mode", Label: "Mode", Control: "select", Options: []kinds.Option{
			{Value: string(Enforce), Text: "Enforce"},
			{Value: string(Observe), Text: "Observe: count what it would do, and decide nothing"},
		}, Doc: "A rule that observes is passed over, and what it would have done is counted", Default: string(Enforce), Usage: "enforce, or observe: count only what the rule would do", Column: "MODE"},
	},
}
