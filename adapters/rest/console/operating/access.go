package operating

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

const (
	accessPath     = Path + "/access"
	accessRulePath = accessPath + "/rules/:name"
)

var (
	accessPage     = site.NewPage(templates, "templates/access.html")
	accessRulePage = site.NewPage(templates, "templates/accessrule.html")
)

// confirmInput is the field that is on the form of a rule with which no call is allowed any more.
const confirmInput = "confirm"

var levelOptions = newLevelOptions()

func newLevelOptions() []site.Option {
	options := []site.Option{{Value: "", Text: "Any"}}
	for _, l := range trustlevel.All() {
		options = append(options, site.Option{Value: l.String(), Text: l.String()})
	}
	return options
}

// accessRuleInputs are the fields of a rule about calls without its name.
var accessRuleInputs = []site.Input{
	{Name: "order", Label: "Order", Kind: "number", Hint: "0 to 10,000. The lowest is tried first.", Required: true},
	{Name: "effect", Label: "Effect", Kind: "select", Options: []site.Option{
		{Value: string(access.Allow), Text: "Allow"}, {Value: string(access.Deny), Text: "Deny"},
	}},
	{
		Name: "subjects", Label: "Subjects", Kind: "area", Required: true,
		Hint: "One on each line: person:EMAIL, group:PROVIDER/GROUP, grant:ACTION, service:NAME, everyone (any valid token), anyone.",
	},
	{
		Name: "servers", Label: "Servers", Kind: "area", Required: true,
		Hint: "Names, prefixes like com.example/*, or *, one on each line.",
	},
	{Name: "methods", Label: "Methods", Kind: "choices", Hint: "None for all.", Options: site.Options(access.Classes()...)},
	{Name: "tools", Label: "Tools", Kind: "area", Hint: "Names, or prefixes such as read_*, one on each line. Empty for all."},
	{
		Name: "minTrust", Label: "Least trust", Kind: "select", Options: levelOptions,
		Hint: "Of a rule that allows. Who has less is asked to verify.",
	},
	{Name: "networks", Label: "Networks", Kind: "area", Hint: "Of the client, such as 10.0.0.0/8, one on each line. Empty for all."},
	{
		Name: "expiresAt", Label: "End",
		Hint: "A day such as 2027-01-31, at whose beginning it ends, or a time such as 2027-01-31T18:00:00Z. Empty: never.",
	},
	{Name: "mode", Label: "Mode", Kind: "select", Options: []site.Option{
		{Value: string(access.Enforce), Text: "Enforce"}, {Value: string(access.Observe), Text: "Observe: count what it would do, and decide nothing"},
	}},
}

func (p *Pages) mountAccess(r fiber.Router) {
	p.open(r, accessPath, p.access)
	p.site.Post(r, accessPath, 0, p.act("Add this rule", p.addAccessRule, p.access))
	r.Get(explainPath, p.page(p.explain))
	p.open(r, accessRulePath, p.accessRule)
	p.site.Post(r, accessRulePath, 0, p.act("Save this rule", p.changeAccessRule, p.accessRule))
	p.site.Post(r, accessRulePath+"/remove", 3, p.act("Remove this rule", p.removeAccessRule, nil))
}

// accessView is the page with the rules about calls.
type accessView struct {
	deciding.RulePage

	Query        deciding.RuleQuery
	Filtered     bool
	Failed       bool   // a field of the filter is wrong
	Before, Next string // addresses of the other pages; empty without one
	Add          site.FormView
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
	view.Add = v.Fill(newAccessRuleForm(v, problems, accessPath, "Add this rule", nameInput),
		url.Values{"order": {"100"}, "servers": {q.Server}}, problems)
	head := newHead(v, "Access rules", problems, view.Add)
	head.Problems = keepFields(problems, head.Problems, "subject", "server")
	return v.Render(accessPage, head, view)
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
	f := site.Form{Action: action, Button: button, Inputs: append(first, accessRuleInputs...)}
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
	Change site.FormView
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
	page.Change = v.Fill(form, accessRuleValues(&r), problems)
	return v.Render(accessRulePage, newHead(v, "Access rule "+string(r.Name), problems, page.Change), page)
}

// accessRuleValues returns a rule as its form has it.
func accessRuleValues(r *access.Rule) url.Values {
	subjects, methods := make([]string, len(r.Subjects)), make([]string, len(r.Methods))
	for i, s := range r.Subjects {
		subjects[i] = s.String()
	}
	for i, m := range r.Methods {
		methods[i] = string(m)
	}
	values := url.Values{
		"order": {strconv.Itoa(r.Order)}, "effect": {string(r.Effect)}, "methods": methods, "minTrust": {r.MinTrust.String()},
		"mode": {string(r.Mode)}, "subjects": {strings.Join(subjects, "\n")}, "tools": {strings.Join(r.Tools, "\n")},
		"servers":  {strings.Join(toolserver.PatternTexts(r.Servers), "\n")},
		"networks": {strings.Join(fields.NetworkTexts(r.Networks), "\n")},
	}
	if !r.ExpiresAt.IsZero() {
		end := r.ExpiresAt.Format(time.RFC3339Nano)
		values.Set("expiresAt", strings.TrimSuffix(end, dayBegins))
	}
	return values
}

// dayBegins is what a time at the beginning of a day has after the day.
const dayBegins = "T00:00:00Z"

// formAccessRule returns the rule that a form describes.
func formAccessRule(v *site.Visit, name string) (access.Rule, error) {
	order, err := strconv.Atoi(v.Trimmed("order"))
	if err != nil {
		order = -1 // no order
	}
	given := audit.Details{"name": audit.Text(name), "order": audit.Number(order), "methods": audit.Texts(v.Form["methods"])}
	for _, text := range [...]string{"effect", "minTrust", "mode"} {
		given.Set(text, v.Form.Get(text))
	}
	end := v.Trimmed("expiresAt")
	if _, err := time.Parse(time.DateOnly, end); err == nil {
		end += dayBegins
	}
	given.Set("expiresAt", end)
	for _, list := range [...]string{"subjects", "servers", "tools", "networks"} {
		given[list] = audit.Texts(formLines(v, list))
	}
	return access.ParseRule(given)
}

// putAccessRule stores the rule that a form describes.
func (p *Pages) putAccessRule(ctx context.Context, v *site.Visit, name string, exists bool) error {
	r, err := formAccessRule(v, name)
	if err == nil && v.Form.Get(confirmInput) == "" {
		err = p.ports.Access.CheckLockout(ctx, &r)
	}
	if err == nil {
		_, _, err = p.ports.AccessRules.Put(ctx, r, byHand(exists, managerOfAccessRule))
	}
	return err
}

func managerOfAccessRule(r *access.Rule) string { return r.ManagedBy }

func (p *Pages) addAccessRule(ctx context.Context, v *site.Visit) error {
	return done(v, p.putAccessRule(ctx, v, v.Trimmed("name"), false), accessPath, "rule")
}

func (p *Pages) changeAccessRule(ctx context.Context, v *site.Visit) error {
	return done(v, p.putAccessRule(ctx, v, key[string](v, "name"), true), v.Path(), "saved")
}

func (p *Pages) removeAccessRule(ctx context.Context, v *site.Visit) error {
	err := p.ports.AccessRules.Remove(ctx, key[access.RuleName](v, "name"), byHand(true, managerOfAccessRule))
	return done(v, err, accessPath, "unruled")
}

// DefaultEffect returns the effect of a setting, which denies if it is empty.
func (accessView) DefaultEffect(e access.Effect) access.Effect { return cmp.Or(e, access.Deny) }
