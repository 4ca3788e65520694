package operator

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

func newView(p cli.Process) *cobra.Command {
	return newKind(p, &view.Kind, kindTexts{
		short: "Manage views: parts of the registry with their own paths", example: "data", add: true, state: struct{}{},
		put: &cobra.Command{
			Use: "add NAME [--include PATTERN ...] [--exclude PATTERN ...] [--access people --group PROVIDER/GROUP ...]",
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
		},
		remove: &cobra.Command{
			Short: "Remove a view and its tokens",
			Long:  "Remove a view and its tokens. At most a second later, no instance answers for it.",
		},
	}).newGroup(newViewToken(p))
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
