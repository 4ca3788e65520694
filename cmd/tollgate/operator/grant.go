package operator

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

func newGrant(p cli.Process) *cobra.Command {
	return cli.NewGroup("grant", "Manage who may change which servers", newGrantAdd(p),
		newGrantChange(p, "remove", "Remove a grant", removeGrant), newGrantList(p))
}

// grantFlags are the flags that identify one grant.
type grantFlags struct {
	email, service, action, resource string

	person auth.Email // parsed
}

func (f *grantFlags) addTo(c *cobra.Command) {
	c.Flags().StringVar(&f.email, "email", "", "e-mail address of the person")
	c.Flags().StringVar(&f.service, "service", "", "name of the service account, instead of a person")
	c.Flags().StringVar(&f.action, "action", "", "allowed action: publish, edit, review or operate")
	c.Flags().StringVar(&f.resource, "resource", "", "servers: a name, a prefix that ends in *, or *; not with operate")
	cli.RequireFlags(c, "action")
	cli.CompleteValues(c, "action", "publish", "edit", "review", "operate")
}

// parseGrant returns the grant that the flags identify, without its holder.
func (f *grantFlags) parseGrant() (registry.Grant, error) {
	switch {
	case (f.email == "") == (f.service == ""):
		return registry.Grant{}, errors.New("--email or --service is required, and not both")
	case f.resource == "" && f.action != string(registry.ActionOperate):
		return registry.Grant{}, errors.New("--resource: the pattern is required, unless the action is operate")
	}
	return registry.ParseGrant("", f.action, f.resource)
}

// read returns the grant that the flags identify. Its holder exists.
func (f *grantFlags) read(r run, g registry.Grant) (text grantText, holder shownPerson, err error) {
	text = grantText{Service: f.service, Action: f.action, Resource: g.Pattern.String()}
	if f.service == "" {
		holder, err = r.person(f.person)
		text.Person = holder.ID
		return text, holder, err
	}
	err = r.send(http.MethodGet, at("service-accounts", f.service), nil, nil)
	return text, holder, replaceNotFound(err, "there is no service account "+f.service)
}

func newGrantAdd(p cli.Process) *cobra.Command {
	return newGrantChange(p, "add", "Allow a person to publish, edit or review servers, or to operate",
		func(r run, g grantText, _ shownPerson) error {
			err := r.send(http.MethodPost, at("grants"), g, nil)
			if fault.Is(err, fault.Conflict) { // the holder has it
				return nil
			}
			return err
		})
}

// newGrantChange returns a command that calls do with the grant that its flags identify, and prints
// the grant.
func newGrantChange(p cli.Process, use, short string, do func(run, grantText, shownPerson) error) *cobra.Command {
	f := &grantFlags{}
	c := &cobra.Command{
		Use:   use + " --email E|--service NAME --action publish|edit|review|operate [--resource PATTERN]",
		Short: short,
		Long: short + ".\n\nThe action publish allows a person to publish versions, edit to replace and\n" +
			"delete them; either allows changes of status. The action review allows to approve\n" +
			"what others publish, and to quarantine it. The action operate allows to do in the\n" +
			"console what operator commands do; it is over everything, takes no --resource,\n" +
			"and does not include the others. The change is in force from the next request on.",
		Example: "  tollgate grant " + use + " --email ada@example.com --action publish --resource 'com.example/*'",
	}
	f.addTo(c)
	var g registry.Grant
	cli.CheckFirst(c, func() (err error) {
		if g, err = f.parseGrant(); err == nil && f.service == "" {
			f.person, err = auth.ParseEmail(f.email)
		}
		return err
	})
	forced := c.Context
	if use == "remove" { // it may end that somebody operates
		forced, _ = addLastOperatorForce(c), addManaged(c)
	}
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		r.ctx = forced()
		text, holder, err := f.read(r, g)
		if err == nil {
			err = do(r, text, holder)
		}
		return grantTable(r, []grantText{text}), err
	})
}

func newGrantList(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:     "list [--email E]",
		Short:   "List the grants of all people or of one person",
		Example: "  tollgate grant list --output json\n  tollgate grant list --email ada@example.com",
	}
	var flag string
	var email auth.Email
	c.Flags().StringVar(&flag, "email", "",
		"e-mail address of the person whose grants are listed; default: all grants")
	cli.CheckFirst(c, func() (err error) {
		if c.Flags().Changed("email") {
			email, err = auth.ParseEmail(flag)
		}
		return err
	})
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		if email == "" {
			all, err := listOf[grantText](r, at("grants"), "grants", nil)
			return grantTable(r, all), err
		}
		holder, err := r.person(email)
		return grantTable(r, holder.Grants), err
	})
}

// grantRow is a grant in the output of commands.
type grantRow struct {
	Email    string `json:"email"    column:"EMAIL"`
	Action   string `json:"action"   column:"ACTION"`
	Resource string `json:"resource" column:"RESOURCE"`
	Origin   string `json:"origin"`
}

// grantText is a grant as the API shows it.
type grantText struct {
	ID       string `json:"id,omitempty"`
	Person   string `json:"person,omitempty"`
	Service  string `json:"service,omitempty"`
	Action   string `json:"action"`
	Resource string `json:"resource,omitempty"`
	Origin   string `json:"origin,omitempty"`
}

// removeGrant removes a grant, given without an id, of a person or of a service account.
func removeGrant(r run, g grantText, holder shownPerson) (err error) {
	held := holder.Grants
	if g.Service != "" {
		held, err = listOf[grantText](r, at("grants"), "grants", nil)
	}
	for _, one := range held {
		if one.Person == g.Person && one.Service == g.Service && one.Action == g.Action && one.Resource == g.Resource {
			return r.send(http.MethodDelete, at("grants", one.ID), nil, nil)
		}
	}
	if err == nil {
		err = errors.New("the person or the service account does not have this grant")
	}
	return err
}

// grantTable returns grants with the e-mail address of each holder.
func grantTable(r run, list []grantText) cli.Table {
	r.readEmails(len(list))
	return cli.TableOf(list, func(g *grantText) grantRow {
		row := grantRow{r.emailOf(g.Person), g.Action, g.Resource, cmp.Or(g.Origin, "hand")}
		if g.Service != "" {
			row.Email = string(registry.ServiceHolder(g.Service))
		}
		return row
	})
}
