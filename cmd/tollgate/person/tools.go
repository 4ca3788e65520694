package person

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/toollist"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// toolsRun is one run of the command, with its flags.
type toolsRun struct {
	cli.Process

	out                      *cli.Output
	target                   *Target
	name, version            string
	remote                   string
	index                    int // of the package; negative without one
	headers, variables       []string
	dryRun, diff, byIdentity bool
}

// newTools returns the commands about tool lists.
func newTools(p cli.Process) *cobra.Command {
	return cli.NewGroup("tools", "Record what the versions of servers show to a model", newToolsRecord(p))
}

func newToolsRecord(p cli.Process) *cobra.Command {
	r := &toolsRun{Process: p}
	c := &cobra.Command{
		Use:   "record NAME@VERSION (--remote URL | --package INDEX)",
		Short: "Read the tools of a remote or a package, and send the list to the service",
		Long: "Connect to a remote of the version, or start one of its packages on this machine by\n" +
			"npx, uvx, docker or dnx, read its tools, prompts and resource templates, and send\n" +
			"the list to the service, for which you need a grant to publish or to review. The\n" +
			"service itself never starts a package.\n\n" +
			"Values come from the environment, never from an argument: --header X-Api-Key sends\n" +
			"the variable X_API_KEY to the remote, --env API_KEY gives API_KEY to the package,\n" +
			"which gets no other variables but PATH, HOME and those of the temporary folder.\n\n" +
			"With --diff the exit code is 2 if the list is not the approved one, and 0 if it is.",
		Example: "  tollgate tools record com.example/weather@1.0.0 --remote https://weather.example.org/mcp --dry-run",
		Args:    func(c *cobra.Command, args []string) error { return ExitError(cobra.ExactArgs(1)(c, args)) },
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return ExitError(err) })
	r.out, r.target = cli.AddOutput(c), AddTarget(p, c)
	c.Flags().Lookup(serverFlag).Usage = "address of the service; default: $" + ServerVariable + ", or that of the last sign-in"
	c.Flags().StringVar(&r.remote, "remote", "", "URL of a remote of the version")
	c.Flags().IntVar(&r.index, "package", -1, "index of a package of the version, from 0")
	c.Flags().StringArrayVar(&r.headers, "header", nil, "name of a header for the remote; its value is in the variable of this name")
	c.Flags().StringArrayVar(&r.variables, "env", nil, "name of a variable for the package; may be repeated")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "print the list as JSON, and send nothing")
	c.Flags().BoolVar(&r.diff, "diff", false, "print what differs from the approved list, and send nothing")
	c.Flags().BoolVar(&r.byIdentity, "oidc", false, "send as the CI job that runs the command, by its ID token")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.name, r.version, _ = strings.Cut(args[0], "@") // a name has no @
		return ExitError(r.run(c.Context()))
	}
	return c
}

// check returns an error if the flags and arguments contradict each other.
func (r *toolsRun) check() error {
	switch {
	case r.name == "" || r.version == "":
		return errors.New("name a version: NAME@VERSION")
	case (r.remote == "") == (r.index < 0):
		return errors.New("name either --remote, the URL of a remote, or --package, the index of a package from 0")
	case r.remote == "" && len(r.headers) > 0:
		return errors.New("--header needs --remote: a package gets variables, by --env")
	case r.remote != "" && len(r.variables) > 0:
		return errors.New("--env needs --package: a remote gets headers, by --header")
	case r.dryRun && r.diff:
		return errors.New("--dry-run and --diff exclude each other")
	case r.byIdentity && (r.dryRun || r.diff):
		return errors.New("--oidc is for a list that is sent: --dry-run and --diff send nothing")
	}
	return nil
}

func (r *toolsRun) run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	named, err := r.namedValues()
	if err != nil {
		return err
	}
	var service *Service
	if r.remote == "" || !r.dryRun { // the dry run of a remote needs no service
		if service, err = r.target.Open(); err != nil {
			return err
		}
	}
	list, err := r.readList(ctx, service, named)
	switch {
	case err != nil:
		return err
	case r.dryRun:
		return r.printList(list)
	case r.diff:
		return r.compare(ctx, service, list)
	}
	return r.send(ctx, service, list)
}

// The names of variables and headers.
var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)
)

// ownVariables is how the variables of Tollgate begin, for example those with tokens.
const ownVariables = "TOLLGATE_"

// namedValues returns the values of the named headers and variables, all from the environment. An error has no text
// that may be a value.
func (r *toolsRun) namedValues() (map[string]string, error) {
	values := map[string]string{}
	add := func(flag, name, variable string, form *regexp.Regexp) error {
		if !form.MatchString(name) {
			return fmt.Errorf("%s takes a name only: its value comes from the environment", flag)
		}
		if strings.HasPrefix(strings.ToUpper(variable), ownVariables) {
			return fmt.Errorf("%s %s: no server gets a variable of Tollgate", flag, name)
		}
		if values[name] = r.Getenv(variable); values[name] == "" {
			return fmt.Errorf("%s %s needs a value in the variable %s", flag, name, variable)
		}
		return nil
	}
	for _, name := range r.headers {
		if err := add("--header", name, strings.ToUpper(strings.ReplaceAll(name, "-", "_")), headerName); err != nil {
			return nil, err
		}
	}
	for _, name := range r.variables {
		if err := add("--env", name, name, variableName); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// readList reads the list of the remote or of the package. Its errors have none of the named values, which a server may
// repeat.
func (r *toolsRun) readList(ctx context.Context, s *Service, named map[string]string) (list tools.List, err error) {
	if r.remote != "" {
		list, err = toollist.ReadRemote(ctx, toollist.Remote{URL: r.remote, Header: named, Timeout: toollist.RemoteTimeout})
	} else {
		var program toollist.Program
		if program, err = r.newProgram(ctx, s, named); err != nil {
			return list, err
		}
		list, err = toollist.ReadProgram(ctx, program)
	}
	if err == nil || ctx.Err() != nil {
		return list, err
	}
	text := cli.ReplaceControls(cli.ErrorSentence(err))
	for name, value := range named {
		text = strings.ReplaceAll(text, value, "<"+name+">")
	}
	return list, errors.New(text)
}

// printList prints the list as it would be sent.
func (r *toolsRun) printList(list tools.List) error {
	body, err := r.newBody(list)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, body, "", "  "); err != nil {
		return fmt.Errorf("print the list: %w", err)
	}
	return cli.PrintLine(r.Stdout, text.String())
}

// newBody returns the list with its place, as the service takes it.
func (r *toolsRun) newBody(list tools.List) (json.RawMessage, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(list.Canonical(), &body); err != nil {
		return nil, fmt.Errorf("write the list: %w", err)
	}
	if r.remote == "" {
		body["package"] = json.RawMessage(strconv.Itoa(r.index))
	} else {
		remote, err := json.Marshal(r.remote)
		if err != nil {
			return nil, fmt.Errorf("write the list: %w", err)
		}
		body["remote"] = remote
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write the list: %w", err)
	}
	return text, nil
}

// path is that of the lists of the version.
func (r *toolsRun) path() string {
	return "/v0.1/x/dev.tollgate/servers/" + url.PathEscape(r.name) + "/versions/" + url.PathEscape(r.version) + "/tools"
}

// shownLists is an answer with all lists of a version.
type shownLists struct {
	Lists []json.RawMessage `json:"lists"`
}

// shownList is what people see of a list.
type shownList struct {
	Part    string            `json:"-"      column:"PART"`
	State   string            `json:"state"  column:"STATE"`
	Source  string            `json:"source" column:"SOURCE"`
	Count   int               `json:"-"      column:"TOOLS"`
	At      string            `json:"at"     column:"AT"`
	Remote  string            `json:"remote,omitempty"`
	Package *int              `json:"package,omitempty"`
	Mark    string            `json:"mark"`
	Tools   []json.RawMessage `json:"tools"`
}

// send sends the list, and prints all lists of the version.
func (r *toolsRun) send(ctx context.Context, s *Service, list tools.List) error {
	body, err := r.newBody(list)
	if err != nil {
		return err
	}
	var answer shownLists
	request := tollgateclient.Request{Method: http.MethodPut, Path: r.path(), Body: body}
	if r.byIdentity {
		var token string
		if token, err = s.exchangeIdentity(ctx, s.who.Client()); err == nil {
			err = s.who.Client().Call(ctx, token, request, &answer)
		}
	} else {
		err = s.Call(ctx, request, &answer)
	}
	if err != nil {
		return nameSubject(r.name+"@"+r.version, err)
	}
	all := make([]shownList, len(answer.Lists))
	for i, text := range answer.Lists {
		l := &all[i]
		if err := json.Unmarshal(text, l); err != nil {
			return fault.Wrap(fault.Internal, "the service shows lists in another form", err)
		}
		if l.Part, l.Count = l.Remote, len(l.Tools); l.Package != nil {
			l.Part = "package " + strconv.Itoa(*l.Package)
		}
	}
	return r.out.PrintResult(r.Stdout, cli.ListTable(all))
}

// errDiffers is the error of a list that is not the approved one.
var errDiffers = errors.New("the list differs from the approved one")

// compare prints what differs from the approved list.
func (r *toolsRun) compare(ctx context.Context, s *Service, list tools.List) error {
	approved, found, err := r.approvedList(ctx, s)
	if err != nil {
		return nameSubject(r.name+"@"+r.version, err)
	}
	type row struct {
		Kind     string `json:"kind"`
		Tool     string `json:"tool,omitempty"`
		Sentence string `json:"sentence"       column:"DIFFERENCE"`
	}
	differences := tools.Compare(approved, list)
	table := cli.TableOf(differences, func(d *tools.Difference) row { return row{string(d.Kind), d.Tool, d.Sentence} })
	if err := r.out.PrintResult(r.Stdout, table); err != nil {
		return err
	}
	switch {
	case !found:
		return &cli.CodedError{Code: cli.ExitLimit, Err: errors.New("no list of it is approved")}
	case len(differences) > 0:
		return &cli.CodedError{Code: cli.ExitLimit, Err: errDiffers}
	}
	return nil
}

// approvedList returns the approved list that was recorded of the remote or package, and false if there is none.
func (r *toolsRun) approvedList(ctx context.Context, s *Service) (tools.List, bool, error) {
	var answer shownLists
	if err := s.CallReader(ctx, tollgateclient.Request{Method: http.MethodGet, Path: r.path()}, &answer); err != nil {
		return tools.List{}, false, err
	}
	for _, text := range answer.Lists {
		var l shownList
		if err := json.Unmarshal(text, &l); err != nil {
			return tools.List{}, false, fault.Wrap(fault.Internal, "the service shows lists in another form", err)
		}
		same := l.Package != nil && *l.Package == r.index
		if r.remote != "" {
			same = l.Package == nil && registry.ComparableURL(l.Remote) == registry.ComparableURL(r.remote)
		}
		if same && l.State == string(tools.Approved) && l.Source == string(tools.Recorded) {
			list, err := tools.Parse(text)
			return list, err == nil, err
		}
	}
	return tools.List{}, false, nil
}
