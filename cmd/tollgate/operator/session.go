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

func newDevice(p cli.Process) *cobra.Command {
	return cli.NewGroup("device", "Manage the devices that people sign in from", newDeviceList(p), newDeviceRevoke(p))
}

func newDeviceList(p cli.Process) *cobra.Command {
	return newAccountCommand(p, &cobra.Command{
		Use:     "list --email E",
		Short:   "List the devices of a person",
		Long:    "List the devices of a person, including revoked ones, last seen first.",
		Example: "  tollgate device list --email ada@example.com",
	}, func(r run, a auth.Account) (cli.Table, error) {
		list, err := r.Devices.ListDevices(r.ctx, a.ID)
		return deviceTable(list), err
	}, func(r run, a shownPerson) (cli.Table, error) {
		type shown struct {
			deviceRow

			Metadata deviceRow `json:"metadata"` // what describes the machine
		}
		list, err := listOf[shown](r, at("people", a.ID, "devices"), "devices", nil)
		return cli.TableOf(list, func(d *shown) deviceRow {
			row, m := d.deviceRow, &d.Metadata
			row.Type, row.Browser, row.OS, row.LastIPAddress = m.Type, m.Browser, m.OS, m.LastIPAddress
			return row
		}), err
	})
}

// deviceRow is a device in the output of commands. The API does not tell whether it is confirmed.
type deviceRow struct {
	ID            auth.DeviceID       `json:"id"              column:"ID"`
	Identity      auth.DeviceIdentity `json:"identity"`
	TrustStatus   auth.TrustStatus    `json:"trustStatus"     column:"MARK"`
	Confirmed     bool                `json:"confirmed"       column:"CONFIRMED"`
	Revoked       bool                `json:"revoked"         column:"REVOKED"`
	FirstSeen     string              `json:"firstSeen"`
	LastSeen      string              `json:"lastSeen"        column:"LAST SEEN"`
	Type          string              `json:"deviceType"      column:"TYPE"`
	Browser       string              `json:"browser"         column:"BROWSER"`
	OS            string              `json:"operatingSystem" column:"SYSTEM"`
	LastIPAddress string              `json:"lastIpAddress"   column:"ADDRESS"`
	Name          string              `json:"name"            column:"NAME"`
}

func deviceTable(devices []auth.Device) cli.Table {
	return cli.TableOf(devices, func(d *auth.Device) deviceRow {
		return deviceRow{
			d.ID, d.Identity, d.TrustStatus, d.Confirmed, d.Revoked, cli.FormatTime(d.FirstSeen),
			cli.FormatTime(d.LastSeen), d.Type, d.Browser, d.OS, cli.FormatAddress(d.LastIPAddress), d.Name,
		}
	})
}

func newDeviceRevoke(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "revoke --email E ID",
		Short: "Revoke a device of a person and end its sessions",
		Long: "Revoke a device of a person. Its sessions end, on every instance within a\n" +
			"second, and the service does not recognise the device at the next login.\n" +
			"Revoking a revoked device is a no-op.",
		Example: "  tollgate device revoke --email ada@example.com 7d9f2a44-3c1e-4b5a-9a86-0f5d1c2b3a49",
		Args:    cobra.ExactArgs(1),
	}
	var id auth.DeviceID
	c.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		id, err = auth.ParseUUID[auth.DeviceID]("ID", args[0])
		return err
	}
	return newAccountCommand(p, c, func(r run, a auth.Account) (cli.Table, error) {
		type row struct {
			ID    auth.DeviceID `json:"id"                  column:"REVOKED"`
			Ended int           `json:"sessionsInvalidated" column:"SESSIONS ENDED"`
		}
		ended, err := r.Devices.Revoke(r.ctx, a.ID, id)
		return cli.RowTable(row{id, ended}), replaceNotFound(err, "there is no device "+string(id))
	})
}
