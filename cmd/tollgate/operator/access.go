package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/decisionlog"
	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/rest/accessjson"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/registering"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
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
	rules.less = func(a, b object) int { // the order in which they are tried
		first, _ := a["order"].(float64)
		second, _ := b["order"].(float64)
		return cmp.Or(cmp.Compare(first, second), cmp.Compare(fmt.Sprint(b["effect"]), fmt.Sprint(a["effect"])))
	}
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
	}
	var d deciding.Draft
	flags := c.Flags()
	flags.StringVar(&d.Subject, "subject", "", "whose call: person:EMAIL, service:NAME, group:PROVIDER/GROUP, everyone or anyone")
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
		RunE: func(c *cobra.Command, args []string) error {
			rules, err := readAccessRules(c.Context(), p, args[0])
			if err != nil {
				return err
			}
			return cli.PrintLine(p.Stdout, fmt.Sprintf("%d access rules are correct", len(rules)))
		},
	}
}

func newAccessSimulate(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "simulate --old FILE|DIR --new FILE|DIR LOG",
		Short: "Compare what two sets of access rules do to calls of a log",
		Long: "Decide the calls of a log by two sets of access rules, in files as 'tollgate access check'\n" +
			"reads them, and say which are allowed, denied or challenged by one of them only. A service\n" +
			"writes the log with DECIDE_LOG=all and LOG_FORMAT=json; '-' reads standard input. What no\n" +
			"rule decides, ACCESS_DEFAULT does.\n\n" +
			"Groups and grants of callers are not in the log. With --server they are those that the\n" +
			"service has now, of people and service accounts that are active; otherwise a call whose\n" +
			"answer depends on them is uncertain. Calls that no rule could change, for example of a server that was not listed,\n" +
			"are skipped.\n\n" +
			"The exit code is 1 if a line is malformed, and 2 if more calls than --max-new-denials are no\n" +
			"longer allowed.",
		Example: "  tollgate access simulate --old state --new state.yaml --max-new-denials 0 decisions.log",
		Args:    cobra.ExactArgs(1),
	}
	before := c.Flags().String("old", "", "file or folder with the rules in force (required)")
	after := c.Flags().String("new", "", "file or folder with the changed rules (required)")
	most := c.Flags().Int("max-new-denials", 0, "exit with code 2 if more calls are no longer allowed; default: any number")
	cli.RequireFlags(c, "old", "new")
	o := cli.AddOutput(c)
	simulate := func(ctx context.Context, name string, s callSimulation) error {
		var err error
		if s.before, err = compileAccess(ctx, p, *before); err == nil {
			s.after, err = compileAccess(ctx, p, *after)
		}
		if err == nil {
			err = s.read(p, name)
		}
		if err == nil {
			err = s.print(o, p.Stdout)
		}
		if err == nil && c.Flags().Changed("max-new-denials") && s.report.NewlyDenied > *most {
			err = &cli.CodedError{Code: cli.ExitLimit, Err: fmt.Errorf(
				"the new rules no longer allow %d calls, and --max-new-denials is %d", s.report.NewlyDenied, *most)}
		}
		return err
	}
	c.RunE = func(c *cobra.Command, args []string) error { return simulate(c.Context(), args[0], callSimulation{}) }
	return addRemote(p, c, []func(run) error{func(r run) error {
		return simulate(r.ctx, r.args[0], callSimulation{find: r.memberOf, members: map[string]*access.Member{}})
	}})
}

// memberOf returns who has made a call of a log, with the present groups and grants; nil for those of
// whom the service does not know them.
func (r run) memberOf(call *decisionlog.Call) (*access.Member, error) {
	if kind := call.Subject.Kind(); kind != access.Person && kind != access.Service {
		return nil, nil //nolint:nilnil // it is not known
	}
	var e accessjson.Explanation
	err := r.send(http.MethodPost, at("access", "explain"), map[string]any{
		"subject": call.Subject.String(), "server": call.Listing.Name.String(), "limit": 1,
	}, &e)
	if tollgateclient.HasCode(err, "rule_violated") { // it is not active any more
		return nil, nil //nolint:nilnil // likewise
	}
	if err != nil {
		return nil, err
	}
	m, err := e.Member(0)
	return &m, err
}

// compileAccess returns the access rules of a file or a folder, with the default of the settings.
func compileAccess(ctx context.Context, p cli.Process, path string) (*access.Snapshot, error) {
	effect, err := fault.OneOf("ACCESS_DEFAULT", cmp.Or(p.Getenv("ACCESS_DEFAULT"), string(access.Deny)), access.Deny, access.Allow)
	if err != nil {
		return nil, err
	}
	objects, err := readAccessRules(ctx, p, path)
	rules := make([]access.Rule, len(objects))
	for i := 0; i < len(objects) && err == nil; i++ {
		rules[i], err = access.ParseRule(objects[i].Fields)
	}
	return access.Compile(access.Options{Default: effect}, rules, nil), err
}

// readAccessRules returns the access rules of a file or a folder.
func readAccessRules(ctx context.Context, p cli.Process, path string) ([]audit.Object, error) {
	document, err := readState(ctx, p, path)
	if err != nil {
		return nil, err
	}
	checker := declaring.New(declaring.Ports{Managed: inprocess.NewKinds(
		new(federating.Providers), ruling.New(ruling.Ports{}), new(viewing.Operator), new(mirroring.Operator), new(delegating.Services),
		registering.NewClients(registering.Ports{}), registering.NewResources(registering.Ports{}), watching.NewSources(watching.SourcePorts{}),
		viewing.NewCollections(nil, nil, nil), authorizing.Config{On: true},
	)})
	return checker.CheckAccessRules(ctx, &document)
}

// callSimulation decides calls by two sets of rules.
type callSimulation struct {
	before, after *access.Snapshot
	report        callReport
	changes       map[callChange]int
	// find is run.memberOf, and members has what it has returned; nil without a service.
	find    func(*decisionlog.Call) (*access.Member, error)
	members map[string]*access.Member
}

// callReport says how two sets of rules differ.
type callReport struct {
	Calls        int          `json:"calls"        column:"CALLS"`
	Skipped      int          `json:"skipped"      column:"SKIPPED"`
	Same         int          `json:"same"         column:"SAME"`
	Uncertain    int          `json:"uncertain"    column:"UNCERTAIN"`
	NewlyAllowed int          `json:"newlyAllowed" column:"NEWLY ALLOWED"`
	NewlyDenied  int          `json:"newlyDenied"  column:"NO LONGER ALLOWED"`
	Other        int          `json:"other"        column:"OTHERWISE REFUSED"`
	Changes      []callChange `json:"changes"`
}

// callChange is what is the same in calls that change, with their number.
type callChange struct {
	Calls   int    `json:"calls"   column:"CALLS"`
	Subject string `json:"subject" column:"SUBJECT"`
	Server  string `json:"server"  column:"SERVER"`
	Method  string `json:"method"  column:"METHOD"`
	Tool    string `json:"tool"    column:"TOOL"`
	Old     string `json:"old"     column:"OLD"`
	OldRule string `json:"oldRule" column:"OLD RULE"`
	New     string `json:"new"     column:"NEW"`
	NewRule string `json:"newRule" column:"NEW RULE"`
}

// maxCallChanges is how many changes a report lists. What exceeds it is counted only.
const maxCallChanges = 1000

// read decides all calls of a log.
func (s *callSimulation) read(p cli.Process, name string) error {
	in := p.Stdin
	if name != "-" {
		f, err := os.Open(name) // #nosec G304 -- the operator names the file
		if err != nil {
			return fmt.Errorf("log of decisions: %w", err)
		}
		defer func() { _ = f.Close() }() // it was opened for reading
		in = f
	}
	s.changes = map[callChange]int{}
	for r := decisionlog.NewReader(in); ; {
		call, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.decide(&call); err != nil {
			return err
		}
	}
}

func (s *callSimulation) decide(call *decisionlog.Call) error {
	s.report.Calls++
	if !call.ByRules {
		s.report.Skipped++
		return nil
	}
	c := access.Compare(s.before, s.after, &call.Question, &call.Listing)
	if c.Uncertain && s.find != nil {
		if err := s.complete(call); err != nil {
			return err
		}
		c = access.Compare(s.before, s.after, &call.Question, &call.Listing)
	}
	switch {
	case c.Same:
		s.report.Same++
	case c.Uncertain:
		s.report.Uncertain++
	default:
		s.change(call, &c)
	}
	return nil
}

// complete gives the caller the groups and grants that the service knows.
func (s *callSimulation) complete(call *decisionlog.Call) (err error) {
	name := call.Subject.String()
	found, known := s.members[name]
	if !known {
		if found, err = s.find(call); err != nil {
			return err
		}
		s.members[name] = found
	}
	if found != nil {
		subject := access.NewSubject(*found).WithTrust(call.Subject.Trust()).WithClient(call.Subject.Client())
		call.Subject = &subject
	}
	return nil
}

func (s *callSimulation) change(call *decisionlog.Call, c *access.Change) {
	switch {
	case c.Old.Effect == access.Allow:
		s.report.NewlyDenied++
	case c.New.Effect == access.Allow:
		s.report.NewlyAllowed++
	default:
		s.report.Other++
	}
	key := callChange{
		0, call.Subject.String(), call.Listing.Name.String(), call.Call.Method, call.Call.Tool(),
		string(c.Old.Effect), string(c.Old.Rule), string(c.New.Effect), string(c.New.Rule),
	}
	if _, known := s.changes[key]; known || len(s.changes) < maxCallChanges {
		s.changes[key]++
	}
}

// print prints the report as JSON or as tables.
func (s *callSimulation) print(o *cli.Output, w io.Writer) error {
	s.report.Changes = []callChange{}
	for change, n := range s.changes {
		change.Calls = n
		s.report.Changes = append(s.report.Changes, change)
	}
	slices.SortFunc(s.report.Changes, func(a, b callChange) int {
		return cmp.Or(b.Calls-a.Calls, cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	if o.Structured() {
		return o.PrintResult(w, cli.Table{Value: s.report})
	}
	if err := cli.PrintTable(w, cli.ListTable([]callReport{s.report})); err != nil || len(s.report.Changes) == 0 {
		return err
	}
	if err := cli.PrintLine(w, ""); err != nil {
		return err
	}
	return cli.PrintTable(w, cli.ListTable(s.report.Changes))
}
