package operator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/service"
)

func newServiceAccount(p cli.Process) *cobra.Command {
	c := cli.NewGroup("service-account", "Manage service accounts: callers that are no people",
		newServiceList(p), newServiceShow(p), newServiceSet(p), newServiceRemove(p), newServiceToken(p))
	for _, act := range []struct {
		use, short string
		state      service.State
	}{
		{"enable", "Accept the tokens of a service account again", service.Active},
		{"disable", "Refuse the tokens of a service account, within a second", service.Disabled},
	} {
		c.AddCommand(newServiceChange(p, &cobra.Command{
			Use: act.use + " NAME", Short: act.short, Example: "  tollgate service-account " + act.use + " ci",
		}, false, func(a *serviceRow) { a.State = string(act.state) }))
	}
	return c
}

func newServiceList(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "list",
		Short:   "List the service accounts",
		Example: "  tollgate service-account list --output json",
	}, listed[serviceRow]("serviceAccounts", func(run) string { return at("service-accounts") }))
}

func newServiceShow(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a service account; 'tollgate grant list' shows its grants",
		Example: "  tollgate service-account show ci --output yaml",
		Args:    cobra.ExactArgs(1),
	}, func(r run) (row cli.Table, err error) {
		var a serviceRow
		err = r.send(http.MethodGet, at("service-accounts", r.args[0]), nil, &a)
		return cli.RowTable(a), unknownService(r.args[0], err)
	})
}

// unknownService replaces a not-found error by one that names the service account.
func unknownService(name string, err error) error {
	return replaceNotFound(err, "there is no service account "+name)
}

func newServiceSet(p cli.Process) *cobra.Command {
	c := &cobra.Command{
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
	}
	description := c.Flags().String("description", "", "what the account is for")
	texts := c.Flags().StringArray("workload", nil, "workload that gets tokens of the account; may be repeated")
	workloads := workloadList{}
	cli.CheckFirst(c, func() error {
		for _, text := range slices.DeleteFunc(*texts, func(text string) bool { return text == "" }) {
			var w workloadText
			d := json.NewDecoder(strings.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(&w); err != nil {
				return fmt.Errorf("--workload: %w", err)
			}
			workloads = append(workloads, w)
		}
		return nil
	})
	return newServiceChange(p, c, true, func(a *serviceRow) {
		if c.Flags().Changed("description") {
			a.Description = *description
		}
		if c.Flags().Changed("workload") {
			a.Workloads = workloads
		}
	})
}

// newServiceChange completes a command that changes a service account and prints it. If mayMake is
// false, the account must exist.
func newServiceChange(p cli.Process, c *cobra.Command, mayMake bool, change func(*serviceRow)) *cobra.Command {
	c.Args = cobra.ExactArgs(1)
	return newTableCommand(p, addManaged(c), func(r run) (cli.Table, error) {
		var tag string
		var row serviceRow
		path, condition := at("service-accounts", r.args[0]), map[string]string{}
		err := r.call(tollgateclient.Request{Method: http.MethodGet, Path: path, Tag: &tag}, &row)
		switch {
		case err == nil:
			condition["If-Match"] = tag
		case fault.Is(err, fault.NotFound) && mayMake:
			condition["If-None-Match"] = "*"
		default:
			return cli.Table{}, unknownService(r.args[0], err)
		}
		change(&row)
		body := map[string]any{
			"description": row.Description, "state": cmp.Or(row.State, string(service.Active)),
			"workloads": append(workloadList{}, row.Workloads...),
		}
		err = r.call(tollgateclient.Request{Method: http.MethodPut, Path: path, Header: condition, Body: body}, &row)
		if fault.Is(err, fault.Stale) {
			err = errServiceChanged
		}
		return cli.RowTable(row), err
	})
}

var errServiceChanged = errors.New("somebody else has changed the service account in the meantime: try again")

func newServiceRemove(p cli.Process) *cobra.Command {
	return newPlainCommand(p, addManaged(&cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a service account with its tokens and grants",
		Example: "  tollgate service-account remove ci",
		Args:    cobra.ExactArgs(1),
	}), func(r run) error { return unknownService(r.args[0], removed("service-accounts")(r)) })
}

// serviceRow is a service account in the output of commands and in the API.
type serviceRow struct {
	Name        string       `json:"name"        column:"NAME"`
	State       string       `json:"state"       column:"STATE"`
	Description string       `json:"description" column:"DESCRIPTION"`
	Workloads   workloadList `json:"workloads"   column:"WORKLOADS"`
	ManagedBy   string       `json:"managedBy"`
	CreatedAt   stamp        `json:"createdAt"   column:"CREATED"`
}

// workloadText is a workload in the output of commands and in the API.
type workloadText struct {
	Issuer   string            `json:"issuer"`
	Subject  string            `json:"subject"`
	Claims   map[string]string `json:"claims,omitempty"`
	Audience string            `json:"audience,omitempty"`
	Scopes   []string          `json:"scopes"`
}

// workloadList is a list of workloads that a table shows by their subjects.
type workloadList []workloadText

// String returns the subjects with commas.
func (l workloadList) String() string {
	subjects := make(wordList, len(l))
	for i := range l {
		subjects[i] = l[i].Subject
	}
	return subjects.String()
}
