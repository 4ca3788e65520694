package catalogue

import (
	"html/template"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/rest/allowlistjson"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
)

// serverView is the page of a version of a server.
type serverView struct {
	Name, Title string
	Release     registry.Release
	Status      Status
	Document    document
	Website     *linkView
	Repository  *linkView
	Installs    []installView
	Versions    []versionView
	More        int // versions that are not in Versions
	MoreOffers  int // packages, remotes and their inputs that are not in Document
	JSON        site.Excerpt
	Raw         string // the address of the record in the API
	LatestPath  string // of the latest version, if this one is not it
	StatusPath  string // of the page that changes the status; empty if the person may not
	HidePath    string // of the page that puts it in quarantine; likewise
	Waiting     []waitingView
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
	Link                      template.URL // installs it by a click; empty for a client without such links
	Problem                   string       // why the client cannot use the server
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

// maxListed is the number of versions in the list of a page.
const maxListed = 50

func (p *Pages) server(v *site.Visit) error {
	name, version, err := readVersion(v)
	if err != nil {
		return err
	}
	record, err := p.ports.Servers.Version(v.UserContext(), name, version, "true")
	if err != nil {
		return err
	}
	view := newServerView(record)
	if err := p.addVersions(v, &view); err != nil {
		return err
	}
	if err := p.addOffers(v, &view, record); err != nil {
		return err
	}
	return v.Render(serverPage, site.Head{Title: view.Title}, view)
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
	found, err := p.ports.Reviews.List(v.UserContext(), who, reviewing.Query{Server: view.Name})
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
	view := serverView{
		MoreOffers: more, Name: r.Name.String(), Title: d.title(r.Name), Release: r.Release,
		Document: d, Website: newLink(d.Website), Repository: newLink(d.Repository.URL), JSON: site.IndentJSON(r.Document),
		Raw: "/v0.1/servers/" + url.PathEscape(r.Name.String()) + "/versions/" + url.PathEscape(r.Version.String()),
	}
	if r.Status == registry.StatusDeleted {
		view.Raw += "?include_deleted=true"
	} else {
		view.Installs = newInstalls(r)
	}
	return view
}

// addOffers adds what the person may do with the server, and what of it waits for review.
func (p *Pages) addOffers(v *site.Visit, view *serverView, r registry.Record) error {
	if err := view.offer(v, r); err != nil {
		return err
	}
	return p.addWaiting(v, view)
}

// offer adds what the person may do with the server.
func (view *serverView) offer(v *site.Visit, r registry.Record) error {
	for _, action := range [...]registry.Action{registry.ActionPublish, registry.ActionEdit} {
		if may, err := v.May(action, r.Name); err != nil {
			return err
		} else if may {
			view.StatusPath = site.Root + "own/" + strings.TrimPrefix(ServerPath(r.Name), ServersPath)
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
		if i < maxListed {
			view.Versions = append(view.Versions, versionView{
				VersionPath(e.Name, e.Version), e.Release, newStatus(e.Release, hidden), e.Version == view.Release.Version,
			})
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

// clients are the clients that a page has snippets for.
var clients = [...]struct {
	id         allowlist.Client
	name, file string
}{
	{allowlist.ClientVSCode, "VS Code", ".vscode/mcp.json"},
	{allowlist.ClientClaude, "Claude Code", ".mcp.json"},
	{allowlist.ClientCursor, "Cursor", ".cursor/mcp.json"},
	{allowlist.ClientGemini, "Gemini CLI", ".gemini/settings.json"},
}

func newInstalls(r registry.Record) (installs []installView) {
	install := allowlist.ParseInstall(r)
	for _, c := range clients {
		view := installView{ID: "install-" + string(c.id), Client: c.name, File: c.file}
		if err := view.fill(install, c.id); err != nil {
			view.Problem = fault.PublicMessage(err)
		}
		if len(view.Snippet) > maxSnippet {
			view.Snippet, view.Link = "", ""
			view.Raw = "/registries/all/install?" + url.Values{
				"server": {r.Name.String()}, "version": {r.Version.String()}, "client": {string(c.id)},
			}.Encode()
		}
		installs = append(installs, view)
	}
	return installs
}

func (view *installView) fill(install allowlist.Install, c allowlist.Client) error {
	snippet, err := install.Snippet(c)
	if err != nil {
		return err
	}
	text, err := allowlistjson.EncodeSnippet(snippet)
	if err != nil {
		return err
	}
	link, err := allowlistjson.InstallLink(snippet)
	if err != nil {
		return err
	}
	// #nosec G203 -- our own scheme, and escaped
	view.Snippet, view.Link = strings.TrimSpace(string(text)), template.URL(link)
	return nil
}
