package operator

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/company"
)

func newProvider(p cli.Process) *cobra.Command {
	add := &cobra.Command{
		Use:   "add NAME --issuer URL --client-id ID [--client-secret-stdin] [--domain D ...]",
		Short: "Add a provider of company sign-in",
		Long: "Add an OpenID Connect provider at which people of a company sign in. Its redirect\n" +
			"address is PUBLIC_URL followed by /console/sign-in/company/NAME/callback.\n\n" +
			"The provider speaks for the e-mail domains of --domain: people with a verified\n" +
			"address of these get their account, and with --create a new one. Members of a\n" +
			"group get the grants of --group. Other fields are set by 'tollgate apply'.",
		Example: "  printf '%s' \"$PASSWORD\" | tollgate provider add acme --issuer https://login.acme.example --client-id tollgate " +
			"--client-secret-stdin --domain acme.example --create --group 'developers=publish:com.example/*'",
	}
	add.Flags().Bool("force", false, "enforce even if no operator has signed in at a provider within 30 days")
	return newKind(p, &company.Kind, kindTexts{
		short:   "Manage the providers at which people of a company sign in",
		example: "acme", put: add, list: &cobra.Command{Short: "List the providers of company sign-in"},
		remove: &cobra.Command{
			Short: "Remove a provider, its grants and its sessions",
			Long: "Remove a provider. The grants that it gave and the sessions that came from it end;\n" +
				"the identities of people stay, for a provider with the same issuer.",
		},
		add: true, state: struct {
			SucceededAt stamp  `json:"lastSuccessAt" column:"LAST SUCCESS"`
			Problem     string `json:"lastProblem"   column:"LAST PROBLEM"`
		}{},
	}).newGroup(newProviderTest(p))
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
