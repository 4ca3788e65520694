package operator

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
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
	}
	name := addTokenName(c)
	return newPlainCommand(p, c, func(r run) error {
		return r.send(http.MethodDelete, at("views", r.args[0], "tokens", *name), nil, nil)
	})
}

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

func newServiceAccount(p cli.Process) *cobra.Command {
	k := newKind(p, &service.Kind, kindTexts{
		short: "Manage service accounts: callers that are no people", example: "ci", revise: true,
		show: &cobra.Command{
			Short:   "Show a service account; 'tollgate grant list' shows its grants",
			Example: "  tollgate service-account show ci --output yaml",
		},
		put: &cobra.Command{
			Use:   "set NAME [--description TEXT] [--workload JSON ...]",
			Short: "Make a service account, or change one",
			Long: "Make a service account, or change the fields of one whose flags are given. It may do\n" +
				"what 'tollgate grant add --service NAME' allows, by tokens ('tollgate service-account\n" +
				"token create') or as a workload: a job or a machine with an ID token of an issuer.\n\n" +
				"A workload has issuer, subject (with * as in 'tollgate publisher add'), scopes, and\n" +
				"optionally audience and claims. Those that are given replace all that the account has;\n" +
				"--workload '' removes them.",
			Example: "  tollgate service-account set ci --description 'builds of tools'\n" +
				"  tollgate service-account set ci --workload '{\"issuer\": \"https://token.actions.githubusercontent.com\", " +
				"\"subject\": \"repo:acme/tools:*\", \"scopes\": [\"registry:publish\"]}'",
		},
		remove: &cobra.Command{Short: "Remove a service account with its tokens and grants"},
		state: struct {
			ManagedBy string `json:"managedBy"`
			CreatedAt stamp  `json:"createdAt" column:"CREATED"`
		}{},
	})
	turn := func(use, short string, state service.State) *cobra.Command {
		c := k.complete(&cobra.Command{Use: use + " NAME", Short: short}, 1, "", "", "ci")
		return newTableCommand(p, addManaged(c), func(r run) (cli.Table, error) {
			return k.change(r, object{"state": state}, false)
		})
	}
	return k.newGroup(newServiceToken(p),
		turn("enable", "Accept the tokens of a service account again", service.Active),
		turn("disable", "Refuse the tokens of a service account, within a second", service.Disabled))
}

func newClient(p cli.Process) *cobra.Command {
	return newKind(p, &oauth.ClientKind, kindTexts{
		short: "Manage the applications that are registered to get tokens for tool servers", example: "ide",
		put: &cobra.Command{
			Use:   "set ID --name NAME --redirect-uri URI [--method M] [--resource NAME ...]",
			Short: "Add a client, or replace the one with its id",
			Long: "Add a client, or replace the one with its id. It needs OAUTH=on.\n\n" +
				"A redirect URI has https, or http with the host localhost, 127.0.0.1 or [::1], where any\n" +
				"port matches one without a port, or a scheme of the application, such as cursor://.\n\n" +
				"With the methods client_secret_basic and client_secret_post the client gets a secret, which\n" +
				"is printed this once: only its hash is stored. --new-secret makes another one.",
			Example: "  tollgate client set ide --name 'IDE of Acme' --redirect-uri http://127.0.0.1/callback\n" +
				"  tollgate client set portal --name Portal --redirect-uri https://portal.example.com/callback --method client_secret_basic",
		},
		list: &cobra.Command{Short: "List the registered clients"},
		state: struct {
			ManagedBy string  `json:"managedBy"              column:"MANAGED BY"`
			HasSecret bool    `json:"hasSecret"`
			Secret    *string `json:"clientSecret,omitempty" column:"SECRET"`
		}{},
	}).newGroup()
}

func newCollection(p cli.Process) *cobra.Command {
	return newKind(p, &view.CollectionKind, kindTexts{
		short: "Manage the collections of servers that the catalogue shows first", example: "start",
		put: &cobra.Command{
			Use:     "set NAME --sentence TEXT --server NAME ... [--title TEXT]",
			Short:   "Add a collection, or replace the one with its name",
			Example: "  tollgate collection set start --title 'Start here' --sentence 'What every team needs.' --server com.example/weather,com.example/mail",
		},
	}).newGroup()
}

func newToolSource(p cli.Process) *cobra.Command {
	return newKind(p, &tools.SourceKind, kindTexts{
		short: "Manage the headers with which remotes are asked for their tools", example: "weather",
		put: &cobra.Command{
			Use:   "set NAME --server SERVER --remote URL [--header NAME ...]",
			Short: "Add a tool source, or replace the one with its name",
			Long: "Add a tool source, or replace the one with its name: the service sends its headers to the remote\n" +
				"when it reads what the server shows to a model. Values come from the environment: --header X-Api-Key\n" +
				"sends the variable X_API_KEY. They are sealed, and not shown again; without --header they are kept.",
			Example: "  tollgate tool-source set weather --server com.example/weather --remote https://weather.example.com/mcp --header Authorization",
		},
		state: struct {
			HeaderNames wordList `json:"headerNames" column:"HEADERS"`
			ManagedBy   string   `json:"managedBy"   column:"MANAGED BY"`
		}{},
	}).newGroup()
}

func newResource(p cli.Process) *cobra.Command {
	return newKind(p, &oauth.ResourceKind, kindTexts{
		short: "Manage the tool servers for which applications get tokens", example: "weather",
		put: &cobra.Command{
			Use:   "set NAME --url URL --server SERVER [--scope S ...]",
			Short: "Add a resource, or replace the one with its name",
			Long: "Add a resource, or replace the one with its name: a URL for which applications get tokens, and\n" +
				"the servers at it. It needs OAUTH=on. No tokens are issued while no listed version of its\n" +
				"servers has the URL, or one of them is in quarantine.",
			Example: "  tollgate resource set weather --url https://weather.example.com/mcp --server com.example/weather --scope forecast:read",
		},
		list: &cobra.Command{Short: "List the resources"},
	}).newGroup()
}
