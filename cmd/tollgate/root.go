package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func newRoot(p process) *cobra.Command {
	root := &cobra.Command{
		Use:   "tollgate",
		Short: "Registry, sign-in and rate limits for an organisation's tool servers",
		Long: "Tollgate keeps the registry of tool servers, decides who may change it and how\n" +
			"far each sign-in is trusted, and limits how often clients may make calls.\n" +
			"Settings come from the environment: see 'tollgate settings'.\n\n" +
			"The exit code is 0 on success, 1 if a command failed or was used wrongly, 2 if\n" +
			"'tollgate ratelimit simulate' finds too many refusals, and 3 if a publisher's\n" +
			"command needs a sign-in; one sentence on standard error gives the reason.",
		Example:       "  tollgate serve\n  tollgate user list",
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(p.args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.AddCommand(
		newServe(p), newRatelimit(p), newHealth(p), newMigrate(p), newBackup(p), newUser(p), newDevice(p), newSession(p), newGrant(p),
		newPolicy(p), newReview(p), newView(p), newWebhook(p), newMirror(p),
		newAudit(p), newRegistry(p), newAllowList(p), newMethods(p), newRisk(p), newPlugins(p), newSettings(p),
		newLogin(p), newLogout(p), newPublish(p), newStatus(p), newWhoami(p),
	)
	addCompletion(root)
	for _, c := range root.Commands() {
		showHelpOfGroups(c)
	}
	explainUsage(root)
	return root
}

// readSettings reads the settings of the process.
func readSettings(p process) (settings.Settings, error) {
	return settings.Read(p.environ)
}

// errorSentence returns the text of an error for the operator, in one line: the message of a fault,
// with its cause if a dependency failed. Errors of rate limit rules have one line each.
func errorSentence(err error) string {
	text := err.Error()
	var faults ruleset.Faults
	if errors.As(err, &faults) {
		return text
	}
	if f, ok := fault.As(err); ok && f.Kind != fault.Internal && f.Kind != fault.Unavailable {
		text = f.Message
	}
	text = strings.Replace(text, "\n\nDid you mean this?\n", ", did you mean ", 1) // join Cobra's suggestion to the sentence
	return strings.Join(strings.Fields(text), " ")
}
