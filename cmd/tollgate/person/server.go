package person

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// listLimit is how many servers a table lists by default.
const listLimit = 30

// serverRun is one run of a command about servers of the registry.
type serverRun struct {
	*Service

	ctx    context.Context // of the command, which the run does not outlive
	target string          // the arguments: NAME[@VERSION], or the words of a search
	change tollgateclient.StatusChange
}

// newServer returns the commands about servers, for everybody: they call the API of the registry.
func newServer(p cli.Process) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the servers of the registry, each with its latest version",
		Example: "  tollgate server list",
	}
	search := &cobra.Command{
		Use: "search WORD...", Short: "List the servers whose name, title and description contain all words, best match first",
		Args: cobra.MinimumNArgs(1), Example: "  tollgate server search weather map -o json",
	}
	show := &cobra.Command{
		Use: "show NAME[@VERSION]", Short: "Show the versions of a server, including deleted ones, and what waits or was refused",
		Example: "  tollgate server show com.example/weather",
	}
	c := cli.NewGroup("server", "Find servers in the registry of a service, and change their status",
		newServerCommand(p, list, serverRun.find), newServerCommand(p, search, serverRun.search),
		newServerCommand(p, show, serverRun.show), newServerOwner(p))
	AddWeb(p, list, func([]string) string { return "/console/" })
	AddWeb(p, search, func(words []string) string {
		return "/console/?" + url.Values{"q": {strings.Join(words, " ")}}.Encode()
	})
	AddWeb(p, show, serverPage)
	for _, s := range []struct {
		use, short string
		status     registry.Status
	}{
		{"deprecate", "Mark a version, or all of a server, as deprecated", registry.StatusDeprecated},
		{"delete", "Delete a version, or all of a server; it can be restored", registry.StatusDeleted},
		{"restore", "Make a deprecated or deleted version, or all of a server, active again", registry.StatusActive},
	} {
		c.AddCommand(newServerChange(p, s.use, s.short, string(s.status)))
	}
	return c
}

// serverPage returns the path of the page of a server, or of one of its versions.
func serverPage(args []string) string {
	name, version, one := strings.Cut(args[0], "@")
	namespace, server, _ := strings.Cut(name, "/")
	path := "/console/servers/" + url.PathEscape(namespace) + "/" + url.PathEscape(server)
	if one {
		path += "/versions/" + url.PathEscape(version)
	}
	return path
}

func newServerChange(p cli.Process, use, short, status string) *cobra.Command {
	c := &cobra.Command{
		Use: use + " NAME[@VERSION] [--message TEXT]", Short: short,
		Example: "  tollgate server " + use + " com.example/weather@1.0.0",
	}
	message := ""
	if status != string(registry.StatusActive) {
		c.Example += " --message 'use 2.0.0'"
		c.Flags().StringVar(&message, "message", "", "reason, shown to users")
	}
	return newServerCommand(p, c, func(r serverRun) ([]tollgateclient.Record, error) {
		r.change.Status, r.change.Message = status, message
		var changed []tollgateclient.Record
		err := r.As(r.ctx, func(ctx context.Context, token string) (err error) {
			changed, err = r.who.Client().SetStatus(ctx, token, r.change)
			return err
		})
		return changed, err
	})
}

// newServerCommand completes a command that prints versions. A command whose use names a server
// completes its name from the service.
func newServerCommand(
	p cli.Process, c *cobra.Command, do func(serverRun) ([]tollgateclient.Record, error),
) *cobra.Command {
	o, target := cli.AddOutput(c), AddTarget(p, c)
	c.Flags().Lookup(serverFlag).Usage = "address of the service; default: $" + ServerVariable + ", or that of the last sign-in"
	if strings.Contains(c.Use, "NAME") {
		c.Args, c.ValidArgsFunction = cobra.ExactArgs(1), target.completeNames
	}
	table, limit := recordTable, new(int)
	if !strings.Contains(c.Use, "NAME") {
		table = listTable
		c.Flags().IntVar(limit, "limit", listLimit, "maximum number of servers; 0 = all, as in json and yaml without it")
		cli.CheckFirst(c, func() (err error) {
			if *limit < 0 {
				err = fmt.Errorf("--limit: %d is less than 0", *limit)
			}
			return err
		})
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		service, err := target.Open()
		if err != nil {
			return ExitError(err)
		}
		r := serverRun{Service: service, ctx: c.Context()}
		if len(args) > 0 {
			r.target = strings.Join(args, " ")
			r.change.Name, r.change.Version, _ = strings.Cut(args[0], "@") // a name has no @
		}
		found, err := do(r)
		if err != nil {
			return ExitError(nameSubject(r.target, err))
		}
		if most := *limit; most > 0 && len(found) > most && (!o.Structured() || c.Flags().Changed("limit")) {
			service.PrintNote("the first %d of %d servers: --limit 0 lists all, 'tollgate server search' finds some", most, len(found))
			found = found[:most]
		}
		return o.PrintResult(p.Stdout, table(found))
	}
	return c
}

// find returns the latest versions of the servers whose names contain the words.
func (r serverRun) find() ([]tollgateclient.Record, error) {
	query := url.Values{"version": {"latest"}}
	if r.target != "" {
		query.Set("search", r.target)
	}
	var all []tollgateclient.Record
	request := tollgateclient.Request{Method: http.MethodGet, Path: "/v0.1/servers", Query: query}
	send := func(q tollgateclient.Request, into any) error { return r.CallReader(r.ctx, q, into) }
	err := tollgateclient.ReadPages(request, "servers", send, func(items json.RawMessage) error {
		page, err := tollgateclient.ParseRecords(items)
		all = append(all, page...)
		return err
	})
	return all, err
}

// search returns the servers that the catalogue of the service finds. A service without a console
// finds names that contain the words.
func (r serverRun) search() (all []tollgateclient.Record, err error) {
	for page := 1; ; page++ {
		var found struct {
			Servers  json.RawMessage
			Metadata struct {
				Pages     int
				Catalogue struct{ Done, Servers int }
			}
		}
		err := r.CallReader(r.ctx, tollgateclient.Request{
			Method: http.MethodGet, Path: "/console/", Query: url.Values{"q": {r.target}, "page": {strconv.Itoa(page)}},
		}, &found)
		if fault.Is(err, fault.NotFound) {
			return r.find()
		}
		if err != nil {
			return nil, err
		}
		servers, err := tollgateclient.ParseRecords(found.Servers)
		all = append(all, servers...)
		if err != nil || page >= found.Metadata.Pages {
			if c := found.Metadata.Catalogue; c.Servers > 0 {
				r.PrintNote("the catalogue is being made: %d of %d servers are in it; of the others this list has those "+
					"whose name matches", c.Done, c.Servers)
			}
			return all, err
		}
	}
}

func (r serverRun) show() ([]tollgateclient.Record, error) {
	return r.versions(r.ctx, r.who, r.change.Name, r.change.Version)
}

// completeNames completes the names of servers from the service.
func (t *Target) completeNames(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	service, err := t.Open()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, _ := serverRun{Service: service, ctx: c.Context(), target: begun}.find() // without the service nothing is completed
	var names []string
	for i := range found {
		if strings.HasPrefix(found[i].Name, begun) {
			names = append(names, found[i].Name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// newVersion returns the command that prints the version of the program.
func newVersion(p cli.Process) *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Print the version of the program", Example: "  tollgate version -o json"}
	o := cli.AddOutput(c)
	c.RunE = func(*cobra.Command, []string) error {
		type row struct {
			Version  string `json:"version"            column:"VERSION"`
			Revision string `json:"revision,omitempty" column:"REVISION"`
			Time     string `json:"time,omitempty"     column:"TIME"`
		}
		return o.PrintResult(p.Stdout, cli.RowTable(row{p.Build.Version, p.Build.Revision, p.Build.Time}))
	}
	return c
}

// ownerRow is who answers for a server in the output of the command.
type ownerRow struct {
	Server  string `json:"server"  column:"SERVER"`
	Owner   string `json:"owner"   column:"OWNER"`
	Contact string `json:"contact" column:"CONTACT"`
}

func newServerOwner(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use: "owner NAME [--owner TEAM] [--contact ADDRESS]", Short: "Show who answers for a server, or set it; empty values remove it",
		Example: "  tollgate server owner com.example/weather --owner 'Team Weather' --contact weather@example.com",
		Args:    cobra.ExactArgs(1),
	}
	o, target := cli.AddOutput(c), AddTarget(p, c)
	c.Flags().Lookup(serverFlag).Usage = "address of the service; default: $" + ServerVariable + ", or that of the last sign-in"
	c.ValidArgsFunction = target.completeNames
	owner := c.Flags().String("owner", "", "who answers for the server, for example a team")
	contact := c.Flags().String("contact", "", "an e-mail address or an https URL")
	c.RunE = func(c *cobra.Command, args []string) error {
		service, err := target.Open()
		if err != nil {
			return ExitError(err)
		}
		row := ownerRow{Server: args[0]}
		request := tollgateclient.Request{Method: http.MethodGet, Path: "/v0.1/x/dev.tollgate/servers/" + url.PathEscape(args[0]) + "/owner"}
		err = service.CallReader(c.Context(), request, &row)
		if sets := c.Flags().Changed; err == nil && (sets("owner") || sets("contact")) {
			if sets("owner") {
				row.Owner = *owner
			}
			if sets("contact") {
				row.Contact = *contact
			}
			request.Method, request.Body = http.MethodPut, map[string]string{"owner": row.Owner, "contact": row.Contact}
			err = service.Call(c.Context(), request, &row)
		}
		if err != nil {
			return ExitError(nameSubject(args[0], err))
		}
		return o.PrintResult(p.Stdout, cli.RowTable(row))
	}
	return c
}
