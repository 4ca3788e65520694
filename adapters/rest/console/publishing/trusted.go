package publishing

import (
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/policylist"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

const (
	trustedPath = ownPath + "/trusted"
	allowPath   = trustedPath + "/add/"
)

var (
	trustedPage = site.NewPage(templates, "templates/trusted.html")
	allowPage   = site.NewPage(templates, "templates/allow.html")
)

// means is a form for policies by one method, for those who publish in one way.
type means struct {
	ID     string // in the address
	Method publisher.Method
	Text   string // what it admits
	Inputs []site.Input
}

// allMeans are the forms, the most usual first.
var allMeans = []means{
	{"github", publisher.GitHubOIDC, "GitHub Actions", []site.Input{
		{Name: "claims.repository", Label: "Repository", Hint: "Its owner and name, such as acme/tools.", Required: true},
		{Name: "claims.job_workflow_ref", Label: "Workflow", Hint: "Such as acme/tools/.github/workflows/release.yml@refs/heads/main. Empty for all."},
		{Name: "claims.environment", Label: "Environment", Hint: "The environment of the job. Empty for all."},
		{Name: "claims.ref", Label: "Branch or tag", Hint: "Such as refs/heads/main. Empty for all."},
		{Name: "claims.repository_id", Label: "Number of the repository", Hint: "Empty: the first use fixes it."},
	}},
	{"gitlab", publisher.OIDC, "GitLab CI", []site.Input{
		issuerInput,
		{Name: "claims.project_path", Label: "Project", Hint: "Its group and name, such as acme/tools.", Required: true},
		{Name: "claims.project_id", Label: "Number of the project", Hint: "A name can be given to another project, a number cannot."},
		{Name: "claims.environment", Label: "Environment", Hint: "The environment of the job. Empty for all."},
		{Name: "claims.ref", Label: "Branch or tag", Hint: "Such as main. Empty for all."},
	}},
	{"issuer", publisher.OIDC, "Another issuer of tokens", []site.Input{issuerInput, policylist.Subject, policylist.Claims}},
	{"dns", publisher.DNS, "A key in the DNS of a domain", []site.Input{policylist.Domain, policylist.Key}},
	{"http", publisher.HTTP, "A key on the site of a domain", []site.Input{policylist.Domain, policylist.Key}},
}

var issuerInput = site.Input{Name: "issuer", Label: "Issuer", Kind: "select", Required: true}

// trustedNotices say what has just been done.
var trustedNotices = map[string]string{
	"allowed": "It is allowed.", "removed": "The policy is removed, and its tokens are ended.",
}

func (p *Pages) mountTrusted(r fiber.Router) {
	r.Get(trustedPath, p.site.Require(auth.Unverified, p.trusted))
	r.Get(allowPath+":means", p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showAllow(v, nil) }))
	p.site.Post(r, allowPath+":means", 0, site.Act{
		Level: auth.Unverified, Title: "Allow it to publish", Do: p.allow, Show: p.showAllow, Keep: true,
	})
	p.site.Post(r, trustedPath+"/:id/remove", 2, site.Act{
		Level: auth.Unverified, Title: "Remove this policy", Do: p.removePolicy,
	})
}

// trustedView is the page with who may publish without a person.
type trustedView struct {
	Policies []policylist.Row
	Refused  []refusedView
	Means    []means
	Patterns []registry.Pattern
}

// refusedView is a refused proof in words.
type refusedView struct {
	publisher.Refused

	Lines []string
	How   string
	Add   string // the address of the form that allows it
}

func (p *Pages) trusted(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	all, err := p.ports.Policies.List(v.UserContext(), who)
	if err != nil {
		return err
	}
	refused, err := p.ports.Policies.Refused(v.UserContext(), who)
	if err != nil {
		return err
	}
	view := trustedView{Policies: policylist.NewRows(all), Means: allMeans}
	for _, r := range refused {
		view.Refused = append(view.Refused, newRefusedView(r))
	}
	if view.Patterns, err = v.Patterns(registry.ActionPublish); err != nil {
		return err
	}
	return v.Render(trustedPage, site.Head{Title: "Trusted publishing", Notice: trustedNotices[v.Text("done")]}, view)
}

func newRefusedView(r publisher.Refused) refusedView {
	view := refusedView{Refused: r, How: policylist.Way(publisher.Method(r.Draft.Method))}
	for _, text := range [...]string{r.Draft.Domain, r.Draft.KeyFingerprint, r.Draft.Subject, r.Draft.Issuer} {
		if text != "" {
			view.Lines = append(view.Lines, text)
		}
	}
	view.Add = AllowAddress(r)
	return view
}

// AllowAddress returns the address of the form that allows a refused proof.
func AllowAddress(r publisher.Refused) string {
	return allowPath + meansFor(r.Draft).ID + "?" + url.Values{"refused": {string(r.ID)}}.Encode()
}

// meansFor returns the form for a policy.
func meansFor(d publisher.Draft) means {
	i := slices.IndexFunc(allMeans, func(m means) bool { return string(m.Method) == d.Method })
	if d.Method == string(publisher.OIDC) && d.Claims["project_path"] == "" {
		i++ // no job of GitLab
	}
	return allMeans[i]
}

// allowView is the page that allows one way to publish.
type allowView struct {
	Text    string
	Add     site.FormView
	Refused *refusedView // whose form it is; otherwise nil
	Claims  []string     // of the refused proof
}

// findMeans returns the form of the address, with the issuers that the service accepts.
func (p *Pages) findMeans(v *site.Visit) (means, error) {
	id, err := v.Param("means")
	i := slices.IndexFunc(allMeans, func(m means) bool { return m.ID == id })
	if err != nil || i < 0 {
		return means{}, fault.New(fault.NotFound, "there is no such page")
	}
	m := allMeans[i]
	m.Inputs = append(slices.Clone(m.Inputs), policylist.Pattern, policylist.Actions, policylist.ExpiresAt)
	if m.Inputs[0].Name == issuerInput.Name {
		m.Inputs[0].Options = site.Options(p.ports.Policies.Issuers()...)
	}
	return m, nil
}

func (p *Pages) showAllow(v *site.Visit, problems site.Problems) error {
	m, err := p.findMeans(v)
	if err != nil {
		return err
	}
	view, stored := allowView{Text: m.Text}, url.Values{"actions": {string(publisher.Publish)}}
	if id := v.Text("refused"); id != "" {
		if view.Refused, err = p.findRefused(v, audit.EventID(id)); err != nil {
			return err
		}
		view.Claims = policylist.Lines(view.Refused.Draft.Claims)
		fillFrom(stored, view.Refused.Draft)
	}
	problems = atInputs(problems, m.Inputs)
	view.Add = v.Fill(site.Form{Action: allowPath + m.ID, Button: "Allow it", Inputs: m.Inputs}, stored, problems)
	return v.Render(allowPage, site.Head{
		Title: "Allow publishing: " + m.Text, Problems: problems.Among(view.Add),
	}, view)
}

// findRefused returns a refused proof that concerns the person.
func (p *Pages) findRefused(v *site.Visit, id audit.EventID) (*refusedView, error) {
	who, err := v.Caller()
	if err != nil {
		return nil, err
	}
	all, err := p.ports.Policies.Refused(v.UserContext(), who)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.ID == id {
			view := newRefusedView(r)
			return &view, nil
		}
	}
	return nil, fault.New(fault.NotFound, "this proof was not refused to you, or long ago")
}

// fillFrom fills in the form of a policy that admits a refused proof, and no wider one than the
// repository and the environment of its job.
func fillFrom(form url.Values, d publisher.Draft) {
	form.Set("pattern", d.Pattern)
	form.Set("domain", d.Domain)
	form.Set("keyFingerprint", d.KeyFingerprint)
	form.Set("issuer", d.Issuer)
	form.Set("subject", d.Subject)
	for _, name := range [...]string{"repository", "repository_id", "environment", "project_path", "project_id"} {
		form.Set(policylist.ClaimPrefix+name, d.Claims[name])
	}
}

// atInputs returns the problems at the inputs of a form, in which claims have inputs of their own.
func atInputs(problems site.Problems, inputs []site.Input) site.Problems {
	list := slices.Clone(problems)
	for i, one := range list {
		for _, in := range inputs {
			if rest, ok := strings.CutPrefix(one.Text, in.Name+" "); ok {
				list[i] = site.Problem{Field: in.Name, Text: in.Label + " " + rest}
			}
		}
		lacks := !slices.ContainsFunc(inputs, func(in site.Input) bool { return in.Name == one.Field })
		if lacks && (one.Field == "claims" || one.Field == "subject") {
			j := slices.IndexFunc(inputs, func(in site.Input) bool { return strings.HasPrefix(in.Name, policylist.ClaimPrefix) })
			list[i].Field = inputs[max(j, 0)].Name
		}
	}
	return list
}

func (p *Pages) allow(v *site.Visit) error {
	m, err := p.findMeans(v)
	if err != nil {
		return err
	}
	who, err := v.Caller()
	if err != nil {
		return err
	}
	v.Form.Set("method", string(m.Method))
	d, err := policylist.ReadDraft(v)
	if err == nil {
		_, err = p.ports.Policies.Add(v.UserContext(), who, d)
	}
	return v.Done(err, trustedPath, "allowed")
}

func (p *Pages) removePolicy(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	id, err := v.Param("id")
	if err == nil {
		err = p.ports.Policies.Remove(v.UserContext(), who, registry.PolicyID(id),
			func(one *publisher.Policy) error { return registry.CheckByHand(one.ManagedBy, "") })
	}
	return v.Done(err, trustedPath, "removed")
}
