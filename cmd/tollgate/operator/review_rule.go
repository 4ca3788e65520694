package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
)

func newReviewRule(p cli.Process) *cobra.Command {
	return cli.NewGroup("rule", "Manage the rules that approve without a person",
		newReviewRuleAdd(p), newReviewRuleList(p), newReviewRuleRemove(p))
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
	}
	var d reviewing.RuleDraft
	flags := c.Flags()
	flags.StringVar(&d.Pattern, "pattern", "", "servers: a name, a prefix that ends in *, or *")
	flags.StringVar(&d.When, "when", "", "condition: any or same-origins")
	flags.StringVar(&d.Publisher, "publisher", "",
		"only what this person (a user id) or the publisher with this policy (an ID) submits; default: all")
	cli.RequireFlags(c, "pattern", "when")
	cli.CompleteValues(c, "when", string(review.Any), string(review.SameOrigins))
	return newTableCommand(p, c, posted[ruleRow](at("review-rules"), func(run) any {
		return map[string]string{"pattern": d.Pattern, "when": d.When, "publisher": d.Publisher}
	}))
}

func newReviewRuleList(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "list",
		Short:   "List the rules that approve without a person",
		Example: "  tollgate review rule list --output json",
	}, listed[ruleRow]("reviewRules", func(run) string { return at("review-rules") }))
}

func newReviewRuleRemove(p cli.Process) *cobra.Command {
	return newPlainCommand(p, addManaged(&cobra.Command{
		Use:     "remove ID",
		Short:   "Remove a rule; what it has approved stays listed",
		Example: "  tollgate review rule remove 5b1e7c90-2f4a-4d8e-b3c6-7a9d0e1f2c34",
		Args:    cobra.ExactArgs(1),
	}), removed("review-rules"))
}

// ruleRow is a rule in the output of commands.
type ruleRow struct {
	ID        string `json:"id"                  column:"ID"`
	Pattern   string `json:"pattern"             column:"PATTERN"`
	When      string `json:"when"                column:"WHEN"`
	Publisher string `json:"publisher,omitempty" column:"PUBLISHER"`
	CreatedAt stamp  `json:"createdAt"           column:"CREATED"`
}
