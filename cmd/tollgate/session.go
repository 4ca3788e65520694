package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/wiring"
)

func newSession(p process) *cobra.Command {
	c := &cobra.Command{Use: "session", Short: "Manage the sessions of people"}
	c.AddCommand(newSessionList(p), newSessionEnd(p))
	return c
}

func newSessionList(p process) *cobra.Command {
	return newPersonCommand(&cobra.Command{
		Use:     "list --email E",
		Short:   "List the active sessions of a person",
		Long:    "List the active sessions of a person, newest first.",
		Example: "  tollgate session list --email ada@example.com",
		Args:    cobra.NoArgs,
	}, p, func(ctx context.Context, op *wiring.Operator, a auth.Account) (table, error) {
		list, err := op.Devices.ListSessions(ctx, a.ID)
		return sessionTable(list), err
	})
}

func sessionTable(sessions []auth.Session) table {
	type row struct {
		ID           auth.SessionID `json:"id"`
		DeviceID     auth.DeviceID  `json:"deviceId"`
		TrustLevel   string         `json:"trustLevel"`
		RiskScore    int            `json:"riskScore"`
		CreatedAt    string         `json:"createdAt"`
		LastActivity string         `json:"lastActivity"`
		ExpiresAt    string         `json:"expiresAt"`
		IPAddress    string         `json:"ipAddress"`
	}
	t := table{header: []string{"ID", "DEVICE", "TRUST", "RISK", "CREATED", "LAST ACTIVITY", "EXPIRES", "ADDRESS"}}
	list := make([]row, 0, len(sessions))
	for i := range sessions {
		s := &sessions[i]
		list = append(list, row{
			s.ID, s.DeviceID, s.TrustLevel.String(), s.RiskScore, formatTime(s.CreatedAt), formatTime(s.LastActivity), formatTime(s.ExpiresAt), formatAddress(s.IPAddress),
		})
		t.rows = append(t.rows, []string{
			string(s.ID), string(s.DeviceID), s.TrustLevel.String(), strconv.Itoa(s.RiskScore),
			formatTime(s.CreatedAt), formatTime(s.LastActivity), formatTime(s.ExpiresAt), formatAddress(s.IPAddress),
		})
	}
	t.value = list
	return t
}

func newSessionEnd(p process) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "end --email E ID|--all",
		Short: "End a session of a person, or all of them",
		Long:  "End a session of a person, or all of them, on every instance within a second.",
		Example: "  tollgate session end --email ada@example.com 2c6b1f0e-58d4-4f7a-8a3d-91e0c7b4d652\n" +
			"  tollgate session end --email ada@example.com --all",
		Args: cobra.MaximumNArgs(1),
	}
	email := addEmail(c)
	o := addOutput(c)
	c.Flags().BoolVar(&all, "all", false, "end all sessions of the person")
	c.RunE = func(c *cobra.Command, args []string) error {
		if all == (len(args) == 1) {
			return errors.New("name the ID of one session, or give --all")
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
			return o.printResult(p.stdout, table{
				header: []string{"SESSIONS ENDED"}, rows: [][]string{{strconv.Itoa(ended)}},
				value: map[string]any{"sessionsInvalidated": ended},
			})
		})
	}
	return c
}

// endSessions ends one session of a person, or all where the id is empty.
func endSessions(ctx context.Context, op *wiring.Operator, of auth.UserID, id auth.SessionID) (int, error) {
	if id == "" {
		return op.Devices.EndAllSessions(ctx, of)
	}
	return 1, op.Devices.EndSession(ctx, of, id)
}
