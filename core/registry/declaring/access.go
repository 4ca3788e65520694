package declaring

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// This file has the kinds that say who may do what.

func (r *run) grants() kind {
	return kind{
		name: kindGrant, member: "grants",
		fields: []kinds.Field{
			{Name: "person"}, {Name: "service"}, {Name: "action", Required: true, Check: kinds.Checked(registry.ParseAction)},
			{Name: "resource", Check: kinds.Checked(registry.ParsePattern)},
		},
		decode: func(_ context.Context, v audit.Details) (object, error) {
			holder, err := r.holder(v)
			if err != nil {
				return object{}, err
			}
			g, err := registry.ParseGrant(holder, v.Text("action"), v.Text("resource"))
			return r.grant(&registry.GrantRecord{Grant: g}), err
		},
		stored: listed(func(ctx context.Context) ([]registry.GrantRecord, error) {
			all, err := r.ports.Grants.Records(ctx, registrystore.GrantQuery{})
			return slices.DeleteFunc(all, func(g registry.GrantRecord) bool { return g.Provider() != "" }), err
		}, r.grant),
	}
}

// holder returns the holder that a grant in a file names.
func (r *run) holder(v audit.Details) (registry.Holder, error) {
	switch person, service := v.Text("person"), v.Text("service"); {
	case (person == "") == (service == ""):
		return "", fault.New(fault.Invalid, "a grant must have either a person or a service")
	case service == "":
		return r.person("person", person)
	case !r.accounts[service]:
		return "", fault.In("service", fault.Violated("service: there is no service account with the name %.60q", service))
	default:
		return registry.ServiceHolder(service), nil
	}
}

func (r *run) grant(g *registry.GrantRecord) object {
	held, holder := g.Grant, r.nameOf(g.Holder)
	fields := audit.Details{
		"person": audit.Text(holder), "action": audit.Text(g.Action), "resource": audit.Text(g.Pattern.String()),
	}
	if service, ok := registry.Holder(holder).Service(); ok {
		delete(fields, "person")
		fields["service"] = audit.Text(service)
	}
	return object{
		Object: audit.Object{
			Kind: kindGrant, Key: strings.Join([]string{holder, string(g.Action), g.Pattern.String()}, " "), Fields: fields,
		},
		owner: g.ManagedBy,
		save: func(ctx context.Context, owner string, before *object) error {
			if before == nil {
				_, err := r.ports.GrantChanges.Create(ctx, registry.GrantRecord{Grant: held, ManagedBy: owner})
				return err
			}
			return r.ports.GrantChanges.Manage(ctx, held, owner)
		},
		remove: func(ctx context.Context) error { return r.ports.GrantChanges.Remove(ctx, held, nil) },
	}
}

// nameOf returns the e-mail address of a person with an id, and any other text as it is.
func (r *run) nameOf(id registry.Holder) string { return cmp.Or(r.emails[id], string(id)) }

func (r *run) policies() kind {
	return kind{
		name: "policy", member: "policies", alike: true,
		fields: []kinds.Field{
			{Name: "method", Required: true, Check: kinds.Checked(publisher.ParseMethod)},
			{Name: "pattern", Required: true, Check: kinds.Checked(registry.ParsePattern)},
			{Name: "actions", Shape: kinds.Texts, Check: kinds.Checked(publisher.ParseAction)},
			{Name: "domain", Check: kinds.Checked(publisher.ParseDomain)},
			{Name: "keyFingerprint", Check: kinds.Checked(publisher.ParseFingerprint)}, {Name: "issuer"},
			{Name: "subject", Check: kinds.Checked(publisher.ParseSubjectPattern)}, {Name: "claims", Shape: kinds.TextMap},
			{Name: "expiresAt", Check: kinds.CheckTime}, {Name: "owner"},
		},
		decode: func(_ context.Context, v audit.Details) (object, error) {
			draft := publisher.Draft{
				Method: v.Text("method"), Pattern: v.Text("pattern"), Actions: v.Texts("actions"),
				Domain: v.Text("domain"), KeyFingerprint: v.Text("keyFingerprint"), Issuer: v.Text("issuer"),
				Subject: v.Text("subject"), Claims: v.Inner("claims").TextMap(), ExpiresAt: parseTime(v.Text("expiresAt")),
			}
			p, err := r.ports.Policies.Parse(draft)
			if owner := v.Text("owner"); err == nil && owner != "" {
				draft.Owner, err = r.person("owner", owner)
			}
			p.CreatedBy = draft.Owner
			o := r.policy(&p)
			o.save = func(ctx context.Context, owner string, before *object) error {
				draft.ManagedBy = owner
				if before != nil {
					return r.ports.Policies.Change(ctx, registry.PolicyID(before.id), draft)
				}
				_, err := r.ports.Policies.Add(ctx, r.request.Operator, draft)
				return err
			}
			return o, err
		},
		stored: listed(r.ports.Policies.All, r.policy),
	}
}

func (r *run) policy(p *publisher.Policy) object {
	id := p.ID
	subject := []string{string(p.Method), p.Domain.String(), p.Fingerprint.String(), p.Issuer, p.Subject.String()}
	for _, name := range slices.Sorted(maps.Keys(p.Claims)) {
		subject = append(subject, name+"="+p.Claims[name])
	}
	subject = append(subject, p.Pattern.String())
	return object{
		Object: audit.Object{
			Kind: "policy", Key: strings.Join(slices.DeleteFunc(subject, func(s string) bool { return s == "" }), " "),
			Fields: kinds.Present(audit.Details{
				"method": audit.Text(p.Method), "pattern": audit.Text(p.Pattern.String()),
				"actions": audit.Texts(p.Actions), "domain": audit.Text(p.Domain.String()),
				"keyFingerprint": audit.Text(p.Fingerprint.String()), "issuer": audit.Text(p.Issuer),
				"subject": audit.Text(p.Subject.String()), "claims": textDetails(p.Claims),
				"expiresAt": audit.Text(formatTime(p.ExpiresAt)), "owner": audit.Text(r.nameOf(p.CreatedBy)),
			}),
		},
		id: string(p.ID), owner: p.ManagedBy,
		remove: func(ctx context.Context) error {
			return r.ports.Policies.Remove(ctx, r.request.Operator, id, nil)
		},
	}
}

func (r *run) reviewRules() kind {
	return kind{
		name: "reviewRule", member: "reviewRules",
		fields: []kinds.Field{
			{Name: "pattern", Required: true, Check: kinds.Checked(registry.ParsePattern)}, {Name: "publisher"},
			{Name: "when", Required: true, Check: kinds.Checked(review.ParseWhen)},
		},
		decode: func(ctx context.Context, v audit.Details) (object, error) {
			rule := review.Rule{Publisher: v.Text("publisher"), When: review.When(v.Text("when"))}
			var err error
			if rule.Pattern, err = registry.ParsePattern(v.Text("pattern")); err != nil {
				return object{}, err
			}
			if strings.Contains(rule.Publisher, "@") {
				id, err := r.person("publisher", rule.Publisher)
				if rule.Publisher = string(id); err != nil {
					return object{}, err
				}
			} else if err := r.checkPublisher(ctx, rule.Publisher); err != nil {
				return object{}, err
			}
			return r.reviewRule(&rule), nil
		},
		stored: listed(r.ports.Reviews.Rules, r.reviewRule),
	}
}

// checkPublisher checks that the publisher of a rule is empty or the id of a policy or a person.
func (r *run) checkPublisher(ctx context.Context, id string) error {
	if id == "" || r.emails[registry.Holder(id)] != "" {
		return nil
	}
	all, err := r.ports.Policies.All(ctx)
	if err == nil && !slices.ContainsFunc(all, func(p publisher.Policy) bool { return string(p.ID) == id }) {
		err = fault.In("publisher", fault.Violated("publisher: there is no policy with the id %.60q", id))
	}
	return err
}

func (r *run) reviewRule(rule *review.Rule) object {
	id, by := rule.ID, r.nameOf(registry.Holder(rule.Publisher))
	draft := reviewing.RuleDraft{Pattern: rule.Pattern.String(), Publisher: rule.Publisher, When: string(rule.When)}
	return object{
		Object: audit.Object{
			Kind: "reviewRule",
			Key:  strings.Join(strings.Fields(rule.Pattern.String()+" "+by+" "+string(rule.When)), " "),
			Fields: kinds.Present(audit.Details{
				"pattern": audit.Text(rule.Pattern.String()), "publisher": audit.Text(by), "when": audit.Text(rule.When),
			}),
		},
		owner: rule.ManagedBy,
		save: func(ctx context.Context, owner string, before *object) error {
			if before != nil { // it has another owner
				if err := before.remove(ctx); err != nil {
					return err
				}
			}
			draft.ManagedBy = owner
			_, err := r.ports.Reviews.AddRule(ctx, draft)
			return err
		},
		remove: func(ctx context.Context) error { return r.ports.Reviews.RemoveRule(ctx, id, nil) },
	}
}
