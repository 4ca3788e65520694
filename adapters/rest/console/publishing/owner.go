package publishing

import (
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/catalogue"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
)

const ownerPath = managePath + "/owner"

var ownerPage = site.NewPage(templates, "templates/owner.html")

// ownerView is the page on which the owner of a server is changed.
type ownerView struct {
	Name, Path string
	Form       site.FormView
}

// showOwner shows who answers for a server in a form.
func (p *Pages) showOwner(v *site.Visit, problems site.Problems) error {
	name, err := readName(v)
	if err != nil {
		return err
	}
	editions, err := p.ports.Reader.Editions(v.UserContext(), name)
	if err != nil {
		return err
	}
	owner, err := p.ports.Owners.Of(v.UserContext(), editions[0].Name)
	form := site.Form{Action: catalogue.OwnerPath(editions[0].Name), Button: "Set the owner", Inputs: []site.Input{
		{Name: "owner", Label: "Team", Hint: "Who answers for the server. Empty for no owner."},
		{Name: "contact", Label: "Contact", Hint: "An e-mail address or an https URL. Everybody who may read the server sees it."},
	}}
	if err != nil {
		return err
	}
	stored := url.Values{"owner": {owner.Team}, "contact": {owner.Contact}}
	view := ownerView{name, catalogue.ServerPath(editions[0].Name), v.Fill(form, stored, problems)}
	return v.Render(ownerPage, site.Head{Title: "Owner of " + name, Problems: problems}, view)
}

func (p *Pages) setOwner(v *site.Visit) error {
	name, err := readName(v)
	if err != nil {
		return err
	}
	who, err := v.Caller()
	if err == nil {
		err = p.ports.Writer.SetOwner(v.UserContext(), who, strings.Clone(name), v.Form.Get("owner"), v.Form.Get("contact"))
	}
	namespace, server, _ := strings.Cut(name, "/")
	return v.Done(err, catalogue.ServersPath+namespace+"/"+server, "owner")
}
