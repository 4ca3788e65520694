package operator

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/wiring"
)

func newReviewRule(p cli.Process) *cobra.Command {
	c := &cobra.Command{Use: "rule", Short: "Manage the rules that approve without a person"}
	c.AddCommand(newReviewRuleAdd(p), newReviewRuleList(p), newReviewRuleRemove(p))
	return c
}

func newReviewRuleAdd(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "add --pattern PATTERN --when any|same-origins [--publisher ID]",
		Short: "Approve without a person what a condition holds for",
		Long: "Add a rule. It applies to what is published from now on.\n\n" +
			"Conditions:\n" +
			"  any           everything\n" +
			"  same-origins  a version of the server is listed from which the new document\n" +
			"                differs only in versions, in texts that people read, and in the\n" +
			"                paths of remotes, website and icons; packages, arguments, variables,\n" +
			"                headers, hosts and repository are equal",
		Example: "  tollgate review rule add --pattern 'com.example/*' --when same-origins",
		Args:    cobra.NoArgs,
	}
	var d reviewing.RuleDraft
	flags := c.Flags()
	flags.StringVar(&d.Pattern, "pattern", "", "servers: a name, a prefix that ends in *, or *")
	flags.StringVar(&d.When, "when", "", "condition: any or same-origins")
	flags.StringVar(&d.Publisher, "publisher", "", "only what this person (a user id) or the publisher with this policy (an ID) submits; default: all")
	cli.RequireFlags(c, "pattern", "when")
	cli.CompleteValues(c, "when", string(review.Any), string(review.SameOrigins))
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withOperator(c, p, func(op *wiring.Operator) error {
			added, err := op.Reviews.AddRule(c.Context(), d)
			if err != nil {
				return err
			}
			return printRules(p, o, []review.Rule{added})
		})
	}
	return c
}

func newReviewRuleList(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the rules that approve without a person",
		Example: "  tollgate review rule list --output json",
		Args:    cobra.NoArgs,
	}
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withOperator(c, p, func(op *wiring.Operator) error {
			list, err := op.Reviews.Rules(c.Context())
			if err != nil {
				return err
			}
			return printRules(p, o, list)
		})
	}
	return c
}

func newReviewRuleRemove(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:     "remove ID",
		Short:   "Remove a rule; what it has approved stays listed",
		Example: "  tollgate review rule remove 5b1e7c90-2f4a-4d8e-b3c6-7a9d0e1f2c34",
		Args:    cobra.ExactArgs(1),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return withOperator(c, p, func(op *wiring.Operator) error {
			return op.Reviews.RemoveRule(c.Context(), review.RuleID(strings.ToLower(args[0])))
		})
	}
	return c
}

// ruleRow is a rule in the output of commands.
type ruleRow struct {
	ID        string `json:"id"                  column:"ID"`
	Pattern   string `json:"pattern"             column:"PATTERN"`
	When      string `json:"when"                column:"WHEN"`
	Publisher string `json:"publisher,omitempty" column:"PUBLISHER"`
	CreatedAt string `json:"createdAt"           column:"CREATED"`
}

func printRules(p cli.Process, o *cli.Output, list []review.Rule) error {
	rows := make([]ruleRow, 0, len(list))
	for _, r := range list {
		rows = append(rows, ruleRow{string(r.ID), r.Pattern.String(), string(r.When), r.Publisher, formatOptionalTime(r.CreatedAt)})
	}
	return o.PrintResult(p.Stdout, cli.ListTable(rows))
}
