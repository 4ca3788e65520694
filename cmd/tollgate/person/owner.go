package person

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

// ownerRow is who answers for a server in the output of the command.
type ownerRow struct {
	Server  string `json:"server"  column:"SERVER"`
	Owner   string `json:"owner"   column:"OWNER"`
	Contact string `json:"contact" column:"CONTACT"`
}

func newServerOwner(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use: "owner NAME [--owner TEAM] [--contact ADDRESS]", Short: "Show who answers for a server, or set it; empty values remove it",
		Example: "  tollgate server owner com.example/weather --owner 'Team Weather' --contact weather@example.com",
		Args:    cobra.ExactArgs(1),
	}
	o, target := cli.AddOutput(c), AddTarget(p, c)
	c.Flags().Lookup(serverFlag).Usage = "address of the service; default: $" + ServerVariable + ", or that of the last sign-in"
	c.ValidArgsFunction = target.completeNames
	owner := c.Flags().String("owner", "", "who answers for the server, for example a team")
	contact := c.Flags().String("contact", "", "an e-mail address or an https URL")
	c.RunE = func(c *cobra.Command, args []string) error {
		service, err := target.Open()
		if err != nil {
			return ExitError(err)
		}
		row := ownerRow{Server: args[0]}
		request := tollgateclient.Request{Method: http.MethodGet, Path: "/v0.1/x/dev.tollgate/servers/" + url.PathEscape(args[0]) + "/owner"}
		err = service.CallReader(c.Context(), request, &row)
		if sets := c.Flags().Changed; err == nil && (sets("owner") || sets("contact")) {
			if sets("owner") {
				row.Owner = *owner
			}
			if sets("contact") {
				row.Contact = *contact
			}
			request.Method, request.Body = http.MethodPut, map[string]string{"owner": row.Owner, "contact": row.Contact}
			err = service.Call(c.Context(), request, &row)
		}
		if err != nil {
			return ExitError(nameSubject(args[0], err))
		}
		return o.PrintResult(p.Stdout, cli.RowTable(row))
	}
	return c
}
