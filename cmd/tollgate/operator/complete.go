package operator

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/kinds"
)

// completion is a list of the API whose items complete the first argument of the commands in a group.
type completion struct{ path, member, key string }

// completions returns the lists that complete arguments, by the path of the group.
func completions() map[string]completion {
	return map[string]completion{
		"token": {at("me", "tokens"), "tokens", "id"}, "webhook": {at("webhooks"), "webhooks", "id"},
		"publisher": {at("policies"), "policies", "id"}, "review rule": {at("review-rules"), "reviewRules", "id"},
		"review": {reviewPath(), "reviews", "id"},
	}
}

// completeFrom returns a function that completes the first argument of a command from the service,
// if there is one.
func completeFrom(target *person.Target) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		_, group, _ := strings.Cut(c.Parent().CommandPath(), " ")
		from, known := completions()[group]
		for g := c.Parent(); g != nil && !known; g = g.Parent() {
			list := g.Annotations[kindAnnotation]
			from, known = completion{at((&kinds.Kind{List: list}).Path()), list, g.Annotations[keyAnnotation]}, list != ""
		}
		if !known || len(args) > 0 || target.Address() == "" || c.Name() == "add" && group != "view token" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		service, err := target.Open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		// without an answer of the service nothing is completed
		list, _ := listOf[map[string]any](run{api: api{request: service.Call}, ctx: c.Context()}, from.path, from.member, nil)
		var names []string
		for _, one := range list {
			if name := fmt.Sprint(one[from.key]); strings.HasPrefix(name, begun) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
