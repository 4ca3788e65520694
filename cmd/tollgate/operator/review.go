package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
)

func newReview(p cli.Process) *cobra.Command {
	return cli.NewGroup("review", "Approve or reject what was published, if REGISTRY_REVIEW is on",
		newReviewList(p), newReviewShow(p), newReviewApprove(p), newReviewRefusal(p, "reject", "Reject what waits for review", "the remote is not ours"),
		newReviewRefusal(p, "request-changes", "Request changes of what waits for review, which its publisher then submits again",
			"describe the tools"), newReviewRule(p))
}

func newReviewList(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:     "list [--state STATE] [--server NAME]",
		Short:   "List what waits for review, the oldest first",
		Example: "  tollgate review list\n  tollgate review list --state rejected --output json",
	}
	state := c.Flags().String("state", string(review.Pending), "pending, approved, rejected, changes_requested or superseded")
	server := c.Flags().String("server", "", "name of a server; all without it")
	cli.CompleteValues(c, "state", string(review.Pending), string(review.Approved), string(review.Rejected),
		string(review.ChangesRequested), string(review.Superseded))
	newTableCommand(p, c, func(r run) (cli.Table, error) {
		query := url.Values{"state": {*state}}
		if *server != "" {
			query.Set("server", *server)
		}
		list, err := listOf[reviewRow](r, reviewPath(), "reviews", query)
		for i := range list {
			list[i] = list[i].withEmails(r)
		}
		return cli.ListTable(list), err
	})
	person.AddWeb(p, c, func([]string) string { return "/console/reviews" })
	return c
}

func newReviewShow(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "show ID",
		Short:   "Show one review with what it changes",
		Example: "  tollgate review show 9e0c4ad4-3f52-4d0e-8a55-0c3ad2f1b6a7",
	}, func(r run) (cli.Table, error) {
		var v shownReview
		err := r.send(http.MethodGet, reviewPath(r.args[0]), nil, &v)
		v.reviewRow = v.withEmails(r)
		return v.table(), err
	})
}

func newReviewApprove(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "approve ID | --all-pending",
		Short: "Approve what waits for review, so that it is listed",
		Long: "Approve one review, or everything that waits.\n\n" +
			"After REGISTRY_REVIEW was switched off, what still waits is listed only after\n" +
			"--all-pending.",
		Example: "  tollgate review approve 9e0c4ad4-3f52-4d0e-8a55-0c3ad2f1b6a7\n  tollgate review approve --all-pending",
		Args:    cobra.MaximumNArgs(1),
	}
	all := c.Flags().Bool("all-pending", false, "approve everything that waits")
	comment := c.Flags().String("comment", "", "comment for the publisher")
	o := cli.AddOutput(c)
	cli.CheckFirst(c, func() error {
		if *all == (c.Flags().NArg() == 1) {
			return errors.New("give either the ID of a review or --all-pending")
		}
		return nil
	})
	return newPlainCommand(p, c, func(r run) error {
		if *all {
			return approveAll(r, p, o, *comment)
		}
		row, err := decideReview(r, "approve", r.args[0], *comment)
		if err != nil {
			return err
		}
		return o.PrintResult(p.Stdout, cli.ListTable([]reviewRow{row}))
	})
}

// approveAll approves everything that waits and prints it. It returns an error if something was
// refused.
func approveAll(r run, p cli.Process, o *cli.Output, comment string) error {
	rows, err := listOf[reviewRow](r, reviewPath(), "reviews", url.Values{"state": {string(review.Pending)}})
	refused := 0
	for i := 0; i < len(rows) && err == nil; i++ {
		row := &rows[i]
		if alone := row.alone(); alone != "" {
			refused++
			_, _ = fmt.Fprintf(p.Stderr, "not approved: %s %s: %s, and approve %s\n", row.ServerName, row.Version, alone, row.ID)
			*row = row.withEmails(r)
			continue
		}
		approved, problem := decideReview(r, "approve", row.ID, comment)
		switch {
		case problem == nil:
			*row = approved
			continue
		case fault.Is(problem, fault.Unavailable), fault.Is(problem, fault.Internal):
			err = problem
			continue
		}
		refused++
		// the error below counts them too
		_, _ = fmt.Fprintf(p.Stderr, "not approved: %s %s: %s\n", row.ServerName, row.Version, cli.ErrorSentence(problem))
		*row = row.withEmails(r)
	}
	if err == nil {
		err = o.PrintResult(p.Stdout, cli.ListTable(rows))
	}
	if err == nil && refused > 0 {
		err = fmt.Errorf("%s could not be approved", cli.FormatCount(refused, "review", "reviews"))
	}
	return err
}

// decideReview decides a review and returns it.
func decideReview(r run, decision, id, comment string) (row reviewRow, err error) {
	err = r.send(http.MethodPost, reviewPath(id, decision), map[string]string{"comment": comment}, &row)
	return row.withEmails(r), err
}

// reviewPath returns a path of the API of reviewers.
func reviewPath(parts ...string) string {
	path := "/v0.1/x/dev.tollgate/reviews"
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// newReviewRefusal returns the command of a decision that refuses a review.
func newReviewRefusal(p cli.Process, decision, short, comment string) *cobra.Command {
	c := &cobra.Command{
		Use:     decision + " ID --comment TEXT",
		Short:   short,
		Example: "  tollgate review " + decision + " 9e0c4ad4-3f52-4d0e-8a55-0c3ad2f1b6a7 --comment '" + comment + "'",
	}
	why := c.Flags().String("comment", "", "why, for the publisher")
	cli.RequireFlags(c, "comment")
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		row, err := decideReview(r, decision, r.args[0], *why)
		return cli.ListTable([]reviewRow{row}), err
	})
}

// reviewRow is a review in the output of commands.
type reviewRow struct {
	ID          string `json:"id"                  column:"ID"`
	ServerName  string `json:"serverName"          column:"SERVER"`
	Version     string `json:"version"             column:"VERSION"`
	Kind        string `json:"kind"                column:"KIND"`
	State       string `json:"state"               column:"STATE"`
	SubmittedBy string `json:"submittedBy"         column:"SUBMITTED BY"`
	Submitter   string `json:"submitterEmail,omitempty"`
	SubmittedAt stamp  `json:"submittedAt"         column:"SUBMITTED"`
	Policy      string `json:"policy,omitempty"`
	DecidedBy   string `json:"decidedBy,omitempty"`
	DecidedAt   stamp  `json:"decidedAt,omitempty"`
	Comment     string `json:"comment,omitempty"`
	Rule        string `json:"rule,omitempty"`
	Danger      bool   `json:"danger,omitempty"`
	Two         bool   `json:"twoApprovals,omitempty"`
	First       *struct {
		By string `json:"by"`
		At stamp  `json:"at"`
	} `json:"firstApproval,omitempty"`
	Reason string `json:"reason,omitempty"`
	Source string `json:"source,omitempty"`

	ToolLists []reviewedTools `json:"toolLists,omitempty"`
}

// alone returns why a review is not approved together with others; empty if it is.
func (row *reviewRow) alone() string {
	switch {
	case len(row.ToolLists) > 0:
		return "it has tools: read them"
	case row.Two:
		return "it is dangerous, and two approve it: read it"
	}
	return ""
}

// reviewedTools is a tool list about which a review decides.
type reviewedTools struct {
	Remote      string           `json:"remote,omitempty"`
	Package     *int             `json:"package,omitempty"`
	Source      string           `json:"source"`
	By          string           `json:"by"`
	Mark        string           `json:"mark"`
	Differences []toolDifference `json:"differences"`
	Hints       []toolHint       `json:"hints"`
}

type toolDifference struct {
	Kind     string `json:"kind"`
	Tool     string `json:"tool"`
	Danger   string `json:"danger"`
	Sentence string `json:"sentence"`
}

type toolHint struct {
	Tool   string `json:"tool"`
	Where  string `json:"where"`
	Found  string `json:"found"`
	Reason string `json:"reason"`
}

// withEmails returns a review with the e-mail addresses of people.
func (row reviewRow) withEmails(r run) reviewRow {
	if row.Submitter != "" { // an operator's other calls need grants that a reviewer lacks
		row.SubmittedBy, row.Submitter = row.Submitter, ""
	}
	row.SubmittedBy, row.DecidedBy = r.emailOf(row.SubmittedBy), r.emailOf(row.DecidedBy)
	if row.First != nil {
		row.First.By = r.emailOf(row.First.By)
	}
	return row
}

// shownReview is a review with what it changes, as JSON.
type shownReview struct {
	reviewRow

	Document json.RawMessage `json:"document"`
	Replaces json.RawMessage `json:"replaces"`
	Diff     []reviewChange  `json:"diff"`
	Checks   []reviewCheck   `json:"checks"`
}

type reviewChange struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before"` // null without one
	After  json.RawMessage `json:"after"`
}

type reviewCheck struct {
	RegistryType string `json:"registryType"`
	Identifier   string `json:"identifier"`
	State        string `json:"state"`
	Message      string `json:"message"`
}

// table returns what a person needs to decide: the facts, the packages, and each value that changes or,
// for a new server, the document.
func (v *shownReview) table() cli.Table {
	t := cli.Table{Header: []string{"FIELD", "VALUE"}}
	add := func(field, value string) {
		if value != "" {
			t.Rows = append(t.Rows, []string{field, value})
		}
	}
	for _, fact := range [][2]string{
		{"id", v.ID}, {"server", v.ServerName}, {"version", v.Version}, {"kind", v.Kind}, {"state", v.State},
		{"submitted by", v.SubmittedBy}, {"requested because", v.Reason}, {"document from", v.Source}, {"policy", v.Policy}, {"submitted", string(v.SubmittedAt)},
		{"decided by", v.DecidedBy}, {"decided", string(v.DecidedAt)}, {"comment", v.Comment}, {"rule", v.Rule},
	} {
		add(fact[0], fact[1])
	}
	if v.First != nil {
		add("1 of 2 approvals", v.First.By+", "+string(v.First.At))
	}
	for i, check := range v.Checks {
		add("package "+strconv.Itoa(i),
			strings.TrimSpace(check.RegistryType+" "+check.Identifier+": "+check.State+" "+check.Message))
	}
	for _, l := range v.ToolLists {
		of := l.Remote
		if l.Package != nil {
			of = "package " + strconv.Itoa(*l.Package)
		}
		for _, d := range l.Differences {
			add("tools of "+of, d.Sentence)
		}
		for _, h := range l.Hints {
			add("hint", h.Reason+": "+h.Tool+" "+h.Where+" \""+h.Found+"\"")
		}
	}
	t.Value = *v
	if v.Kind == string(review.Tools) {
		return t
	}
	for _, d := range v.Diff {
		add(d.Path, formatJSON(d.Before)+" → "+formatJSON(d.After))
	}
	if v.Replaces == nil || string(v.Replaces) == "null" {
		add("document", string(v.Document))
	}
	return t
}

// formatJSON returns a value as text; null is a value that is not there.
func formatJSON(value json.RawMessage) string {
	if value == nil || string(value) == "null" {
		return "(none)"
	}
	return string(value)
}

func newReviewRule(p cli.Process) *cobra.Command {
	return cli.NewGroup("rule", "Manage the rules that approve without a person",
		newReviewRuleAdd(p), newReviewRuleList(p), newRemoval(p, "review-rules", "Remove a rule; what it has approved stays listed",
			"review rule remove 5b1e7c90-2f4a-4d8e-b3c6-7a9d0e1f2c34"))
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

// ruleRow is a rule in the output of commands.
type ruleRow struct {
	ID        string `json:"id"                  column:"ID"`
	Pattern   string `json:"pattern"             column:"PATTERN"`
	When      string `json:"when"                column:"WHEN"`
	Publisher string `json:"publisher,omitempty" column:"PUBLISHER"`
	CreatedAt stamp  `json:"createdAt"           column:"CREATED"`
}
