package operator

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/wiring"
)

func newSession(p cli.Process) *cobra.Command {
	c := &cobra.Command{Use: "session", Short: "Manage the sessions of people"}
	c.AddCommand(newSessionList(p), newSessionEnd(p))
	return c
}

func newSessionList(p cli.Process) *cobra.Command {
	return newPersonCommand(&cobra.Command{
		Use:     "list --email E",
		Short:   "List the active sessions of a person",
		Long:    "List the active sessions of a person, newest first.",
		Example: "  tollgate session list --email ada@example.com",
		Args:    cobra.NoArgs,
	}, p, func(ctx context.Context, op *wiring.Operator, a auth.Account) (cli.Table, error) {
		list, err := op.Devices.ListSessions(ctx, a.ID)
		return sessionTable(list), err
	})
}

func sessionTable(sessions []auth.Session) cli.Table {
	type row struct {
		ID           auth.SessionID `json:"id"           column:"ID"`
		DeviceID     auth.DeviceID  `json:"deviceId"     column:"DEVICE"`
		TrustLevel   string         `json:"trustLevel"   column:"TRUST"`
		RiskScore    int            `json:"riskScore"    column:"RISK"`
		CreatedAt    string         `json:"createdAt"    column:"CREATED"`
		LastActivity string         `json:"lastActivity" column:"LAST ACTIVITY"`
		ExpiresAt    string         `json:"expiresAt"    column:"EXPIRES"`
		IPAddress    string         `json:"ipAddress"    column:"ADDRESS"`
	}
	return cli.TableOf(sessions, func(s *auth.Session) row {
		return row{
			s.ID, s.DeviceID, s.TrustLevel.String(), s.RiskScore,
			cli.FormatTime(s.CreatedAt), cli.FormatTime(s.LastActivity), cli.FormatTime(s.ExpiresAt),
			cli.FormatAddress(s.IPAddress),
		}
	})
}

func newSessionEnd(p cli.Process) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "end --email E ID|--all",
		Short: "End one session or all sessions of a person",
		Long:  "End a session of a person, or all their sessions, on every instance within a\nsecond.",
		Example: "  tollgate session end --email ada@example.com 2c6b1f0e-58d4-4f7a-8a3d-91e0c7b4d652\n" +
			"  tollgate session end --email ada@example.com --all",
		Args: cobra.MaximumNArgs(1),
	}
	email := addEmail(c)
	o := cli.AddOutput(c)
	c.Flags().BoolVar(&all, "all", false, "end all sessions of the person")
	c.RunE = func(c *cobra.Command, args []string) error {
		if all == (len(args) == 1) {
			return errors.New("give either the ID of a session or --all")
		}
		var id auth.SessionID
		if !all {
			var err error
			if id, err = auth.ParseUUID[auth.SessionID]("ID", args[0]); err != nil {
				return err
			}
		}
		return withPerson(c, p, *email, func(op *wiring.Operator, a auth.Account) error {
			ended, err := endSessions(c.Context(), op, a.ID, id)
			if err != nil {
				return replaceNotFound(err, "there is no active session "+string(id))
			}
			type row struct {
				Ended int `json:"sessionsInvalidated" column:"SESSIONS ENDED"`
			}
			return o.PrintResult(p.Stdout, cli.RowTable(row{ended}))
		})
	}
	return c
}

// endSessions ends one session of a person, or all if the id is empty. It returns the number of
// ended sessions.
func endSessions(ctx context.Context, op *wiring.Operator, of auth.UserID, id auth.SessionID) (int, error) {
	if id == "" {
		return op.Devices.EndAllSessions(ctx, of)
	}
	return 1, op.Devices.EndSession(ctx, of, id)
}
