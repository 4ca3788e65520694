package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
)

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

func newResource(p cli.Process) *cobra.Command {
	return newKind(p, &oauth.ResourceKind, kindTexts{
		short: "Manage the tool servers for which applications get tokens", example: "weather",
		state: struct {
			ManagedBy string `json:"managedBy"       column:"MANAGED BY"`
			State     string `json:"state,omitempty" column:"STATE"`
		}{},
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
