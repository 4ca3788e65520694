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
)

func newAccess(p cli.Process) *cobra.Command {
	rules := newKind(p, &access.RuleKind, kindTexts{
		path: "access rule", short: "Manage the rules by which calls are decided", one: "a rule", example: "readers",
		list: &cobra.Command{Short: "List the rules by which calls are decided"},
		put: &cobra.Command{
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
		},
	})
	return cli.NewGroup("access", "Manage who may call which tools of which servers",
		rules.newGroup(), newAccessExplain(p), newAccessCheck(p), newAccessSimulate(p))
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
	flags.StringVar(&d.Client, "client", "", "client whose token calls: its name, or the URL of its document")
	flags.StringVar(&d.Resource, "resource", "", "URL of the resource for which the token of the client is")
	offset := flags.Int("offset", 0, "how many of the rules that did not decide are left out at the beginning")
	limit := flags.Int("limit", access.MaxSteps, "how many of them are listed at most, 1 to 1000")
	cli.RequireFlags(c, "subject")
	return newPrinter(p, c, openNothing, func(run) (cli.Table, error) {
		return cli.Table{}, onlyLocal("this command asks a service: give --server or " + person.ServerVariable)
	}, func(r run) (cli.Table, error) {
		body := map[string]any{"subject": d.Subject, "offset": *offset, "limit": *limit}
		for name, value := range map[string]string{
			"trust": d.Trust, "server": d.Server, "url": d.URL, "method": d.Method, "tool": d.Name, "address": d.Address,
			"client": d.Client, "resource": d.Resource,
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
