package operator

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/rest/accessjson"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
)

func newAccess(p cli.Process) *cobra.Command {
	return cli.NewGroup("access", "Manage who may call which tools of which servers",
		cli.NewGroup("rule", "Manage the rules by which calls are decided",
			newAccessRuleList(p), newAccessRuleShow(p), newAccessRuleSet(p), newAccessRuleRemove(p)),
		newAccessExplain(p), newAccessCheck(p), newAccessSimulate(p))
}

func newAccessRuleList(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "list",
		Short:   "List the rules by which calls are decided",
		Example: "  tollgate access rule list --output json",
	}, listed[accessRuleRow]("accessRules", func(run) string { return at("access-rules") }))
}

func newAccessRuleShow(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a rule",
		Example: "  tollgate access rule show readers",
		Args:    cobra.ExactArgs(1),
	}, func(r run) (cli.Table, error) {
		rows := make([]accessRuleRow, 1)
		err := r.send(http.MethodGet, at("access-rules", r.args[0]), nil, &rows[0])
		return cli.ListTable(rows), err
	})
}

func newAccessRuleSet(p cli.Process) *cobra.Command {
	c := addManaged(&cobra.Command{
		Use:   "set NAME --effect allow|deny --subject S --server PATTERN [--order N] [--tool T ...]",
		Short: "Add a rule, or replace the one with its name",
		Long: "Add a rule, or replace the one with its name. Rules are tried from the lowest order,\n" +
			"at one order those that deny first; the first that matches a call decides. It holds\n" +
			"on all instances within a second.\n\n" +
			"Subjects:\n" +
			"  person:EMAIL             a person\n" +
			"  group:PROVIDER/GROUP     people of a group at a provider of company sign-in\n" +
			"  grant:ACTION             who has the grant publish, edit, review or operate over the server\n" +
			"  service:NAME             a service account\n" +
			"  everyone                 everybody with a valid token\n" +
			"  anyone                   everybody, also without a token",
		Example: "  tollgate access rule set readers --effect allow --subject group:acme/developers --server 'com.example/*'\n" +
			"  tollgate access rule set reads --effect allow --subject everyone --server 'com.example/*' --tool 'read_*'",
		Args: cobra.ExactArgs(1),
	})
	f := newAccessRuleFlags(c)
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		rows, fields := make([]accessRuleRow, 1), f.fields(r.args[0])
		delete(fields, "name")
		err := r.send(http.MethodPut, at("access-rules", r.args[0]), fields, &rows[0])
		return cli.ListTable(rows), err
	})
}

// accessRuleFlags describe a rule.
type accessRuleFlags struct {
	order                                       int
	effect, minTrust, expiresAt, mode           string
	subjects, servers, methods, tools, networks []string
}

func newAccessRuleFlags(c *cobra.Command) *accessRuleFlags {
	f, flags := &accessRuleFlags{}, c.Flags()
	flags.IntVar(&f.order, "order", 1000, "place among the rules, 0 to 10000; the lowest is tried first")
	flags.StringVar(&f.effect, "effect", "", "what the rule does: allow or deny")
	flags.StringArrayVar(&f.subjects, "subject", nil, "whose calls; may be repeated")
	flags.StringSliceVar(&f.servers, "server", nil, "servers: a name, a prefix that ends in *, or *; may be repeated")
	flags.StringSliceVar(&f.methods, "method", nil,
		"methods: tools/call, tools/list, prompts/*, resources/* or other; may be repeated (default all)")
	flags.StringArrayVar(&f.tools, "tool", nil, "tool, or a prefix that ends in *; may be repeated (default all)")
	flags.StringVar(&f.minTrust, "min-trust", "", "trust level that the caller needs, for a rule that allows")
	flags.StringSliceVar(&f.networks, "network", nil, "network of the client, for example 10.0.0.0/8; may be repeated (default all)")
	flags.StringVar(&f.expiresAt, "expires-at", "", "RFC 3339 time at which the rule ends (default never)")
	flags.StringVar(&f.mode, "mode", string(access.Enforce), "enforce, or observe: count only what the rule would do")
	cli.RequireFlags(c, "effect", "subject", "server")
	cli.CompleteValues(c, "effect", string(access.Allow), string(access.Deny))
	cli.CompleteValues(c, "mode", string(access.Enforce), string(access.Observe))
	return f
}

// fields returns the rule that the flags describe, for access.ParseRule.
func (f *accessRuleFlags) fields(name string) audit.Details {
	fields := audit.Details{
		"name": audit.Text(name), "order": audit.Number(f.order), "effect": audit.Text(f.effect),
		"subjects": audit.Texts(f.subjects), "servers": audit.Texts(f.servers), "methods": audit.Texts(f.methods),
		"tools": audit.Texts(f.tools), "networks": audit.Texts(f.networks), "mode": audit.Text(f.mode),
	}
	fields.Set("minTrust", f.minTrust)
	fields.Set("expiresAt", f.expiresAt)
	return fields
}

func newAccessRuleRemove(p cli.Process) *cobra.Command {
	return newPlainCommand(p, addManaged(&cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a rule",
		Example: "  tollgate access rule remove readers",
		Args:    cobra.ExactArgs(1),
	}), removed("access-rules"))
}

func newAccessExplain(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain --subject S --name NAME|--url URL [--tool T] [--method M]",
		Short: "Say why a call is allowed or denied",
		Long: "Say what is decided about a call, by which rule, and for each rule before it the first\n" +
			"condition that failed. The trust level is that of the newest session of the person,\n" +
			"with its reasons, unless --trust gives another one. Of many rules --offset and --limit\n" +
			"select a part. It needs --server.",
		Example: "  tollgate access explain --server https://tollgate.example.com --subject person:ada@example.com --name com.example/weather --tool forecast",
		Args:    cobra.NoArgs,
	}
	var d deciding.Draft
	flags := c.Flags()
	flags.StringVar(&d.Subject, "subject", "", "whose call: person:EMAIL, service:NAME, everyone or anyone")
	flags.StringVar(&d.Trust, "trust", "", "trust level of the subject (default that of the newest session)")
	flags.StringVar(&d.Server, "name", "", "name of the server that is called")
	flags.StringVar(&d.URL, "url", "", "URL that is called, in place of --name")
	flags.StringVar(&d.Method, "method", "", "method of MCP (default tools/call with --tool)")
	flags.StringVar(&d.Name, "tool", "", "tool that is called")
	flags.StringVar(&d.Address, "address", "", "IP address of the client")
	offset := flags.Int("offset", 0, "how many of the rules that did not decide are left out at the beginning")
	limit := flags.Int("limit", access.MaxSteps, "how many of them are listed at most, 1 to 1000")
	cli.RequireFlags(c, "subject")
	return newPrinter(p, c, openNothing, func(run) (cli.Table, error) {
		return cli.Table{}, onlyLocal("this command asks a service: give --server or " + person.ServerVariable)
	}, func(r run) (cli.Table, error) {
		body := map[string]any{"subject": d.Subject, "offset": *offset, "limit": *limit}
		for name, value := range map[string]string{
			"trust": d.Trust, "server": d.Server, "url": d.URL, "method": d.Method, "tool": d.Name, "address": d.Address,
		} {
			if value != "" {
				body[name] = value
			}
		}
		var e accessjson.Explanation
		err := r.send(http.MethodPost, at("access", "explain"), body, &e)
		return cli.RowTable(e), err
	})
}

func newAccessCheck(p cli.Process) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|DIR",
		Short: "Check the access rules in files, without a service",
		Long: "Check the access rules of a file that 'tollgate apply' reads, or of the files .yaml,\n" +
			".yml and .json of a folder. It needs no service and no database: what depends on\n" +
			"stored records, apply checks.",
		Example: "  tollgate access check state",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			rules, err := readAccessRules(c.Context(), p, args[0])
			if err != nil {
				return err
			}
			return cli.PrintLine(p.Stdout, fmt.Sprintf("%d access rules are correct", len(rules)))
		},
	}
}

// accessRuleRow is a rule in the output of commands.
type accessRuleRow struct {
	Name      string   `json:"name"      column:"NAME"`
	Order     int      `json:"order"     column:"ORDER"`
	Effect    string   `json:"effect"    column:"EFFECT"`
	Subjects  wordList `json:"subjects"  column:"SUBJECTS"`
	Servers   wordList `json:"servers"   column:"SERVERS"`
	Methods   wordList `json:"methods"   column:"METHODS"`
	Tools     wordList `json:"tools"     column:"TOOLS"`
	MinTrust  string   `json:"minTrust"  column:"MIN TRUST"`
	Networks  wordList `json:"networks"  column:"NETWORKS"`
	ExpiresAt stamp    `json:"expiresAt" column:"EXPIRES"`
	Mode      string   `json:"mode"      column:"MODE"`
	ManagedBy string   `json:"managedBy" column:"MANAGED BY"`
}
