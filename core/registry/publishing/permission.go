package publishing

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// begin returns the act with its caller. From there on every refusal is recorded in the audit log
// with package refusal; a change is recorded in its own transaction (contract R-38).
func (p *Publisher) begin(ctx context.Context, who authority.Caller, act authority.Act) (authority.Act, error) {
	var err error
	act.Caller, err = p.keepLiving(ctx, who)
	return act, err
}

// keepLiving returns a caller that, if it is a publisher, has only the permissions whose policies
// still live. It returns fault.Unauthenticated if there are none: its token is no longer good then
// (contract P-16).
func (p *Publisher) keepLiving(ctx context.Context, c authority.Caller) (authority.Caller, error) {
	proved := c.Publisher()
	if proved == nil {
		_, err := c.Person()
		return c, err
	}
	living, err := p.ports.Policies.LivingPermissions(ctx, proved.Permissions)
	if err != nil {
		return authority.Caller{}, err
	}
	if len(living) == 0 {
		return authority.Caller{}, fault.New(fault.Unauthenticated,
			"the token is no longer good, because its policy has ended: prove who you are again")
	}
	return c.WithPermissions(living), nil
}

// checkStillLiving checks the policies of a publisher again after the packages of a document were
// checked, which may have taken longer than a policy may outlive its end.
func (p *Publisher) checkStillLiving(ctx context.Context, c authority.Caller, doc registry.Document) error {
	if c.Publisher() == nil || len(doc.Packages()) == 0 {
		return nil
	}
	c, err := p.keepLiving(ctx, c)
	if err != nil {
		return err
	}
	return p.requirePermission(ctx, c, doc.Name().String(), publishPermission())
}

// permission is what a caller needs for a change: a person one of the grants, a publisher the
// action of a policy.
type permission struct {
	grants []registry.Action
	policy publisher.Action // empty if publishers may not make the change
}

func publishPermission() permission {
	return permission{[]registry.Action{registry.ActionPublish}, publisher.Publish}
}

func editPermission() permission { return permission{[]registry.Action{registry.ActionEdit}, ""} }

func statusPermission() permission {
	return permission{[]registry.Action{registry.ActionPublish, registry.ActionEdit}, publisher.Status}
}

// requirePermission checks that the caller has a permission for the server. A person or a service
// account needs one of the grants, within the scopes of its token, and a person then trust (contract
// ); a publisher needs a policy, and no trust, because that was given when the policy was
// made (contract P-15). For a name that no server can have, a permission for any pattern is enough,
// so that the caller gets the error of the name.
func (p *Publisher) requirePermission(
	ctx context.Context, c authority.Caller, serverName string, needed permission,
) error {
	name, bad := registry.ParseName(serverName)
	if c.Publisher() != nil {
		return requirePolicy(c, name, bad != nil, needed)
	}
	if err := c.RequireAction(needed.grants...); err != nil {
		return err
	}
	grants, err := p.grantsOf(ctx, c)
	if err != nil {
		return err
	}
	granted := slices.ContainsFunc(grants, func(g registry.Grant) bool {
		return slices.Contains(needed.grants, g.Action) && c.Allows(g.Action) && (bad != nil || g.Pattern.Matches(name))
	})
	switch {
	case granted:
		_, err := c.RequireWriter()
		return err
	case bad != nil:
		return fault.Newf(fault.Forbidden, "you have no %s permission on this registry", joinActions(needed.grants))
	}
	return fault.Newf(fault.Forbidden, "you have no %s permission for %s", joinActions(needed.grants), name)
}

// requirePolicy checks that a publisher has a permission for a server, or for any if its name is
// bad.
func requirePolicy(c authority.Caller, name registry.Name, bad bool, needed permission) error {
	if needed.policy == "" {
		_, err := c.Person()
		return err
	}
	proved := c.Publisher()
	allowed := slices.ContainsFunc(proved.Permissions, func(p publisher.Permission) bool {
		return p.Allows(needed.policy, name) || bad && slices.Contains(p.Actions, needed.policy)
	})
	switch {
	case allowed:
		return nil
	case bad:
		return fault.Newf(fault.Forbidden, "no policy gives %s the action %s", proved.Subject, needed.policy)
	}
	return fault.Newf(fault.Forbidden, "no policy gives %s the action %s for %s", proved.Subject, needed.policy, name)
}

// grantsOf returns the grants of a person.
func (p *Publisher) grantsOf(ctx context.Context, c authority.Caller) ([]registry.Grant, error) {
	holder, err := c.Person()
	if err != nil {
		return nil, err
	}
	return p.ports.Grants.Of(ctx, holder)
}

// joinActions returns the actions joined by "or".
func joinActions(actions []registry.Action) string {
	words := string(actions[0])
	for _, a := range actions[1:] {
		words += " or " + string(a)
	}
	return words
}

// checkReserved returns fault.Forbidden for the name of a server that no one may publish
// (contract P-21).
func (p *Publisher) checkReserved(serverName string) error {
	name, bad := registry.ParseName(serverName) // the rules of documents refuse a bad name
	for _, reserved := range p.config.Reserved {
		if bad == nil && reserved.Matches(name) {
			return fault.Newf(fault.Forbidden, "%s is in the reserved namespace %s, in which nobody may publish",
				name, reserved)
		}
	}
	return nil
}
