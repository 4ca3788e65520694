package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/wiring"
)

func newRegistryQuarantine(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "quarantine {NAME [--version V] --reason R | --list}",
		Short: "Hide a server or one version of it at once, or list what is hidden",
		Long: "Put the server NAME in quarantine, or one version of it: from the next second on\n" +
			"no list, search or allow list has it, a read by name is 404, and publishers cannot\n" +
			"change it or add versions. Reads that include deleted versions show it as deleted,\n" +
			"with the reason. 'tollgate registry release' restores it.",
		Example: "  tollgate registry quarantine com.example/weather --reason 'it sends what it reads to another host'\n" +
			"  tollgate registry quarantine com.example/weather --version 1.0.0 --reason 'CVE-2026-1234'\n" +
			"  tollgate registry quarantine --list --output json",
	}
	o := cli.AddOutput(c)
	var version, reason string
	var list bool
	c.Flags().StringVar(&version, "version", "", "version to hide; default: the whole server, also versions to come")
	c.Flags().StringVar(&reason, "reason", "", "why, at most 500 characters; publishers and readers of deleted versions see it")
	c.Flags().BoolVar(&list, "list", false, "list everything that is in quarantine")
	c.MarkFlagsOneRequired("reason", "list")
	c.MarkFlagsMutuallyExclusive("reason", "list")
	c.MarkFlagsMutuallyExclusive("version", "list")
	c.Args = func(c *cobra.Command, args []string) error {
		if list {
			return cobra.NoArgs(c, args)
		}
		return cobra.ExactArgs(1)(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return withOperator(c, p, func(op *wiring.Operator) error {
			if list {
				all, err := op.Quarantine.List(c.Context())
				if err != nil {
					return err
				}
				return printQuarantine(p, o, op, c, all)
			}
			added, err := op.Quarantine.Add(c.Context(), quarantining.Target{ServerName: args[0], Version: version}, reason)
			if err != nil {
				return err
			}
			return printQuarantine(p, o, op, c, []registry.Quarantined{added})
		})
	}
	return c
}

func newRegistryRelease(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "release NAME [--version V]",
		Short: "Release a server or one version of it from quarantine",
		Long: "End the quarantine of the server NAME, or of one version of it. Versions get the\n" +
			"status and the message that they had before, unless they are in quarantine\n" +
			"otherwise: a version is hidden while it or its server is in quarantine.",
		Example: "  tollgate registry release com.example/weather\n" +
			"  tollgate registry release com.example/weather --version 1.0.0",
		Args: cobra.ExactArgs(1),
	}
	var version string
	c.Flags().StringVar(&version, "version", "", "version to release; default: the server, if it is in quarantine as a whole")
	c.RunE = func(c *cobra.Command, args []string) error {
		return withOperator(c, p, func(op *wiring.Operator) error {
			return op.Quarantine.Release(c.Context(), quarantining.Target{ServerName: args[0], Version: version})
		})
	}
	return c
}

// quarantineRow is what is in quarantine in the output of commands.
type quarantineRow struct {
	ServerName string  `json:"serverName" column:"SERVER"`
	Version    *string `json:"version"` // nil for the whole server
	Versions   string  `json:"-"          column:"VERSION"`
	Reason     string  `json:"reason"     column:"REASON"`
	Since      string  `json:"since"      column:"SINCE"`
	By         string  `json:"by"         column:"BY"`
}

// printQuarantine prints entries with the e-mail address of each person.
func printQuarantine(p cli.Process, o *cli.Output, op *wiring.Operator, c *cobra.Command, list []registry.Quarantined) error {
	rows := make([]quarantineRow, 0, len(list))
	for _, q := range list {
		row := quarantineRow{
			ServerName: q.Name.String(), Versions: "all", Reason: string(q.Reason), Since: formatOptionalTime(q.Since), By: string(q.By),
		}
		if version := q.Version.String(); version != "" {
			row.Version, row.Versions = &version, version
		}
		if row.By == "" {
			row.By = "operator"
		} else if a, err := op.Accounts.Get(c.Context(), auth.UserID(row.By)); err == nil {
			row.By = string(a.Email)
		}
		rows = append(rows, row)
	}
	return o.PrintResult(p.Stdout, cli.ListTable(rows))
}
