package operator

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
)

func newUserShow(p cli.Process) *cobra.Command {
	return newPersonCommand(p, &cobra.Command{
		Use:   "show --email E",
		Short: "Show one person",
		Long: "Show one person: the state of the account, the grants, and the number of\n" +
			"devices and active sessions ('tollgate device list', 'tollgate session list').",
		Example: "  tollgate user show --email ada@example.com",
	}, func(r run, a auth.Account) (cli.Table, error) {
		d, err := readPersonDetails(r, a)
		return d.table(), err
	})
}

// personDetails contains the account of a person with its grants, devices and sessions.
type personDetails struct {
	account  auth.Account
	grants   []registry.Grant
	devices  []auth.Device
	sessions []auth.Session
}

func readPersonDetails(r run, a auth.Account) (d personDetails, err error) {
	d.account = a
	if d.devices, err = r.Devices.ListDevices(r.ctx, a.ID); err != nil {
		return d, err
	}
	if d.sessions, err = r.Devices.ListSessions(r.ctx, a.ID); err != nil {
		return d, err
	}
	d.grants, err = r.Grants.Of(r.ctx, registry.Holder(a.ID))
	return d, err
}

func (d personDetails) table() cli.Table {
	type grant struct {
		Action   registry.Action `json:"action"`
		Resource string          `json:"resource"`
	}
	type row struct {
		ID            auth.UserID       `json:"id"`
		Email         auth.Email        `json:"email"`
		Name          string            `json:"name"`
		State         auth.AccountState `json:"state"`
		Phone         string            `json:"phone,omitempty"`
		MFA           string            `json:"mfa"`
		MFAEnrolledAt string            `json:"mfaEnrolledAt,omitempty"`
		RecoveryCodes int               `json:"recoveryCodes"`
		CreatedAt     string            `json:"createdAt"`
		UpdatedAt     string            `json:"updatedAt"`
		Devices       int               `json:"devices"`
		Sessions      int               `json:"sessions"`
		Grants        []grant           `json:"grants"`
	}
	a := &d.account
	value := row{
		a.ID, a.Email, a.Name, a.State, a.Phone, mfaState(&a.MFA), enrolledAt(&a.MFA), len(a.MFA.Recovery),
		cli.FormatTime(a.CreatedAt), cli.FormatTime(a.UpdatedAt),
		len(d.devices), len(d.sessions), make([]grant, 0, len(d.grants)),
	}
	rows := [][]string{
		{"id", string(a.ID)}, {"email", string(a.Email)}, {"name", a.Name}, {"state", string(a.State)},
		{"phone", a.Phone}, {"mfa", value.MFA}, {"mfa enrolled", value.MFAEnrolledAt},
		{"recovery codes", strconv.Itoa(value.RecoveryCodes)}, {"created", value.CreatedAt}, {"updated", value.UpdatedAt},
		{"devices", strconv.Itoa(value.Devices)}, {"sessions", strconv.Itoa(value.Sessions)},
	}
	for _, g := range d.grants {
		value.Grants = append(value.Grants, grant{g.Action, g.Pattern.String()})
		rows = append(rows, []string{"grant", string(g.Action) + " " + g.Pattern.String()})
	}
	return cli.Table{Header: []string{"FIELD", "VALUE"}, Rows: rows, Value: value}
}
