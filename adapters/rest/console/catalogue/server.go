package catalogue

import (
	"cmp"
	"html/template"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/allowlistjson"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// serverView is the page of a version of a server.
type serverView struct {
	Name, Title string // Title is empty if the document lacks it
	Release     registry.Release
	Status      Status
	Document    document
	Website     *linkView
	Repository  *linkView
	Offers      []offerView // what can be installed, if there is a choice
	Installs    []installView
	Others      []installView // in the programs that most people do not have
	Versions    []versionView
	Older       []versionView // those after the first ones
	More        int           // versions that are in neither list
	MoreOffers  int           // packages, remotes and their inputs that are not in Document
	JSON        site.Excerpt
	Raw         string // the address of the document
	LatestPath  string // of the latest version, if this one is not it
	StatusPath  string // of the page that changes the status; empty if the person may not
	HidePath    string // of the page that puts it in quarantine; likewise
	Waiting     []waitingView
	Views       []view.View // that have the version, as far as the person may know
	Published   *happened   // who published it and who approved it; nil if that is not known
	Approved    *happened
	History     []happened   // of the server
	Callers     *callersView // nil if the person may not know it
	Tools       *toolsView   // nil without a list
	Owner       registry.Owner
	Check       browsing.LastCheck
	Mails       bool        // its contact is an e-mail address
	OwnerPath   string      // of the page that changes it; empty if the person may not
	Comparison  *comparison // nil unless two versions are compared
	Short, Hue  string      // of the tile
	Needs       []input     // what the user gives
	Runs        []string    // how it runs: its transports and packages
}

// happened is an event of the history of a server in words.
type happened struct {
	audit.Event

	By   string
	Mail bool // By is an e-mail address
	Text string
}

// offerView is a remote or a package that can be installed.
type offerView struct {
	allowlist.Offer

	Current bool
}

// waitingView is a document of the server that waits for review, and that the person may see.
type waitingView struct{ Version, Path string }

// linkView is a link that a publisher gave. Readers see where it leads.
type linkView struct {
	URL, Host string
}

// installView is how to install the server in a client.
type installView struct {
	ID, Client, File, Snippet string
	Link                      template.URL // installs it by a click; empty for a client without links
	Problem                   string       // why the client cannot use the server
	Unlisted                  string       // why allow lists cannot have it; empty if they can
	Raw                       string       // the address of a snippet that is too long for the page
}

// versionView is a version in the list of all versions.
type versionView struct {
	Path    string
	Release registry.Release
	Status  Status
	Current bool // the page shows this version
}

// The bounds of what a page shows of a document.
const (
	maxOffers  = 10      // packages, and remotes
	maxInputs  = 10      // of a package or a remote
	maxText    = 500     // bytes of a text
	maxSnippet = 4 << 10 // bytes
)

// The numbers of versions and events that a page lists.
const (
	maxTabs      = 6 // programs
	maxListed    = 50
	maxUnfolded  = 10
	maxHappening = 20
)

func (p *Pages) server(v *site.Visit) error {
	name, version, err := readVersion(v)
	if err != nil {
		return err
	}
	record, err := p.ports.Servers.Version(v.UserContext(), name, version, "true")
	if err != nil {
		return err
	}
	if format := v.Text("format"); format != "" {
		return sendText(v, record, format)
	}
	view := newServerView(record)
	if err := p.fill(v, &view, record); err != nil {
		return err
	}
	return v.Render(serverPage, site.Head{Title: view.windowTitle(v.Params("version") != ""), Notice: view.notice(v.Text("done"))}, view)
}

// notice says what has just been done, to somebody who may have done it.
func (view *serverView) notice(done string) string {
	switch {
	case done == "owner" && view.OwnerPath != "":
		return "The owner is set."
	case done == "published" && view.StatusPath != "":
		return "Published. Programs see it now."
	}
	return ""
}

// windowTitle returns the title of the window, with the version if the address has it.
func (view *serverView) windowTitle(named bool) string {
	title := cmp.Or(view.Title, view.Name)
	if named {
		title += " " + view.Release.Version.String()
	}
	return title
}

// fill adds what the page shows besides the document.
func (p *Pages) fill(v *site.Visit, view *serverView, r registry.Record) error {
	if r.Status != registry.StatusDeleted {
		if err := view.install(r, v.Text("use")); err != nil {
			return err
		}
	}
	if err := p.addTools(v, view, r); err != nil {
		return err
	}
	for _, add := range [...]func(*site.Visit, *serverView) error{p.addVersions, p.addOwner, p.addComparison, p.addViews, p.addHistory, p.addOffers, p.addCallers} {
		if err := add(v, view); err != nil {
			return err
		}
	}
	return nil
}

// sendText sends a text of a version: the document (json), or what is added to the configuration of a
// client. It returns fault.Invalid for another format.
func sendText(v *site.Visit, r registry.Record, format string) error {
	if format == "json" {
		return v.SendJSON(r.Document)
	}
	client, err := allowlist.ParseClient(format)
	if err != nil {
		return fault.In("format", err)
	}
	_, text, err := encodeSnippet(allowlist.ParseInstall(r), client, v.Text("use"))
	if err != nil {
		return err
	}
	err = v.SendJSON(text)
	v.Set(fiber.HeaderContentType, allowlistjson.ContentType(client))
	return err
}

// addVersions adds the versions of the server, and the status of this one.
func (p *Pages) addVersions(v *site.Visit, view *serverView) error {
	editions, err := p.ports.Servers.Editions(v.UserContext(), view.Name)
	if err != nil {
		return err
	}
	hidden, err := p.ports.Hidden.Entries(v.UserContext(), view.Release.Name)
	view.Status = newStatus(view.Release, hidden[view.Release.Name])
	view.list(editions, hidden[view.Release.Name])
	return err
}

// addViews adds the views that have the version.
func (p *Pages) addViews(v *site.Visit, view *serverView) error {
	if view.Release.Status == registry.StatusDeleted {
		return nil
	}
	who, err := v.Reader()
	if err != nil {
		return err
	}
	known, err := p.ports.Views.Known(v.UserContext(), who)
	for _, one := range known {
		if one.Includes(view.Release.Name) && !one.Hides(view.Release.Status) {
			view.Views = append(view.Views, one)
		}
	}
	return err
}

// addHistory adds what was done to the server. Only people who are signed in see who did what.
func (p *Pages) addHistory(v *site.Visit, view *serverView) error {
	if p.ports.Trail == nil || !v.SignedIn() || !v.Session.TrustLevel.Admits(auth.Unverified) {
		return nil
	}
	history, err := p.ports.Trail.OfServer(v.UserContext(), view.Name)
	if err != nil {
		return err
	}
	for i := range history[:min(len(history), maxHappening)] {
		one, err := newHappened(v, &history[i])
		if err != nil {
			return err
		}
		view.History = append(view.History, *one)
	}
	version := view.Release.Version.String()
	if view.Published, err = newHappened(v, history.Published(version)); err == nil {
		view.Approved, err = newHappened(v, history.Approved(version))
	}
	return err
}

// newHappened returns an event in words; nil for nil.
func newHappened(v *site.Visit, e *audit.Event) (*happened, error) {
	if e == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	by, err := v.NameOf(e.Who())
	_, noAddress := auth.ParseEmail(by)
	text := e.Sentence(func(text string) string { return text })
	return &happened{*e, by, noAddress == nil, text}, err
}

// readVersion returns the name of the server in the path, and its version there, or the latest.
func readVersion(v *site.Visit) (name, version string, err error) {
	namespace, err := v.Param("namespace")
	if err != nil {
		return "", "", err
	}
	if name, err = v.Param("server"); err != nil {
		return "", "", err
	}
	version = registry.LatestAlias
	if v.Params("version") != "" {
		version, err = v.Param("version")
	}
	return namespace + "/" + name, version, err
}

// addWaiting adds what of the server waits for review, as far as the person may see it.
func (p *Pages) addWaiting(v *site.Visit, view *serverView) error {
	if p.ports.Reviews == nil || !v.Session.TrustLevel.Admits(auth.Unverified) {
		return nil
	}
	who, err := v.Caller()
	if err != nil {
		return err
	}
	found, err := p.ports.Reviews.List(v.UserContext(), who, reviewing.Query{
		Server: view.Name, Filter: reviewing.Filter{Brief: true},
	})
	if err != nil {
		return err
	}
	for _, r := range found.Reviews {
		view.Waiting = append(view.Waiting, waitingView{r.Version.String(), site.Root + "reviews/" + string(r.ID)})
	}
	return nil
}

func newServerView(r registry.Record) serverView {
	d := parseDocument(r.Document)
	more := d.shorten()
	needs, runs := d.needs()
	_, short, _ := strings.Cut(r.Name.String(), "/")
	return serverView{
		Short: cmp.Or(strings.TrimSpace(d.Title), short), Hue: hueOf(r.Name), Needs: needs, Runs: runs, MoreOffers: more, Name: r.Name.String(), Title: strings.TrimSpace(d.Title), Release: r.Release,
		Document: d, Website: newLink(d.Website), Repository: newLink(d.Repository.URL), JSON: site.IndentJSON(r.Document),
		Raw: VersionPath(r.Name, r.Version) + "?format=json",
	}
}

// addOffers adds what the person may do with the server, and what of it waits for review.
func (p *Pages) addOffers(v *site.Visit, view *serverView) error {
	if err := view.offer(v, view.Release); err != nil {
		return err
	}
	return p.addWaiting(v, view)
}

// ManagePath returns the path of the page on which a server is changed.
func ManagePath(name registry.Name) string {
	return site.Root + "own/" + strings.TrimPrefix(ServerPath(name), ServersPath)
}

// OwnerPath returns the path of the page on which the owner of a server is changed.
func OwnerPath(name registry.Name) string { return ManagePath(name) + "/owner" }

// addOwner adds who answers for the server. An operator may change it, too.
func (p *Pages) addOwner(v *site.Visit, view *serverView) (err error) {
	view.Owner, err = p.ports.Owners.Of(v.UserContext(), view.Release.Name)
	if view.Mails = !strings.HasPrefix(view.Owner.Contact, "https://"); err != nil || !v.SignedIn() {
		return err
	}
	operates, err := v.Holds(registry.ActionOperate)
	if operates {
		view.OwnerPath = OwnerPath(view.Release.Name)
	}
	return err
}

// offer adds what the person may do with the server.
func (view *serverView) offer(v *site.Visit, r registry.Release) error {
	for _, action := range [...]registry.Action{registry.ActionPublish, registry.ActionEdit} {
		if may, err := v.May(action, r.Name); err != nil {
			return err
		} else if may {
			view.OwnerPath = OwnerPath(r.Name)
			view.StatusPath = ManagePath(r.Name)
		}
	}
	may, err := v.May(registry.ActionReview, r.Name)
	if may {
		view.HidePath = site.Root + "quarantine?" + url.Values{
			"name": {r.Name.String()}, "version": {r.Version.String()},
		}.Encode()
	}
	return err
}

// list adds the versions of the server, the newest first.
func (view *serverView) list(editions []registry.Edition, hidden []registry.Quarantined) {
	view.More = max(len(editions)-maxListed, 0)
	for i, e := range editions {
		if e.Latest && e.Version != view.Release.Version {
			view.LatestPath = ServerPath(e.Name)
		}
		one := versionView{
			VersionPath(e.Name, e.Version), e.Release, newStatus(e.Release, hidden), e.Version == view.Release.Version,
		}
		switch {
		case i < maxUnfolded:
			view.Versions = append(view.Versions, one)
		case i < maxListed:
			view.Older = append(view.Older, one)
		}
	}
}

// newLink returns a link to a web page; nil for any other text.
func newLink(address string) *linkView {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return nil
	}
	return &linkView{address, u.Host}
}

// install adds what installs an offer in each client, or the first one that they can use. It returns
// fault.NotFound if there is no such offer.
func (view *serverView) install(r registry.Record, use string) error {
	install := allowlist.ParseInstall(r)
	offers := install.Offers()
	chosen := use
	for _, c := range allowlist.Clients() {
		one := installView{ID: "install-" + string(c.Client), Client: c.Title, File: c.File}
		used, err := one.fill(install, c.Client, use)
		if err != nil {
			one.Problem = fault.PublicMessage(err)
		}
		chosen = cmp.Or(chosen, used)
		if len(one.Snippet) > maxSnippet {
			one.Snippet, one.Link = "", ""
			one.Raw = VersionPath(r.Name, r.Version) + "?" + url.Values{"format": {string(c.Client)}, "use": {used}}.Encode()
		}
		if len(view.Installs) < maxTabs {
			view.Installs = append(view.Installs, one)
		} else {
			view.Others = append(view.Others, one)
		}
	}
	found := use == ""
	for i, o := range offers {
		found = found || o.ID == use
		if i < 2*maxOffers && len(offers) > 1 {
			o.Text = shortText(o.Text)
			view.Offers = append(view.Offers, offerView{o, o.ID == chosen})
		}
	}
	if !found {
		return fault.New(fault.NotFound, "the server has no such remote or package")
	}
	return nil
}

// fill adds what installs an offer in a client, and returns the offer.
func (view *installView) fill(install allowlist.Install, c allowlist.Client, use string) (string, error) {
	snippet, text, err := encodeSnippet(install, c, use)
	if err != nil {
		return "", err
	}
	link, err := allowlistjson.InstallLink(snippet)
	if err != nil {
		return "", err
	}
	view.Unlisted = snippet.Unlisted
	// #nosec G203 -- our own scheme, and escaped
	view.Snippet, view.Link = strings.TrimSpace(string(text)), template.URL(link)
	return snippet.Offer, nil
}

// encodeSnippet returns the snippet of an offer for a client, and its text.
func encodeSnippet(i allowlist.Install, c allowlist.Client, use string) (allowlist.Snippet, []byte, error) {
	snippet, err := i.SnippetOf(c, use)
	if err != nil {
		return snippet, nil, err
	}
	text, err := allowlistjson.EncodeSnippet(snippet)
	return snippet, text, err
}
