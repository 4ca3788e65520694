package operator

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// tokenGroup is a group of commands about the tokens of one owner.
type tokenGroup struct {
	process cli.Process
	command string // that the examples begin with
	name    string // the argument that names a service account, with a space; empty for one's own
	owner   string // whose tokens they are, in texts
	id      string // of a token, for the example
}

func newServiceToken(p cli.Process) *cobra.Command {
	return tokenGroup{p, "tollgate service-account token", " NAME", "a service account", "4d2c9a70-6e1b-4f38-9b5d-2a7c8e0f1d63"}.newCommand()
}

func newToken(p cli.Process) *cobra.Command {
	return tokenGroup{p, "tollgate token", "", "your own account", "6f0a3b58-1c7d-4e92-8a46-9d5e2c1b7f04"}.newCommand()
}

func (g tokenGroup) newCommand() *cobra.Command {
	return cli.NewGroup("token", "Manage the tokens of "+g.owner, g.newList(), g.newCreate(), g.newRemove())
}

// path returns the path of the tokens in the API.
func (g tokenGroup) path(r run) string {
	if g.name == "" {
		return at("me", "tokens")
	}
	return at("service-accounts", r.args[0], "tokens")
}

// begin completes the example of a command, and refuses the database for one's own tokens.
func (g tokenGroup) begin(c *cobra.Command) *cobra.Command {
	c.Example = "  " + g.command + " " + c.Name() + c.Example
	if g.name != "" {
		c.Example = strings.Replace(c.Example, c.Name(), c.Name()+" ci", 1)
	} else {
		c.Example += " --server https://tollgate.example.com"
	}
	cli.CheckFirst(c, func() error {
		if g.name == "" && !person.WantsService(g.process, c) {
			return onlyLocal("your own tokens are at a service: give its address with --server or " + person.ServerVariable)
		}
		return nil
	})
	return c
}

func (g tokenGroup) newList() *cobra.Command {
	return newTableCommand(g.process, g.begin(&cobra.Command{
		Use: "list" + g.name, Short: "List the tokens of " + g.owner, Example: " --output json",
	}), func(r run) (cli.Table, error) {
		t, err := listed[tokenRow]("tokens", g.path)(r)
		return t, g.unknownOwner(r, err)
	})
}

// unknownOwner replaces a not-found error by one that names the service account.
func (g tokenGroup) unknownOwner(r run, err error) error {
	if g.name == "" {
		return err
	}
	return replaceNotFound(err, fmt.Sprintf("there is no service account with the name %.60q", r.args[0]))
}

func (g tokenGroup) newCreate() *cobra.Command {
	var d auth.APITokenDraft
	var expiresAt string
	c := &cobra.Command{
		Use:   "create" + g.name + " --name TEXT --scope SCOPE ... [--expires-at TIME] [--network CIDR ...]",
		Short: "Make a token of " + g.owner + " and print it",
		Long: "Make a token of " + g.owner + " and print it, this once: only its hash is stored.\n" +
			"It may do what its scopes and the grants of its owner both allow. Programs send it\n" +
			"as 'Authorization: Bearer TOKEN'; commands read it from $" + person.TokenVariable + ".",
		Example: " --name pipeline --scope registry:publish --network 192.0.2.0/24",
	}
	flags := c.Flags()
	flags.StringVar(&d.Name, "name", "", "name by which people recognise it")
	flags.StringSliceVar(&d.Scopes, "scope", nil, "what it may be used for; may be repeated: "+
		strings.Join(each.Strings(scope.All()), ", "))
	flags.StringVar(&expiresAt, "expires-at", "",
		"time at which it ends, for example 2027-01-31T12:00:00Z, in 1 to 365 days (default in 90 days)")
	flags.StringSliceVar(&d.Networks, "network", nil, "network from which it is accepted; may be repeated (default all)")
	cli.RequireFlags(c, "name", "scope")
	cli.CompleteValues(c, "scope", each.Strings(scope.All())...)
	cli.CheckFirst(c, func() (err error) {
		if expiresAt != "" {
			if d.ExpiresAt, err = time.Parse(time.RFC3339, expiresAt); err != nil {
				return fmt.Errorf("--expires-at: %q is not a time such as 2027-01-31T12:00:00Z", expiresAt)
			}
		}
		return nil
	})
	return newPlainCommand(g.process, g.begin(c), func(r run) error {
		body := map[string]any{"name": d.Name, "scopes": d.Scopes, "networks": append([]string{}, d.Networks...)}
		if expiresAt != "" {
			body["expiresAt"] = expiresAt
		}
		var added struct {
			Token string `json:"token"`
		}
		if err := r.send(http.MethodPost, g.path(r), body, &added); err != nil {
			return g.unknownOwner(r, err)
		}
		return cli.PrintLine(g.process.Stdout, added.Token)
	})
}

func (g tokenGroup) newRemove() *cobra.Command {
	c := &cobra.Command{
		Use: "remove" + g.name + " ID", Short: "Remove a token of " + g.owner + ", which is refused within a second",
		Example: " " + g.id,
	}
	id := func(r run) string { return r.args[len(r.args)-1] }
	return newPlainCommand(g.process, g.begin(c), func(r run) error {
		return replaceNotFound(r.send(http.MethodDelete, g.path(r)+"/"+id(r), nil, nil), "there is no such token")
	})
}

// tokenRow is a token in the output of commands and in the API.
type tokenRow struct {
	ID           string   `json:"id"           column:"ID"`
	Name         string   `json:"name"         column:"NAME"`
	Prefix       string   `json:"prefix"       column:"PREFIX"`
	Scopes       wordList `json:"scopes"       column:"SCOPES"`
	Networks     wordList `json:"networks"`
	CreatedAt    stamp    `json:"createdAt"`
	ExpiresAt    stamp    `json:"expiresAt"    column:"EXPIRES"`
	LastUsedAt   stamp    `json:"lastUsedAt"   column:"LAST USED"`
	LastUsedFrom string   `json:"lastUsedFrom"`
}
