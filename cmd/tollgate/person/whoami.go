package person

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

func newWhoami(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "whoami",
		Short: "Show who is signed in, and the trust level of the session",
		Long: "Show who is signed in at the service and the trust level of the session. Exits\n" +
			"with 3 if you are not signed in. The command does not show which servers you may\n" +
			"publish: operators see that with 'tollgate grant list'.",
		Example: "  tollgate whoami\n  tollgate whoami --output json",
	}
	o, a := cli.AddOutput(c), addAddress(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		u, err := newPublisher(p)
		if err != nil {
			return err
		}
		who, err := u.lastAccount(*a)
		if err != nil {
			return err
		}
		var s tollgateclient.Session
		err = who.Do(c.Context(), func(ctx context.Context, token string) (err error) {
			s, err = who.Client().GetSession(ctx, token)
			return err
		})
		if err != nil {
			return err
		}
		return o.PrintResult(p.Stdout, whoamiTable(who.Client().URL(), who.Email(), s))
	}
	return c
}

func whoamiTable(url, email string, s tollgateclient.Session) cli.Table {
	return cli.Table{
		Header: []string{"SERVICE", "EMAIL", "TRUST", "SIGNED IN", "UNTIL", "USER"},
		Rows:   [][]string{{url, email, s.TrustLevel, s.CreatedAt, s.ExpiresAt, s.UserID}},
		Value: struct {
			URL   string `json:"url"`
			Email string `json:"email"`
			tollgateclient.Session
		}{url, email, s},
	}
}
