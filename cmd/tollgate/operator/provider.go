package operator

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
)

func newProvider(p cli.Process) *cobra.Command {
	return cli.NewGroup("provider", "Manage the providers at which people of a company sign in",
		newProviderAdd(p), newProviderList(p), newProviderTest(p), newProviderRemove(p))
}

func newProviderAdd(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "add NAME --issuer URL --client-id ID [--client-secret-stdin] [--domain D ...]",
		Short: "Add a provider of company sign-in",
		Long: "Add an OpenID Connect provider at which people of a company sign in. Its redirect\n" +
			"address is PUBLIC_URL followed by /console/sign-in/company/NAME/callback.\n\n" +
			"The provider speaks for the e-mail domains of --domain: people with a verified\n" +
			"address of these get their account, and with --create a new one. Members of a\n" +
			"group get the grants of --group. Other fields are set by 'tollgate apply'.",
		Example: "  printf '%s' \"$PASSWORD\" | tollgate provider add acme --issuer https://login.acme.example --client-id tollgate " +
			"--client-secret-stdin --domain acme.example --create --group 'developers=publish:com.example/*'",
		Args: cobra.ExactArgs(1),
	}
	f := newProviderFlags(c)
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		rows := make([]providerRow, 1)
		fields, secret, err := f.read(r, p)
		if err != nil {
			return cli.Table{}, err
		}
		delete(fields, "name")
		if secret != nil {
			fields["clientSecret"] = audit.Text(*secret)
		}
		path := at("providers", r.args[0])
		if f.force {
			path += "?force=true"
		}
		err = r.create(path, fields, &rows[0], "there is already a provider "+r.args[0])
		return cli.ListTable(rows), err
	})
}

// providerFlags describe a provider.
type providerFlags struct {
	issuer, client, display           string
	fromStdin, create, enforce, force bool
	domains, groups, networks         []string
	audiences                         []string
	scopeClaim                        string
}

func newProviderFlags(c *cobra.Command) *providerFlags {
	f, flags := &providerFlags{}, c.Flags()
	flags.StringVar(&f.issuer, "issuer", "", "issuer, as its discovery document has it")
	flags.StringVar(&f.client, "client-id", "", "id of the service as a client")
	flags.BoolVar(&f.fromStdin, "client-secret-stdin", false, "read the secret of the client from standard input")
	flags.StringVar(&f.display, "display-name", "", "name that people see (default NAME)")
	flags.StringSliceVar(&f.domains, "domain", nil, "e-mail domain that the provider speaks for; may be repeated")
	flags.BoolVar(&f.create, "create", false, "make accounts for people of the domains")
	flags.BoolVar(&f.enforce, "enforce", false, "people of the domains sign in at the company only")
	flags.BoolVar(&f.force, "force", false, "enforce even if no operator has signed in at a provider within 30 days")
	flags.StringArrayVar(&f.groups, "group", nil,
		"GROUP=ACTION:RESOURCE, a grant of the members of a group; may be repeated")
	flags.StringSliceVar(&f.networks, "network", nil, "network of its endpoints besides public addresses; may be repeated")
	flags.StringSliceVar(&f.audiences, "audience", nil, "audience whose access tokens count as callers; may be repeated")
	flags.StringVar(&f.scopeClaim, "scope-claim", "", "claim of access tokens with their scopes (default scope)")
	cli.RequireFlags(c, "issuer", "client-id")
	return f
}

// read returns the provider that the flags describe, and its secret; nil without one.
func (f *providerFlags) read(r run, p cli.Process) (fields audit.Details, secret *string, err error) {
	fields = audit.Details{
		"name": audit.Text(r.args[0]), "issuer": audit.Text(f.issuer), "clientId": audit.Text(f.client),
		"domains": audit.Texts(f.domains), "create": audit.Flag(f.create), "enforce": audit.Flag(f.enforce),
		"networks": audit.Texts(f.networks), "audiences": audit.Texts(f.audiences),
	}
	fields.Set("displayName", f.display)
	fields.Set("scopeClaim", f.scopeClaim)
	grants, err := company.ReadGroupGrants(f.groups)
	fields["groupGrants"] = grants
	if err != nil {
		return nil, nil, fmt.Errorf("--group: %w", err)
	}
	if !f.fromStdin {
		return fields, nil, nil
	}
	text, err := cli.ReadPasswordLine(r.ctx, p)
	if err == nil {
		err = company.CheckSecret(text)
	}
	return fields, &text, err
}

func newProviderList(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "list",
		Short:   "List the providers of company sign-in",
		Example: "  tollgate provider list --output json",
	}, listed[providerRow]("providers", func(run) string { return at("providers") }))
}

func newProviderTest(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "test NAME",
		Short:   "Read the discovery document and the keys of a provider",
		Example: "  tollgate provider test acme",
		Args:    cobra.ExactArgs(1),
	}, func(r run) (cli.Table, error) {
		var test struct {
			Steps []stepRow `json:"steps"`
		}
		err := r.send(http.MethodPost, at("providers", r.args[0], "test"), nil, &test)
		return cli.ListTable(test.Steps), err
	})
}

// stepRow is a step of a test in the output of commands.
type stepRow struct {
	Name    string `json:"name"    column:"STEP"`
	OK      bool   `json:"ok"      column:"OK"`
	Message string `json:"message" column:"MESSAGE"`
}

func newProviderRemove(p cli.Process) *cobra.Command {
	return newPlainCommand(p, addManaged(&cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a provider, its grants and its sessions",
		Long:    "Remove a provider. The grants that it gave and the sessions that came from it end;\nthe identities of people stay, for a provider with the same issuer.",
		Example: "  tollgate provider remove acme",
		Args:    cobra.ExactArgs(1),
	}), removed("providers"))
}

// providerRow is a provider in the output of commands.
type providerRow struct {
	Name        string   `json:"name"          column:"NAME"`
	Issuer      string   `json:"issuer"        column:"ISSUER"`
	Domains     wordList `json:"domains"       column:"DOMAINS"`
	Create      bool     `json:"create"        column:"CREATE"`
	Enforce     bool     `json:"enforce"       column:"ENFORCE"`
	Audiences   wordList `json:"audiences"     column:"AUDIENCES"`
	ScopeClaim  string   `json:"scopeClaim"    column:"SCOPE CLAIM"`
	SucceededAt stamp    `json:"lastSuccessAt" column:"LAST SUCCESS"`
	Problem     string   `json:"lastProblem"   column:"LAST PROBLEM"`
}
