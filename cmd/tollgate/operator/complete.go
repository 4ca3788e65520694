package operator

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
)

// completion is a list of the API whose items complete the first argument of the commands in a group.
type completion struct{ path, member, key string }

// completions returns the lists that complete arguments, by the name of the group.
func completions() map[string]completion {
	return map[string]completion{
		"view": {at("views"), "views", "name"}, "token": {at("views"), "views", "name"},
		"mirror": {at("mirrors"), "mirrors", "name"}, "webhook": {at("webhooks"), "webhooks", "id"},
		"publisher": {at("policies"), "policies", "id"}, "rule": {at("review-rules"), "reviewRules", "id"},
		"review": {reviewPath(), "reviews", "id"},
	}
}

// completeFrom returns a function that completes the first argument of a command from the service,
// if there is one.
func completeFrom(target *person.Target) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		from, known := completions()[c.Parent().Name()]
		if !known || len(args) > 0 || target.Address() == "" || c.Name() == "add" && c.Parent().Name() != "token" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		service, err := target.Open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		// without an answer of the service nothing is completed
		list, _ := listOf[map[string]any](run{remote: remote{service: service}, ctx: c.Context()}, from.path, from.member, nil)
		var names []string
		for _, one := range list {
			if name := fmt.Sprint(one[from.key]); strings.HasPrefix(name, begun) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
