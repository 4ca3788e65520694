package operator

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/service"
)

// grantPage is the number of grants that one query reads.
const grantPage = 500

func newGrant(p cli.Process) *cobra.Command {
	return cli.NewGroup("grant", "Manage who may change which servers", newGrantAdd(p), newGrantRemove(p), newGrantList(p))
}

// grantFlags are the flags that identify one grant.
type grantFlags struct{ email, service, action, resource string }

func (f *grantFlags) addTo(c *cobra.Command) {
	c.Flags().StringVar(&f.email, "email", "", "e-mail address of the person")
	c.Flags().StringVar(&f.service, "service", "", "name of the service account, instead of a person")
	c.Flags().StringVar(&f.action, "action", "", "allowed action: publish, edit, review or operate")
	c.Flags().StringVar(&f.resource, "resource", "", "servers: a name, a prefix that ends in *, or *; not with operate")
	cli.RequireFlags(c, "action")
	cli.CompleteValues(c, "action", "publish", "edit", "review", "operate")
}

// resolveGrant returns the grant that the flags identify.
func (f *grantFlags) resolveGrant(r run) (registry.Grant, error) {
	if (f.email == "") == (f.service == "") {
		return registry.Grant{}, errors.New("--email or --service is required, and not both")
	}
	if f.resource == "" && f.action != string(registry.ActionOperate) {
		return registry.Grant{}, errors.New("--resource: the pattern is required, unless the action is operate")
	}
	g, err := registry.ParseGrant("", f.action, f.resource)
	if err != nil {
		return registry.Grant{}, err
	}
	if f.service == "" {
		g.Holder, err = holderOf(r, f.email)
		return g, err
	}
	account, err := r.Services.Get(r.ctx, service.Name(f.service))
	g.Holder = account.Name.Holder()
	return g, replaceNotFound(err, "there is no service account "+f.service)
}

// holderOf returns the grant holder with an e-mail address.
func holderOf(r run, address string) (registry.Holder, error) {
	email, err := auth.ParseEmail(address)
	if err != nil {
		return "", err
	}
	account, err := r.person(email)
	return registry.Holder(account.ID), err
}

func newGrantAdd(p cli.Process) *cobra.Command {
	return newGrantChange(p, "add", "Allow a person to publish, edit or review servers, or to operate",
		func(r run, g registry.Grant) error {
			return r.GrantChanges.Add(r.ctx, g)
		}, false)
}

func newGrantRemove(p cli.Process) *cobra.Command {
	return newGrantChange(p, "remove", "Remove a grant", func(r run, g registry.Grant) error {
		return replaceNotFound(r.GrantChanges.Remove(r.ctx, g), "the person or the service account does not have this grant")
	}, true)
}

// newGrantChange returns a command that calls do with the grant that its flags identify, and prints
// the grant.
func newGrantChange(
	p cli.Process, use, short string, do func(run, registry.Grant) error, endsOperating bool,
) *cobra.Command {
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
	forced := c.Context
	if endsOperating {
		forced = addLastOperatorForce(c)
	}
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		g, err := f.resolveGrant(r)
		if err == nil {
			r.ctx = forced()
			err = do(r, g)
		}
		return grantTable(r, []registry.Grant{g}), err
	})
}

func newGrantList(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:     "list [--email E]",
		Short:   "List the grants of all people or of one person",
		Example: "  tollgate grant list --output json\n  tollgate grant list --email ada@example.com",
	}
	var email string
	c.Flags().StringVar(&email, "email", "",
		"e-mail address of the person whose grants are listed; default: all grants")
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		if !c.Flags().Changed("email") {
			grants, err := allGrants(r)
			return grantTable(r, grants), err
		}
		holder, err := holderOf(r, email)
		if err != nil {
			return cli.Table{}, err
		}
		grants, err := r.Grants.Of(r.ctx, holder)
		return grantTable(r, grants), err
	})
}

func allGrants(r run) ([]registry.Grant, error) {
	var all []registry.Grant
	var after registry.Grant
	for {
		grants, err := r.Grants.List(r.ctx, after, grantPage)
		if err != nil {
			return nil, err
		}
		all = append(all, grants...)
		if len(grants) < grantPage {
			return all, nil
		}
		after = grants[len(grants)-1]
	}
}

// grantTable returns grants with the e-mail address of each holder.
func grantTable(r run, grants []registry.Grant) cli.Table {
	type row struct {
		Email    string `json:"email"    column:"EMAIL"`
		Action   string `json:"action"   column:"ACTION"`
		Resource string `json:"resource" column:"RESOURCE"`
	}
	return cli.TableOf(grants, func(g *registry.Grant) row {
		return row{r.emailOf(string(g.Holder)), string(g.Action), g.Pattern.String()}
	})
}
