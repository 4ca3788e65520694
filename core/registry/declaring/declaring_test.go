package declaring_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/test/must"
)

func marshal(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must.Succeed(t, err)
	return strings.ReplaceAll(string(text), `"`, "'")
}

// each has one object of each kind.
const each = `'grants':[{'person':'Ana@example.com ','action':'publish','resource':'com.example/*'},
	{'service':'ci','action':'edit','resource':'*'}],
	'serviceAccounts':[{'name':'ci','description':'builds','workloads':[{'issuer':'https://ci.example.com',
		'subject':'job:*','claims':{'branch':'main'},'scopes':['registry:publish']}]}],
	'policies':[{'method':'dns','domain':'example.com','pattern':'com.example/*','owner':'ana@example.com'}],
	'views':[{'name':'data','include':['com.example.data/*']}],
	'mirrors':[{'name':'up','url':'https://registry.example.org','interval':'6h'}],
	'webhooks':[{'url':'https://hooks.example.com/a','events':['status','published'],'secret':'0123456789abcdef'}],
	'reviewRules':[{'pattern':'com.example/*','publisher':'ana@example.com','when':'any'}]`

// TestEachKind applies a document with every kind, again, with changes of every kind that has any,
// and without any object.
func TestEachKind(t *testing.T) {
	fx := newFixture(t)
	owner := declaring.Request{Owner: "team", Prune: true}
	const created = `create serviceAccount ci {'description':[null,'builds'],'name':[null,'ci'],'state':[null,'active'],'workloads':[null,[{'claims':{'branch':'main'},'issuer':'https://ci.example.com','scopes':['registry:publish'],'subject':'job:*'}]]}
create grant ana@example.com publish com.example/* {'action':[null,'publish'],'person':[null,'ana@example.com'],'resource':[null,'com.example/*']}
create grant service:ci edit * {'action':[null,'edit'],'resource':[null,'*'],'service':[null,'ci']}
create policy dns example.com com.example/* {'actions':[null,['publish']],'domain':[null,'example.com'],'method':[null,'dns'],'owner':[null,'ana@example.com'],'pattern':[null,'com.example/*']}
create view data {'access':[null,'public'],'deprecated':[null,'show'],'include':[null,['com.example.data/*']],'name':[null,'data']}
create mirror up {'interval':[null,'6h0m0s'],'name':[null,'up'],'review':[null,'pending'],'url':[null,'https://registry.example.org']}
create webhook https://hooks.example.com/a {'events':[null,['published','status']],'pattern':[null,'*'],'secret':'changed','url':[null,'https://hooks.example.com/a']}
create reviewRule com.example/* ana@example.com any {'pattern':[null,'com.example/*'],'publisher':[null,'ana@example.com'],'when':[null,'any']}`
	dry := owner
	dry.DryRun = true
	if got := fx.mustApply(dry, each); got != created {
		t.Errorf("a dry run answers\n%s\nwant\n%s", got, created)
	}
	if states, err := fx.Applied(t.Context()); err != nil || len(states) != 0 {
		t.Errorf("a dry run has stored %+v, %v", states, err)
	}
	fx.log.changes = nil
	if got := fx.mustApply(owner, each); got != created {
		t.Errorf("the first apply answers\n%s\nwant\n%s", got, created)
	}
	if n := len(fx.log.changes); n != 8 {
		t.Errorf("%d events, want one for each object", n)
	}
	fx.log.changes = nil
	if got := fx.mustApply(owner, each); strings.Contains(got, "{") || strings.Count(got, "none ") != 8 {
		t.Errorf("the second apply answers\n%s", got)
	}
	const updated = `update serviceAccount ci {'description':['builds',null],'state':['active','disabled'],'workloads':[[{'claims':{'branch':'main'},'issuer':'https://ci.example.com','scopes':['registry:publish'],'subject':'job:*'}],null]}
none grant ana@example.com publish com.example/*
none grant service:ci edit *
update policy dns example.com com.example/* {'actions':[['publish'],['publish','status']]}
update view data {'access':['public','token']}
update mirror up {'interval':['6h0m0s','1h0m0s'],'lenient':[null,true]}
update webhook https://hooks.example.com/a {'pattern':['*','com.example/*'],'secret':'changed'}
create reviewRule com.example/* ana@example.com same-origins {'pattern':[null,'com.example/*'],'publisher':[null,'ana@example.com'],'when':[null,'same-origins']}
delete reviewRule com.example/* ana@example.com any {'pattern':['com.example/*',null],'publisher':['ana@example.com',null],'when':['any',null]}`
	if len(fx.log.changes) != 0 {
		t.Errorf("an apply that changes nothing records %+v", fx.log.changes)
	}
	changed := strings.NewReplacer(`'description':'builds','workloads':[{'issuer':'https://ci.example.com',
		'subject':'job:*','claims':{'branch':'main'},'scopes':['registry:publish']}]`, `'state':'disabled'`,
		`'domain':'example.com'`, `'domain':'example.com','actions':['status','publish']`,
		`'include':['com.example.data/*']`, `'include':['com.example.data/*'],'access':'token'`,
		`'interval':'6h'`, `'lenient':true`, `'secret':'0123456789abcdef'`, `'secret':'another-secret-1','pattern':'com.example/*'`,
		`'any'`, `'same-origins'`).Replace(each)
	if got := fx.mustApply(owner, changed); got != updated {
		t.Errorf("changes of each kind answer\n%s\nwant\n%s", got, updated)
	}
	if got := fx.mustApply(owner, ""); strings.Count(got, "delete ") != 8 {
		t.Errorf("without objects: %s", got)
	}
	if got := fx.mustApply(owner, ""); got != "" {
		t.Errorf("what was deleted is there: %s", got)
	}
}

// TestOwners checks what each owner may do with what another one manages.
func TestOwners(t *testing.T) {
	const stored, other = `'views':[{'name':'v','access':'token'}]`, `'views':[{'name':'v'}]`
	const access, toTeam, fromOther = `'access':['token','public']`, `'managedBy':[null,'team']`, `'managedBy':['other','team']`
	cases := map[string]struct {
		owner        string // of what is stored; empty for by hand
		lists        string
		prune, adopt bool
		want         string // the change; empty for a refusal
		after        string // the owner after it
	}{
		"the same owner, equal":           {"team", stored, false, false, "none view v", "team"},
		"the same owner, other fields":    {"team", other, false, false, "update view v {" + access + "}", "team"},
		"the same owner, left out":        {"team", "", false, false, "", "team"},
		"the same owner, pruned":          {"team", "", true, false, "delete view v {'access':['token',null],'deprecated':['show',null],'name':['v',null]}", "-"},
		"another owner, equal":            {"other", stored, false, false, "none view v", "other"},
		"another owner, other fields":     {"other", other, false, false, "refused", "other"},
		"another owner, left out, pruned": {"other", "", true, true, "", "other"},
		"another owner, equal, adopted":   {"other", stored, false, true, "update view v {" + fromOther + "}", "team"},
		"another owner, adopted":          {"other", other, true, true, "update view v {" + access + "," + fromOther + "}", "team"},
		"by hand, equal":                  {"", stored, false, false, "none view v", ""},
		"by hand, other fields":           {"", other, true, false, "refused", ""},
		"by hand, left out, pruned":       {"", "", true, true, "", ""},
		"by hand, equal, adopted":         {"", stored, false, true, "update view v {" + toTeam + "}", "team"},
		"by hand, adopted":                {"", other, false, true, "update view v {" + access + "," + toTeam + "}", "team"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			if c.owner != "" {
				fx.mustApply(declaring.Request{Owner: c.owner}, stored)
			} else if _, _, err := fx.views.Put(t.Context(), view.Draft{Name: "v", Access: "token"}, nil); err != nil {
				t.Fatal(err)
			}
			got, err := fx.apply(declaring.Request{Owner: "team", Prune: c.prune, Adopt: c.adopt}, c.lists)
			if fault.Is(err, fault.Conflict) && strings.Contains(err.Error(), "views[0] would change the view \"v\"") {
				got, err = "refused", nil
			}
			if got != c.want || err != nil {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
			after := "-"
			views, err := fx.views.List(t.Context())
			if len(views) > 0 {
				after = views[0].ManagedBy
			}
			if after != c.after || err != nil {
				t.Errorf("the owner is %q, %v, want %q", after, err, c.after)
			}
		})
	}
}

// TestAdoption checks that each kind that was made by hand is taken over, and stays as it was.
func TestAdoption(t *testing.T) {
	fx := newFixture(t)
	fx.mustApply(declaring.Request{Owner: "other"}, each)
	policies, _ := fx.ports.Policies.All(t.Context())
	got := fx.mustApply(declaring.Request{Owner: "team", Adopt: true}, each)
	if n := strings.Count(got, "{'managedBy':['other','team']}"); n != 8 {
		t.Errorf("%d of 8 are adopted:\n%s", n, got)
	}
	if got := fx.mustApply(declaring.Request{Owner: "team", Prune: true}, each); strings.Count(got, "none ") != 8 {
		t.Errorf("after the adoption:\n%s", got)
	}
	if after, err := fx.ports.Policies.All(t.Context()); err != nil || after[0].ID != policies[0].ID || after[0].ManagedBy != "team" {
		t.Errorf("the policy is another one: %+v, %v", after, err)
	}
}

// TestWrong has documents that are refused, with the kind and code of the error and a part of it.
func TestWrong(t *testing.T) {
	const form, rule = fault.Code("validation_error"), fault.RuleViolated
	cases := map[string]struct {
		lists string
		code  fault.Code
		want  string
	}{
		"an unknown list":     {`'people':[]`, form, "people is not a known member"},
		"no list":             {`'views':{}`, form, "views must be a list"},
		"no object":           {`'views':['a']`, form, "views[0] must be an object"},
		"an unknown member":   {`'views':[{'name':'a'},{'name':'b','hidden':true}]`, form, "views[1].hidden is not a known member"},
		"a wrong type":        {`'views':[{'name':1}]`, form, "views[0].name must be a string"},
		"a wrong item":        {`'views':[{'name':'a','include':[null]}]`, form, "views[0].include[0] must be a string"},
		"a wrong pattern":     {`'views':[{'name':'a','include':['com.example/*','a b']}]`, form, "views[0].include[1] is wrong: resource pattern"},
		"a wrong flag":        {`'mirrors':[{'name':'a','url':'https://a.example','lenient':'no'}]`, form, "mirrors[0].lenient must be true or false"},
		"a wrong claim":       {`'policies':[{'method':'oidc','pattern':'*','claims':{'a':1}}]`, form, "policies[0].claims.a must be a string"},
		"a wrong time":        {`'policies':[{'method':'oidc','pattern':'*','expiresAt':'soon'}]`, form, "policies[0].expiresAt is wrong: must be an RFC 3339 time"},
		"a missing member":    {`'webhooks':[{'url':'https://a.example'}]`, form, "webhooks[0].events is missing"},
		"a wrong scope":       {`'serviceAccounts':[{'name':'a','workloads':[{'issuer':'https://ci.example.com','subject':'a','scopes':['x']}]}]`, form, "serviceAccounts[0].workloads"},
		"a wrong combination": {`'policies':[{'method':'dns','pattern':'*','issuer':'x','domain':'a.example'}]`, form, "policies[0].issuer is wrong: issuer has no meaning"},
		"an object twice":     {`'views':[{'name':'a'},{'name':'a','access':'token'}]`, form, "views[1] is the view \"a\", which is views[0] already"},
		"two holders":         {`'grants':[{'person':'ana@example.com','service':'a','action':'edit','resource':'*'}]`, form, "grants[0] is wrong: a grant must have either"},
		"a reference":         {`'webhooks':[{'url':'https://a.example','events':['status'],'secret':{'env':'X'}}]`, form, "webhooks[0].secret must be a string: the command"},
		"a short secret":      {`'webhooks':[{'url':'https://a.example','events':['status'],'secret':'x'}]`, form, "webhooks[0].secret is wrong: secret must have 16 to"},
		"nobody":              {`'grants':[{'person':'no@example.com','action':'edit','resource':'*'}]`, rule, "grants[0].person is wrong: person: there is no person"},
		"no account":          {`'grants':[{'service':'no','action':'edit','resource':'*'}]`, rule, "grants[0].service is wrong: service: there is no service account"},
		"no owner":            {`'policies':[{'method':'dns','domain':'a.example','pattern':'example.a/*','owner':'no@example.com'}]`, rule, "policies[0].owner is wrong"},
		"no policy":           {`'reviewRules':[{'pattern':'*','publisher':'x','when':'any'}]`, rule, "reviewRules[0].publisher is wrong"},
		"an owner without it": {`'policies':[{'method':'dns','domain':'a.example','pattern':'example.a/*','owner':'bo@example.com'}]`, rule, "policies[0]"},
		"form before rules":   {`'grants':[{'person':'no@example.com','action':'edit','resource':'*'},{'action':'x'}]`, form, "grants[1].action is wrong"},
		"a hidden token":      {`'mirrors':[{'name':'a','url':'https://a.example/registries/b/t/***'}]`, "", "mirrors[0]: url has *** in the place"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			_, err := fx.apply(declaring.Request{}, c.lists)
			f, _ := fault.As(err)
			if f == nil || f.Kind != fault.Invalid || f.Code != c.code || !strings.Contains(f.Message, c.want) {
				t.Fatalf("got %v, want %s %q", err, c.code, c.want)
			}
			if len(fx.log.changes) > 0 && c.code != rule {
				t.Errorf("recorded %+v", fx.log.changes)
			}
		})
	}
	for _, text := range []string{`'x'`, `{'kind':'State'}`, `{'apiVersion':'tollgate.dev/v2','kind':'State'}`,
		`{'apiVersion':'tollgate.dev/v1','kind':1}`} {
		document := node(t, text)
		if err := newFixture(t).Check(&document); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want fault.Invalid", text, err)
		}
	}
	if _, err := newFixture(t).apply(declaring.Request{Owner: "A B"}, ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("a wrong owner: %v", err)
	}
}

// TestPositions checks that errors name the file, line and column.
func TestPositions(t *testing.T) {
	n := document(t, `'views':[{'name':'a','hidden':true}]`)
	for i := range n.Members {
		if n.Members[i].Name != "views" {
			continue
		}
		view := &n.Members[i].Value.Items[0]
		for j := range view.Members {
			view.Members[j].Position = declaring.Position{File: "a.yaml", Line: 3, Column: 5}
		}
	}
	err := newFixture(t).Check(&n)
	if err == nil || err.Error() != "views[0].hidden is not a known member (a.yaml, line 3, column 5)" {
		t.Errorf("got %v", err)
	}
}

// TestAllOrNothing checks that an object that is refused late undoes the others.
func TestAllOrNothing(t *testing.T) {
	fx := newFixture(t)
	_, err := fx.apply(declaring.Request{}, each+`,'policies':[],'mirrors':[{'name':'a','url':'https://a.example/t/***'}]`)
	if !fault.Is(err, fault.Invalid) {
		t.Fatalf("got %v, want fault.Invalid", err)
	}
	if got := fx.mustApply(declaring.Request{Prune: true, Adopt: true}, ""); got != "" {
		t.Errorf("something is stored: %s", got)
	}
	exported, err := fx.Export(t.Context(), "")
	if err != nil || len(exported.List("views"))+len(exported.List("grants")) > 0 {
		t.Errorf("something is stored: %+v, %v", exported, err)
	}
}

// TestSecrets checks that secrets that are left out are kept, and that no secret is exported.
func TestSecrets(t *testing.T) {
	fx := newFixture(t)
	const hook, mirrored = `'webhooks':[{'url':'https://a.example','events':['status'],'secret':'0123456789abcdef'}]`,
		`'mirrors':[{'name':'m','url':'https://a.example/registries/v/t/tgview_1'}]`
	fx.mustApply(declaring.Request{}, hook+","+mirrored)
	exported, err := fx.Export(t.Context(), "")
	if err != nil || strings.Contains(fmt.Sprintf("%+v", exported), "0123456789abcdef") ||
		strings.Contains(fmt.Sprintf("%+v", exported), "tgview_1") {
		t.Fatalf("the export is %+v, %v", exported, err)
	}
	if got, err := fx.applyDocument(declaring.Request{Document: toNode(exported)}); err != nil || strings.Count(got, "none ") != 2 {
		t.Errorf("the export applied: %s, %v", got, err)
	}
	got := fx.mustApply(declaring.Request{}, `'webhooks':[{'url':'https://a.example','events':['published']}],
		'mirrors':[{'name':'m','url':'https://a.example/registries/v/t/***','interval':'2h'}]`)
	if strings.Contains(got, "changed") {
		t.Errorf("secrets that are left out change: %s", got)
	}
	hooks, _ := fx.ports.Webhooks.List(t.Context())
	mirrors, err := fx.mirrors.List(t.Context())
	if err != nil || string(hooks[0].Secret) != "0123456789abcdef" || mirrors[0].URL.Address() != "https://a.example/registries/v/t/tgview_1" {
		t.Errorf("the secrets are %s and %s, %v", hooks[0].Secret, mirrors[0].URL.Address(), err)
	}
	got = fx.mustApply(declaring.Request{}, `'mirrors':[{'name':'m','url':'https://a.example/registries/v/t/tgview_2','interval':'2h'}]`)
	if got != "update mirror m {'secret':'changed'}" {
		t.Errorf("another token: %s", got)
	}
	for _, c := range fx.log.changes {
		if text := marshal(t, c.Details); strings.Contains(text, "tgview_") || strings.Contains(text, "0123456789abcdef") {
			t.Errorf("an event has a secret: %s", text)
		}
	}
}

// TestDrift checks what Applied reports of changes by hand.
func TestDrift(t *testing.T) {
	fx := newFixture(t)
	fx.mustApply(declaring.Request{Owner: "team"}, each)
	drift := func() string {
		t.Helper()
		states, err := fx.Applied(t.Context())
		if err != nil || len(states) != 1 || states[0].Owner != "team" || states[0].ApplyID != "a1" ||
			!states[0].At.Equal(epoch) || len(states[0].Objects) != 8 {
			t.Fatalf("Applied = %+v, %v", states, err)
		}
		return describe(t, states[0].Drift)
	}
	if got := drift(); got != "" {
		t.Errorf("before a change: %s", got)
	}
	if _, _, err := fx.views.Put(t.Context(), view.Draft{Name: "data", Access: "token"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fx.mirrors.Put(t.Context(), mirror.Draft{
		Name: "up", URL: "https://registry.example.org", Interval: 6 * 3600e9, ManagedBy: "other",
	}, nil); err != nil {
		t.Fatal(err)
	}
	hooks, err := fx.ports.Webhooks.List(t.Context())
	if err == nil {
		err = fx.ports.Webhooks.Remove(t.Context(), hooks[0].ID, nil)
	}
	must.Succeed(t, err)
	want := `update mirror up {'managedBy':['team','other']}
update view data {'access':['public','token'],'include':[['com.example.data/*'],null]}
delete webhook https://hooks.example.com/a {'events':[['published','status'],null],'pattern':['*',null],'url':['https://hooks.example.com/a',null]}`
	if got := drift(); got != want {
		t.Errorf("drift is\n%s\nwant\n%s", got, want)
	}
}

// TestAlike checks objects that may have one key.
func TestAlike(t *testing.T) {
	fx := newFixture(t)
	for _, kind := range []string{"status", "published", "published"} {
		if _, _, err := fx.ports.Webhooks.Add(t.Context(), event.Draft{URL: "https://a.example", Events: []string{kind}}); err != nil {
			t.Fatal(err)
		}
	}
	const both = `'webhooks':[{'url':'https://a.example','events':['published']},{'url':'https://a.example','events':['status']}]`
	if got := fx.mustApply(declaring.Request{}, both); strings.Count(got, "none ") != 2 {
		t.Errorf("got %s", got)
	}
	if got := fx.mustApply(declaring.Request{Adopt: true}, both); strings.Count(got, "update ") != 2 {
		t.Errorf("got %s", got)
	}
	got := fx.mustApply(declaring.Request{Prune: true}, `'webhooks':[{'url':'https://a.example','events':['replaced']}]`)
	if strings.Count(got, "update ") != 1 || strings.Count(got, "delete ") != 1 {
		t.Errorf("got %s", got)
	}
	if hooks, err := fx.ports.Webhooks.List(t.Context()); err != nil || len(hooks) != 2 {
		t.Errorf("%d webhooks are left, %v, want that by hand and the changed one", len(hooks), err)
	}
}

// TestHolders checks that grants of accounts are made after the accounts, and removed before them.
func TestHolders(t *testing.T) {
	fx := newFixture(t)
	team := declaring.Request{Owner: "team", Prune: true}
	fx.mustApply(team, `'serviceAccounts':[{'name':'a'}],'grants':[{'service':'a','action':'edit','resource':'*'}]`)
	if _, err := fx.apply(team, `'grants':[{'service':'a','action':'edit','resource':'*'}]`); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a grant of an account that is pruned: %v", err)
	}
	got := fx.mustApply(team, `'serviceAccounts':[{'name':'b'}],'grants':[{'service':'b','action':'edit','resource':'*'}]`)
	if strings.Count(got, "create ") != 2 || strings.Count(got, "delete ") != 2 {
		t.Errorf("got %s", got)
	}
	held, err := fx.ports.Grants.Of(t.Context(), registry.Holder("service:b"))
	if err != nil || len(held) != 1 {
		t.Errorf("grants %+v, %v", held, err)
	}
}
