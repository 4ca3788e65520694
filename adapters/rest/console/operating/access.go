package operating

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const accessPath = Path + "/access"

var (
	accessPage     = site.NewPage(templates, "templates/access.html", "templates/ruleform.html")
	accessRulePage = site.NewPage(templates, "templates/accessrule.html", "templates/ruleform.html")
)

// confirmInput is the field that is on the form of a rule with which no call is allowed any more.
const confirmInput = "confirm"

func (p *Pages) mountAccess(r fiber.Router) {
	p.mountKind(r, kindPages{
		Objects: p.ports.AccessRules.Objects(), list: p.access, page: p.accessRule, path: accessPath, one: accessPath + "/rules",
		noun: "rule", added: "rule", removed: "unruled", put: p.putAccessRule,
	})
	p.site.Post(r, accessPath+"/steps", 1, p.act("New access rule", p.takeStep(p.access), p.access))
	p.site.Post(r, accessPath+"/rules/:name/steps", 1, p.act("Change the rule", p.takeStep(p.accessRule), p.accessRule))
	r.Get(explainPath, p.page(p.explain))
}

// accessView is the page with the rules about calls.
type accessView struct {
	deciding.RulePage

	Query        deciding.RuleQuery
	Filtered     bool
	Failed       bool         // a field of the filter is wrong
	Before, Next string       // addresses of the other pages; empty without one
	Add          ruleFormView // unless the list is shown
}

func (p *Pages) access(ctx context.Context, v *site.Visit, problems site.Problems) error {
	q := accessQuery(v)
	view := accessView{Query: q, Filtered: q.Subject+q.Server != ""}
	page, err := p.ports.Access.Rules(ctx, q)
	if f, ok := fault.As(err); ok && f.Kind == fault.Invalid {
		v.Status(fiber.StatusUnprocessableEntity)
		problems, view.Failed = append(problems, site.ProblemsOf(f)...), true
		page, err = p.ports.Access.Rules(ctx, deciding.RuleQuery{})
	}
	if err != nil {
		return err
	}
	view.RulePage = page
	view.Before, view.Next = accessPages(q, page.Total)
	if view.Add, err = p.newRuleForm(ctx, v, problems, q); err != nil {
		return err
	}
	head := newHead(v, "Access rules", problems, view.Add.FormView)
	head.Problems = keepFields(problems, head.Problems, "subject", "server")
	return v.Render(accessPage, head, view)
}

// newRuleForm returns the form of a new rule, for the subject and the server of the page; nothing for a page
// that shows the list.
func (p *Pages) newRuleForm(ctx context.Context, v *site.Visit, problems site.Problems, q deciding.RuleQuery) (view ruleFormView, err error) {
	if !v.Adds(accessPath) {
		return view, nil
	}
	return p.ruleForm(ctx, v, problems, newAccessRuleForm(v, problems, accessPath, "Add this rule", nameInput), url.Values{
		"order": {"100"}, "effect": {string(access.Allow)}, "mode": {string(access.Enforce)}, "servers": {q.Server}, "subjects": {q.Subject},
	})
}

// keepFields returns the problems of a page with the fields that its filters have.
func keepFields(all, shown site.Problems, filters ...string) site.Problems {
	for i := range shown {
		if slices.Contains(filters, all[i].Field) {
			shown[i].Field = all[i].Field
		}
	}
	return shown
}

// accessQuery returns which rules a page shows.
func accessQuery(v *site.Visit) deciding.RuleQuery {
	offset, err := strconv.Atoi(v.Text("offset"))
	if err != nil || offset < 0 {
		offset = 0
	}
	return deciding.RuleQuery{
		Subject: subjectOf(v.Text("subject")), Server: strings.TrimSpace(v.Text("server")), Offset: offset, Limit: perPage,
	}
}

// subjectOf returns the subject that a person has typed: an e-mail address means a person.
func subjectOf(text string) string {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "@") && !strings.Contains(text, ":") {
		return string(access.SelectPerson) + ":" + text
	}
	return text
}

// accessPages returns the addresses of the pages before and after one.
func accessPages(q deciding.RuleQuery, total int) (before, next string) {
	address := func(offset int) string {
		return accessPath + "?" + url.Values{
			"subject": {q.Subject}, "server": {q.Server}, "offset": {strconv.Itoa(offset)},
		}.Encode()
	}
	if q.Offset > 0 {
		before = address(max(q.Offset-perPage, 0))
	}
	if q.Offset+perPage < total {
		next = address(q.Offset + perPage)
	}
	return before, next
}

// newAccessRuleForm returns the form of a rule. It has the field of the confirmation if that is
// missing or given.
func newAccessRuleForm(
	v *site.Visit, problems site.Problems, action, button string, first ...site.Input,
) site.Form {
	f := site.Form{Action: action, Button: button, Inputs: append(first, inputsOf(access.RuleKind.Fields)...)}
	if problems.Of(confirmInput) != "" || v.Form.Has(confirmInput) {
		f.Inputs = append(f.Inputs, site.Input{Name: confirmInput, Label: "Confirmation", Kind: "choices", Options: []site.Option{
			{Value: "true", Text: "Nobody may call any server then. Store it all the same"},
		}})
	}
	return f
}

// accessRuleView is the page of a rule about calls.
type accessRuleView struct {
	*access.Rule

	Path   string
	Change ruleFormView
}

func (p *Pages) accessRule(ctx context.Context, v *site.Visit, problems site.Problems) error {
	r, err := p.ports.AccessRules.Get(ctx, key[access.RuleName](v, "name"))
	if err != nil {
		return err
	}
	setConflict(v, problems, r.ManagedBy)
	page := accessRuleView{Rule: &r, Path: accessPath + "/rules/" + string(r.Name)}
	form := newAccessRuleForm(v, problems, page.Path, "Save this rule")
	if r.ManagedBy != "" {
		form.Action = "" // the page shows what is stored, also after a change was refused
	}
	if page.Change, err = p.ruleForm(ctx, v, problems, form, formValues(access.RuleKind.Fields, r.Fields())); err != nil {
		return err
	}
	page.Change.Stored = true
	return v.Render(accessRulePage, newHead(v, "Access rule "+string(r.Name), problems, page.Change.FormView), page)
}

// putAccessRule stores the rule that a form describes.
func (p *Pages) putAccessRule(ctx context.Context, v *site.Visit, name string, exists bool) error {
	joinLists(v)
	c, err := formChange(v, &access.RuleKind, name, exists)
	if err == nil && v.Form.Get(confirmInput) == "" {
		var r access.Rule
		if r, err = access.ParseRule(c.Fields); err == nil {
			err = p.ports.Access.CheckLockout(ctx, &r)
		}
	}
	if err == nil {
		_, _, err = p.ports.AccessRules.Objects().Put(ctx, c)
	}
	return err
}

// DefaultEffect returns the effect of a setting, which denies if it is empty.
func (accessView) DefaultEffect(e access.Effect) access.Effect { return cmp.Or(e, access.Deny) }
