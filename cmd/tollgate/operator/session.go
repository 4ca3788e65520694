package operator

import (
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
)

func newSession(p cli.Process) *cobra.Command {
	return cli.NewGroup("session", "Manage the sessions of people", newSessionList(p), newSessionEnd(p))
}

func newSessionList(p cli.Process) *cobra.Command {
	return newAccountCommand(p, &cobra.Command{
		Use:     "list --email E",
		Short:   "List the active sessions of a person",
		Long:    "List the active sessions of a person, newest first.",
		Example: "  tollgate session list --email ada@example.com",
	}, func(r run, a auth.Account) (cli.Table, error) {
		list, err := r.Devices.ListSessions(r.ctx, a.ID)
		return sessionTable(list), err
	}, ofPerson[sessionRow]("sessions"))
}

// sessionRow is a session in the output of commands.
type sessionRow struct {
	ID           auth.SessionID `json:"id"           column:"ID"`
	DeviceID     auth.DeviceID  `json:"deviceId"     column:"DEVICE"`
	TrustLevel   string         `json:"trustLevel"   column:"TRUST"`
	RiskScore    int            `json:"riskScore"    column:"RISK"`
	CreatedAt    string         `json:"createdAt"    column:"CREATED"`
	LastActivity string         `json:"lastActivity" column:"LAST ACTIVITY"`
	ExpiresAt    string         `json:"expiresAt"    column:"EXPIRES"`
	IPAddress    string         `json:"ipAddress"    column:"ADDRESS"`
}

func sessionTable(sessions []auth.Session) cli.Table {
	return cli.TableOf(sessions, func(s *auth.Session) sessionRow {
		return sessionRow{
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
	c.Flags().BoolVar(&all, "all", false, "end all sessions of the person")
	var id auth.SessionID
	c.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		if all == (len(args) == 1) {
			return errors.New("give either the ID of a session or --all")
		}
		if !all {
			id, err = auth.ParseUUID[auth.SessionID]("ID", args[0])
		}
		return err
	}
	return newAccountCommand(p, c, func(r run, a auth.Account) (cli.Table, error) {
		if all {
			ended, err := r.Devices.EndAllSessions(r.ctx, &a)
			return cli.RowTable(endedRow{ended}), err
		}
		err := r.Devices.EndSession(r.ctx, &a, id)
		return cli.RowTable(endedRow{1}), replaceNotFound(err, "there is no active session "+string(id))
	}, func(r run, a shownPerson) (cli.Table, error) {
		if !all {
			return cli.Table{}, onlyLocal("one session can be ended in the database only: with --server give --all")
		}
		active, err := listOf[sessionRow](r, at("people", a.ID, "sessions"), "sessions", nil)
		if err == nil {
			err = r.send(http.MethodPost, at("people", a.ID, "end-sessions"), nil, nil)
		}
		return cli.RowTable(endedRow{len(active)}), err
	})
}

type endedRow struct {
	Ended int `json:"sessionsInvalidated" column:"SESSIONS ENDED"`
}
