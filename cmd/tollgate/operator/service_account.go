package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry/service"
)

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
