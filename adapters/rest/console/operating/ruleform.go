package operating

import (
	"cmp"
	"context"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// This file has the form of a rule about calls, in steps.

// ruleSteps are the fields of each step: who, which servers, which tools and how sure.
var ruleSteps = [][]string{{"effect", "subjects"}, {"servers"}, {
	"tools", "hints", "methods", "minTrust", "networks", "clients", "expiresAt", "mode", "name", "order", confirmInput,
}}

// rareFields are fields of the third step that are folded while they are empty.
var rareFields = []string{"methods", "hints", "networks", "clients", "expiresAt"}

// The fields of the form that are not of the rule: the step that is shown, that to show, and the call to try.
const (
	atField   = "at"
	stepField = "step"
	tryStep   = "try"
)

// ruleFormView is a step of the form, with the rule so far.
type ruleFormView struct {
	site.FormView // of all steps

	Step     int // from 1
	Sentence string
	Doubts   []string
	Stored   bool // the form changes a rule
	Ask      site.FormView
	Trial    *trialView // nil before it was tried
}

// Shows reports whether the step has a field that is not folded.
func (f ruleFormView) Shows(field string) bool {
	return slices.Contains(ruleSteps[f.Step-1], field) && !slices.Contains(rareFields, field)
}

// Folds reports whether the step has a field that is folded.
func (f ruleFormView) Folds(field string) bool {
	return f.Step == len(ruleSteps) && slices.Contains(rareFields, field)
}

// Unfolds reports whether a folded field has a value or a mistake.
func (f ruleFormView) Unfolds() bool {
	for _, in := range f.Fields {
		if f.Folds(in.ID) && (len(in.Stored()) > 0 || in.Mistake != "") {
			return true
		}
	}
	return false
}

// trialView says what an unsaved rule would do.
type trialView struct {
	deciding.Replay

	Now, Then *access.Explanation // of the call to try; nil without one
	Problem   string              // of it
}

// ruleForm returns the form of a rule, with the values of a new or of a stored one before it was sent.
func (p *Pages) ruleForm(
	ctx context.Context, v *site.Visit, problems site.Problems, f site.Form, values url.Values,
) (view ruleFormView, err error) {
	if v.Method() != fiber.MethodPost {
		v.Form = values
	}
	joinLists(v)
	subjects, err := p.subjectNames(ctx)
	if err != nil {
		return view, err
	}
	servers, tools, err := p.ports.Access.Names(ctx)
	if err != nil {
		return view, err
	}
	suggested := map[string][]string{"subjects": firstNames(subjects...), "servers": firstNames(servers), "tools": firstNames(tools)}
	for i := range f.Inputs {
		f.Inputs[i].Suggest, f.Inputs[i].Required = suggested[f.Inputs[i].Name], false
	}
	view.FormView, view.Step = site.FillForm(f, v.Form, problems), stepOf(v, problems)
	rule, invalid := formRule(v)
	view.Sentence = rule.Sentence()
	if view.Doubts, err = p.ports.Access.Doubts(ctx, &rule, slices.Concat(subjects...)); err != nil {
		return view, err
	}
	proposeCall(v, &rule)
	view.Ask = site.FillForm(site.Form{Inputs: []site.Input{
		{Name: "trySubject", Label: "Who calls", Hint: "An e-mail address, service: and a name, or group: for a member of it. Empty for a caller without a token.", Suggest: suggested["subjects"]},
		{Name: "tryServer", Label: "Server", Hint: "Empty for the calls of the last day alone.", Suggest: suggested["servers"]},
		{Name: "tryTool", Label: "Tool", Hint: "Empty for the list of tools."},
	}}, v.Form, nil)
	if v.Form.Get(stepField) == tryStep && invalid == nil {
		view.Trial, err = p.tryRule(ctx, v, &rule)
	}
	return view, err
}

// proposeCall fills in the call to try with what the rule names first, unless the form was sent with a call.
func proposeCall(v *site.Visit, r *access.Rule) {
	if v.Form.Has("tryServer") {
		return
	}
	callers := []access.SelectorKind{access.SelectPerson, access.SelectGroup, access.SelectService}
	if i := slices.IndexFunc(r.Subjects, func(one access.Selector) bool { return slices.Contains(callers, one.Kind) }); i >= 0 {
		v.Form.Set("trySubject", r.Subjects[i].String())
	}
	for field, names := range map[string][]string{"tryServer": each.Texts(r.Servers), "tryTool": r.Tools} {
		if len(names) > 0 && !strings.Contains(names[0], toolserver.Everything) {
			v.Form.Set(field, names[0])
		}
	}
}

// stepOf returns the step to show: that of the first problem, or the one that a button or a link names.
func stepOf(v *site.Visit, problems site.Problems) int {
	for _, one := range problems {
		if i := slices.IndexFunc(ruleSteps, func(all []string) bool { return slices.Contains(all, one.Field) }); i >= 0 {
			return i + 1
		}
	}
	for _, text := range []string{v.Form.Get(stepField), v.Form.Get(atField), v.Text(stepField)} {
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(ruleSteps) {
			return n
		}
	}
	return 1
}

// takeStep shows another step, unless what was entered in the one before it is wrong.
func (p *Pages) takeStep(show shower) handler {
	return func(ctx context.Context, v *site.Visit) error {
		joinLists(v)
		_, err := formRule(v)
		at, next := v.Form.Get(atField), v.Form.Get(stepField)
		if f, ok := fault.As(err); ok && next > at { // also to try it
			if n := stepOf(v, site.ProblemsOf(f)); next == tryStep || strconv.Itoa(n) == at {
				return err
			}
		}
		return show(ctx, v, nil)
	}
}

// joinLists makes one text of each list of the form, which has a field with its lines and one for another,
// and people of the addresses among the subjects.
func joinLists(v *site.Visit) {
	for i := range access.RuleKind.Fields {
		f := &access.RuleKind.Fields[i]
		if f.Shape != kinds.Texts || f.Control != "" {
			continue
		}
		v.Form.Set(f.Name, strings.Join(v.Form[f.Name], "\n"))
		lines := formLines(v, f.Name)
		for n := range lines {
			if f.Name == "subjects" {
				lines[n] = subjectOf(lines[n])
			}
		}
		v.Form.Set(f.Name, strings.Join(lines, "\n"))
	}
}

// unsaved is the name of a rule in a trial without one.
const unsaved = "unsaved"

// formRule returns the rule that a form describes, as far as it can be read.
func formRule(v *site.Visit) (access.Rule, error) {
	given, err := readForm(v, access.RuleKind.Fields)
	if err != nil {
		return access.Rule{}, err
	}
	name := key[string](v, "name")
	given["name"] = audit.Text(cmp.Or(name, given.Text("name"), unsaved))
	return access.ParseRule(given)
}

// tryRule says what an unsaved rule would do to the calls of the last day, and to the call of the form.
func (p *Pages) tryRule(ctx context.Context, v *site.Visit, r *access.Rule) (*trialView, error) {
	replay, err := p.ports.Access.Replay(ctx, r)
	t := &trialView{Replay: replay}
	if err != nil || v.Trimmed("tryServer") == "" {
		return t, err
	}
	asked := url.Values{"subject": v.Form["trySubject"], "server": v.Form["tryServer"], "tool": v.Form["tryTool"], "method": {string(access.CallsTools)}}
	if v.Trimmed("tryTool") == "" {
		asked.Set("method", string(access.ListsTools))
	}
	now, err := p.answer(ctx, asked, nil)
	if f, ok := fault.As(err); ok && f.Kind == fault.Invalid {
		t.Problem = site.Sentence(err)
		return t, nil
	}
	if err != nil {
		return t, err
	}
	then, err := p.answer(ctx, asked, r)
	t.Now, t.Then = &now, &then
	return t, err
}

// The bounds of the names of a kind that a page offers.
const (
	maxOffered      = 200
	maxOfferedBytes = 12_000
)

// firstNames returns the first names of each kind, as many as a page has room for.
func firstNames(kinds ...[]string) (first []string) {
	for _, names := range kinds {
		size := 0
		for _, name := range names[:min(len(names), maxOffered)] {
			if size += len(html.EscapeString(name)); size > maxOfferedBytes {
				break
			}
			first = append(first, name)
		}
	}
	return first
}

// subjectNames returns the subjects that a rule may have: all groups that were seen, some people and service
// accounts, and those without a name.
func (p *Pages) subjectNames(ctx context.Context) (all [][]string, err error) {
	groups, err := p.ports.People.Groups(ctx)
	if err != nil {
		return nil, err
	}
	accounts, err := p.ports.People.Search(ctx, authstore.DirectoryQuery{Limit: maxOffered})
	if err != nil {
		return nil, err
	}
	services, err := p.ports.Services.List(ctx, "", maxOffered)
	fixed := []string{string(access.SelectEveryone), string(access.SelectAnyone)}
	for _, o := range grantInputs[0].Options {
		fixed = append(fixed, string(access.SelectGrant)+":"+o.Value)
	}
	return [][]string{
		fixed, selectors(access.SelectGroup, groups, func(g string) string { return g }),
		selectors(access.SelectPerson, accounts, func(a authstore.Person) string { return string(a.Email) }),
		selectors(access.SelectService, services, func(a service.Account) string { return string(a.Name) }),
	}, err
}

// selectors returns selectors of a kind for some values.
func selectors[T any](kind access.SelectorKind, all []T, value func(T) string) []string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = access.Selector{Kind: kind, Value: value(one)}.String()
	}
	return texts
}
