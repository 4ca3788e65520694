package operator

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

func newView(p cli.Process) *cobra.Command {
	return cli.NewGroup("view", "Manage views: parts of the registry with their own paths",
		newViewAdd(p), newViewList(p), newViewRemove(p), newViewToken(p))
}

func newViewAdd(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "add NAME [--include PATTERN ...] [--exclude PATTERN ...] [--access people --group PROVIDER/GROUP ...]",
		Short: "Add a view",
		Long: "Add a view: the servers that a pattern of --include selects and none of --exclude.\n" +
			"Without --include it has all servers but those. Clients read it below\n" +
			"/registries/NAME. It is there at most a second later on all instances.\n\n" +
			"With --access token, clients need a token of the view: see 'tollgate view token add'.\n" +
			"With --access people, people who are signed in read it: all of them, or those of --group\n" +
			"and --person, of which there may be 50. For others there is no such view. A public view\n" +
			"stays public with REGISTRY_READ=people.",
		Example: "  tollgate view add data --include 'com.example.data/*' --exclude com.example.data/draft\n" +
			"  tollgate view add partners --deprecated hide --access token\n" +
			"  tollgate view add research --access people --group acme/research --person ada@example.com",
		Args: cobra.ExactArgs(1),
	}
	var d view.Draft
	c.Flags().StringSliceVar(&d.Include, "include", nil,
		"servers of the view: a name, a prefix that ends in *, or *; may be repeated (default all)")
	c.Flags().StringSliceVar(&d.Exclude, "exclude", nil,
		"servers that are not in the view, also if --include selects them; may be repeated")
	c.Flags().StringVar(&d.Deprecated, "deprecated", string(view.Show), "deprecated versions: show or hide")
	c.Flags().StringVar(&d.Access, "access", string(view.Public), "who may read the view: public, token or people")
	c.Flags().StringArrayVar(&d.Groups, "group", nil,
		"with --access people: a group of company sign-in, PROVIDER/GROUP; may be repeated")
	c.Flags().StringArrayVar(&d.People, "person", nil,
		"with --access people: the e-mail address of a person; may be repeated")
	cli.CompleteValues(c, "deprecated", string(view.Show), string(view.Hide))
	cli.CompleteValues(c, "access", string(view.Public), string(view.WithToken), string(view.People))
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		rows := make([]viewRow, 1)
		err := r.create(at("views", r.args[0]), map[string]any{
			"include": wordList(d.Include), "exclude": wordList(d.Exclude), "deprecated": d.Deprecated, "access": d.Access,
			"people": wordList(d.People), "groups": wordList(d.Groups),
		}, &rows[0], "there is a view "+r.args[0]+" already: remove it first")
		return cli.ListTable(rows), err
	})
}

func newViewList(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "list",
		Short:   "List the views",
		Example: "  tollgate view list --output json",
	}, listed[viewRow]("views", func(run) string { return at("views") }))
}

func newViewRemove(p cli.Process) *cobra.Command {
	return newPlainCommand(p, addManaged(&cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a view and its tokens",
		Long:    "Remove a view and its tokens. At most a second later, no instance answers for it.",
		Example: "  tollgate view remove data",
		Args:    cobra.ExactArgs(1),
	}), removed("views"))
}

func newViewToken(p cli.Process) *cobra.Command {
	return cli.NewGroup("token", "Manage the tokens of a view",
		newViewTokenAdd(p), newViewTokenList(p), newViewTokenRemove(p))
}

// addTokenName adds the flag --name.
func addTokenName(c *cobra.Command) *string {
	return c.Flags().String("name", "default", "name of the token")
}

func newViewTokenAdd(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a token of a view and print it",
		Long: "Add a token of a view and print it, this once: only its hash is stored. Clients send\n" +
			"it as 'Authorization: Bearer TOKEN', or have it in the path:\n" +
			"/registries/NAME/t/TOKEN/v0.1/servers.",
		Example: "  tollgate view token add partners --name acme",
		Args:    cobra.ExactArgs(1),
	}
	name := addTokenName(c)
	return newPlainCommand(p, c, func(r run) error {
		var added struct {
			Token string `json:"token"`
		}
		err := r.send(http.MethodPost, at("views", r.args[0], "tokens"), map[string]string{"name": *name}, &added)
		if err != nil {
			return err
		}
		return cli.PrintLine(p.Stdout, added.Token)
	})
}

func newViewTokenList(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "list NAME",
		Short:   "List the names of the tokens of a view",
		Example: "  tollgate view token list partners",
		Args:    cobra.ExactArgs(1),
	}, listed[viewTokenRow]("tokens", func(r run) string { return at("views", r.args[0], "tokens") }))
}

// viewTokenRow is a token of a view in the output of commands.
type viewTokenRow struct {
	Name      string `json:"name"      column:"NAME"`
	CreatedAt stamp  `json:"createdAt" column:"CREATED"`
}

func newViewTokenRemove(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a token of a view",
		Long:    "Remove a token of a view. At most a second later, no instance accepts it.",
		Example: "  tollgate view token remove partners --name acme",
		Args:    cobra.ExactArgs(1),
	}
	name := addTokenName(c)
	return newPlainCommand(p, c, func(r run) error {
		return r.send(http.MethodDelete, at("views", r.args[0], "tokens", *name), nil, nil)
	})
}

// viewRow is a view in the output of commands.
type viewRow struct {
	Name       string   `json:"name"       column:"NAME"`
	Include    wordList `json:"include"    column:"INCLUDE"`
	Exclude    wordList `json:"exclude"    column:"EXCLUDE"`
	Deprecated string   `json:"deprecated" column:"DEPRECATED"`
	Access     string   `json:"access"     column:"ACCESS"`
	People     wordList `json:"people"     column:"PEOPLE"`
	Groups     wordList `json:"groups"     column:"GROUPS"`
}
