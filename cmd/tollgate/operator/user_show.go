package operator

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

func newUserShow(p cli.Process) *cobra.Command {
	return newPersonCommand(p, &cobra.Command{
		Use:   "show --email E",
		Short: "Show one person",
		Long: "Show one person: the state of the account, the grants with their origin, the\n" +
			"identities at providers of company sign-in, and the number of\n" +
			"devices and active sessions ('tollgate device list', 'tollgate session list').",
		Example: "  tollgate user show --email ada@example.com",
	}, func(r run, a shownPerson) (cli.Table, error) {
		value := shownUser{
			ID: a.ID, Email: a.Email, Name: a.Name, State: a.State, Phone: a.Phone, MFA: a.mfa(),
			MFAEnrolledAt: a.SecondFactorEnrolledAt, RecoveryCodes: a.RecoveryCodes, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
			Grants: []shownGrant{},
		}
		devices, err := listOf[deviceRow](r, at("people", a.ID, "devices"), "devices", nil)
		if err != nil {
			return cli.Table{}, err
		}
		sessions, err := listOf[sessionRow](r, at("people", a.ID, "sessions"), "sessions", nil)
		if err != nil {
			return cli.Table{}, err
		}
		value.Devices, value.Sessions = len(devices), len(sessions)
		for _, g := range a.Grants {
			value.Grants = append(value.Grants, shownGrant{g.Action, g.Resource, g.Origin})
		}
		value.Identities, err = listOf[shownIdentity](r, at("people", a.ID, "identities"), "identities", nil)
		return value.table(), err
	})
}

type shownGrant struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`
	Origin   string `json:"origin"`
}

// shownIdentity is an identity of a person at a provider.
type shownIdentity struct {
	Provider   string `json:"provider"` // empty if it is not configured any more
	Subject    string `json:"subject"`
	Email      string `json:"email"`
	LastUsedAt string `json:"lastUsedAt"`
}

// shownUser is a person in the output of show.
type shownUser struct {
	ID            string          `json:"id"`
	Email         string          `json:"email"`
	Name          string          `json:"name"`
	State         string          `json:"state"`
	Phone         string          `json:"phone,omitempty"`
	MFA           string          `json:"mfa"`
	MFAEnrolledAt string          `json:"mfaEnrolledAt,omitempty"`
	RecoveryCodes int             `json:"recoveryCodes"`
	CreatedAt     string          `json:"createdAt"`
	UpdatedAt     string          `json:"updatedAt,omitempty"`
	Devices       int             `json:"devices"`
	Sessions      int             `json:"sessions"`
	Grants        []shownGrant    `json:"grants"`
	Identities    []shownIdentity `json:"identities"`
}

func (value shownUser) table() cli.Table {
	rows := [][]string{
		{"id", value.ID}, {"email", value.Email}, {"name", value.Name}, {"state", value.State},
		{"phone", value.Phone}, {"mfa", value.MFA}, {"mfa enrolled", value.MFAEnrolledAt},
		{"recovery codes", strconv.Itoa(value.RecoveryCodes)}, {"created", value.CreatedAt}, {"updated", value.UpdatedAt},
		{"devices", strconv.Itoa(value.Devices)}, {"sessions", strconv.Itoa(value.Sessions)},
	}
	for _, g := range value.Grants {
		rows = append(rows, []string{"grant", g.Action + " " + g.Resource + " (" + g.Origin + ")"})
	}
	for _, i := range value.Identities {
		rows = append(rows, []string{"identity", strings.TrimSpace(i.Provider + " " + i.Subject + " " + i.Email)})
	}
	return cli.Table{Header: []string{"FIELD", "VALUE"}, Rows: rows, Value: value}
}
