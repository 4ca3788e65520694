// Package catalogue has the pages on which people find servers and learn how to install them. They
// need no sign-in, unless reading the registry needs a caller.
//
// The page of a server has the order of pages of packages at pkg.go.dev: what it is, how to get it,
// details, versions with the older ones folded. From GitHub it has the choice of the way to get it
// with a button that copies, and the filters as one line below the search.
package catalogue

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

//go:embed templates
var templates embed.FS

var (
	listPage   = site.NewPage(templates, "templates/list.html")
	serverPage = site.NewPage(templates, "templates/server.html")
)

// ServersPath is the path below which the pages of servers are.
const ServersPath = site.Root + "servers/"

// Pages are the pages of the catalogue. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports
}

// Ports are the use cases that the pages call.
type Ports struct {
	Servers *browsing.Browser
	Finder  *browsing.Finder
	Hidden  *quarantining.Service
	Views   *viewing.Gate
	Tools   *browsing.Tools
	Owners  registrystore.Owners
	// Reviews, IsEmpty, Trail and Access are nil without the part for authentication.
	Reviews *reviewing.Service
	IsEmpty func(context.Context) (bool, error) // whether there is no account
	Trail   *auditing.Trail
	Access  *deciding.Service
}

// New returns the pages.
func New(s *site.Site, p Ports) *Pages { return &Pages{s, p} }

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(site.Home, p.site.Reader(p.list))
	r.Get(ServersPath+":namespace/:server", p.site.Reader(p.server))
	r.Get(ServersPath+":namespace/:server/versions/:version", p.site.Reader(p.server))
}

// ServerPath returns the path of the page of a server.
func ServerPath(name registry.Name) string {
	namespace, server, _ := strings.Cut(name.String(), "/")
	return ServersPath + url.PathEscape(namespace) + "/" + url.PathEscape(server)
}

// VersionPath returns the path of the page of a version.
func VersionPath(name registry.Name, version registry.Version) string {
	return ServerPath(name) + "/versions/" + url.PathEscape(version.String())
}

// listView is the page with the list of servers.
type listView struct {
	Wanted   browsing.Wanted
	Filtered bool // the list is not that of all servers
	Sorts    []choice
	Facets   []facet
	Chosen   int // filters
	Shelves  []shelf
	Groups   []group
	Found    browsing.Found
	First    string // the address of the first page
	Before   string // the address of the page before; empty on the first one
	Next     string // the address of the next page; empty on the last one
	Empty    bool   // the service has no account yet
}

// group is a part of the list of servers.
type group struct {
	Title   string
	Servers []Card
}

// shelf is a collection with its first servers.
type shelf struct {
	browsing.Shelf

	Path  string
	Cards []Card
}

// Card is a server in a list.
type Card struct {
	Path, Name, Title, Description string // Title is optional
	Short                          string // of which the tile has the initials
	Hue                            string // of the tile: a letter for the namespace
	Version                        string
	Approved                       string // by whom and when, in words; empty if that is not known
	Status                         Status
	Kinds                          []string
	Changed                        bool // its tools changed after the approval
	Release                        registry.Release
}

func (p *Pages) list(v *site.Visit) error {
	w := wantedBy(v)
	w.Counted = !site.WantsJSON(v.Ctx)
	found, problems, err := p.find(v, w)
	if err != nil {
		return err
	}
	if site.WantsJSON(v.Ctx) {
		return sendFound(v, found)
	}
	view, err := p.newListView(v, w, found)
	if err != nil {
		return err
	}
	search := site.Search{Text: w.Text, Live: true}
	for name, values := range filters(w) {
		if name != "q" {
			search.Filters = append(search.Filters, site.Field{Name: name, Value: values[0]})
		}
	}
	return v.Render(listPage, site.Head{Title: "Servers", Problems: problems, Search: search}, view)
}

// find returns what the reader finds. A wrong search is an error for a program; a person gets the
// problems, with the page.
func (p *Pages) find(v *site.Visit, w browsing.Wanted) (browsing.Found, site.Problems, error) {
	who, err := v.Reader()
	if err != nil {
		return browsing.Found{}, nil, err
	}
	found, err := p.ports.Finder.Find(v.UserContext(), w, who)
	if f, ok := fault.As(err); ok && f.Kind == fault.Invalid && !site.WantsJSON(v.Ctx) {
		v.Status(fiber.StatusUnprocessableEntity)
		problems := site.ProblemsOf(f)
		for i := range problems {
			problems[i].Field = "" // the filters are links
		}
		return found, problems, nil
	}
	return found, nil, err
}

func wantedBy(v *site.Visit) browsing.Wanted {
	return browsing.Wanted{
		Text: strings.TrimSpace(cmp.Or(v.Text("q"), v.Text("Q"))), Status: v.Text("status"), Namespace: strings.TrimSpace(v.Text("namespace")),
		Package: v.Text("package"), Transport: v.Text("transport"), Tools: v.Text("tools"), Remote: v.Text("remote"),
		Origin: strings.TrimSpace(v.Text("origin")), Owner: v.Text("owner"), View: strings.TrimSpace(v.Text("view")), Collection: strings.TrimSpace(v.Text("collection")), Sort: v.Text("sort"),
		Page: v.Text("page"),
	}
}

// filters returns the parameters of a search by name.
func filters(w browsing.Wanted) url.Values {
	all := url.Values{}
	for name, value := range map[string]string{
		"q": w.Text, "status": w.Status, "package": w.Package, "remote": w.Remote, "namespace": w.Namespace,
		"transport": w.Transport, "tools": w.Tools, "origin": w.Origin, "owner": w.Owner, "view": w.View, "collection": w.Collection, "sort": w.Sort,
	} {
		if value != "" {
			all.Set(name, value)
		}
	}
	return all
}

func (p *Pages) newListView(v *site.Visit, w browsing.Wanted, found browsing.Found) (listView, error) {
	all := filters(w)
	view := listView{Wanted: w, Filtered: len(all) > 0, Found: found, Sorts: sorts(w)}
	pageAt := func(n int) string {
		if all.Del("page"); n > 1 {
			all.Set("page", strconv.Itoa(n))
		}
		return site.Home + "?" + all.Encode()
	}
	view.First = pageAt(1)
	var err error
	var collections []string
	if len(all) == 0 && found.Page == 1 {
		if collections, err = p.addShelves(v, &view); err != nil {
			return view, err
		}
	}
	if view.Facets, view.Chosen, err = p.facets(v, w, found.Facets, collections); err != nil {
		return view, err
	}
	if err = p.addServers(v, &view, found); err != nil {
		return view, err
	}
	if found.Page > 1 {
		view.Before = pageAt(min(found.Page-1, max(found.Pages, 1)))
	}
	if found.Page < found.Pages {
		view.Next = pageAt(found.Page + 1)
	}
	if p.ports.IsEmpty != nil {
		view.Empty, err = p.ports.IsEmpty(v.UserContext())
	}
	return view, err
}

// addShelves adds the first collections, and returns the names of all.
func (p *Pages) addShelves(v *site.Visit, view *listView) ([]string, error) {
	shelves, names, err := p.ports.Finder.Shelves(v.UserContext())
	for _, one := range shelves {
		added := shelf{Shelf: one, Path: pathWith(browsing.Wanted{}, "collection", string(one.Name))}
		for _, f := range one.First {
			added.Cards = append(added.Cards, NewFoundCard(f))
		}
		view.Shelves = append(view.Shelves, added)
	}
	return names, err
}

// addServers adds the servers of the page: those of the person apart from the others.
func (p *Pages) addServers(v *site.Visit, view *listView, found browsing.Found) error {
	hidden, err := p.hidden(v, found.Servers)
	if err != nil {
		return err
	}
	cards := make([]Card, len(found.Servers))
	for i, f := range found.Servers {
		cards[i] = newCard(f.Release, f.Summary, hidden[f.Name])
		if cards[i].Approved, err = approval(v, f); err != nil {
			return err
		}
	}
	for _, part := range []group{{"Your servers", cards[:found.Own]}, {"All servers", cards[found.Own:]}} {
		if len(part.Servers) > 0 {
			view.Groups = append(view.Groups, part)
		}
	}
	return nil
}

// hidden returns what is in quarantine of those servers that are not listed.
func (p *Pages) hidden(v *site.Visit, servers []registrystore.FoundServer) (map[registry.Name][]registry.Quarantined, error) {
	var deleted []registry.Name
	for _, f := range servers {
		if f.Status == registry.StatusDeleted {
			deleted = append(deleted, f.Name)
		}
	}
	return p.ports.Hidden.Entries(v.UserContext(), deleted...)
}

// sendFound sends a page of a search as JSON, for programs: each server as the API shows it, with
// its title and description in place of the document.
func sendFound(v *site.Visit, found browsing.Found) error {
	servers := make([]map[string]any, len(found.Servers))
	for i, f := range found.Servers {
		servers[i] = map[string]any{
			"server": map[string]string{
				"name": f.Name.String(), "version": f.Version.String(), "title": f.Title, "description": f.Description,
			},
			"_meta": map[string]any{"io.modelcontextprotocol.registry/official": map[string]any{
				"status": f.Status, "statusMessage": f.StatusMessage, "publishedAt": f.PublishedAt,
				"updatedAt": f.UpdatedAt, "statusChangedAt": f.StatusChangedAt, "isLatest": true,
			}},
		}
	}
	text, err := json.Marshal(map[string]any{"servers": servers, "metadata": metadataOf(found)})
	if err != nil {
		return err
	}
	return v.SendJSON(text)
}

func metadataOf(found browsing.Found) map[string]any {
	all := map[string]any{"total": found.Total, "more": found.More, "page": found.Page, "pages": found.Pages}
	if making := found.Making; making.Waiting > 0 {
		all["catalogue"] = map[string]int{"done": making.Done(), "servers": making.Servers}
	}
	return all
}

// NewCard returns the card of a version. hidden is what of its server is in quarantine.
func NewCard(r registry.Record, hidden []registry.Quarantined) Card {
	return newCard(r.Release, registry.SummaryOf(r), hidden)
}

// NewFoundCard returns the card of a server that was found.
func NewFoundCard(f registrystore.FoundServer) Card { return newCard(f.Release, f.Summary, nil) }

func newCard(r registry.Release, s registry.Summary, hidden []registry.Quarantined) Card {
	_, short, _ := strings.Cut(r.Name.String(), "/")
	kinds := kindsOf(s)
	if r.Origin.Mirror != "" {
		kinds = append(kinds, "mirror "+r.Origin.Mirror)
	}
	return Card{
		Short: cmp.Or(s.Title, short), Hue: hueOf(r.Name), Path: ServerPath(r.Name), Name: r.Name.String(), Title: s.Title, Description: s.Description,
		Version: r.Version.String(), Status: newStatus(r, hidden), Kinds: kinds, Release: r,
		Changed: slices.Contains(s.Facets, registry.NewFacet(registry.FacetTools, "changed")),
	}
}

// kindsOf returns how a server can be used, in words.
func kindsOf(s registry.Summary) (kinds []string) {
	remote := false
	for _, f := range s.Facets {
		if kind := f.Value(registry.FacetPackage); kind != "" {
			kinds = append(kinds, kind)
		}
		remote = remote || f == registry.NewFacet(registry.FacetRemote, "true")
	}
	if remote {
		kinds = append(kinds, "remote")
	}
	return kinds
}

// Status is the status of a version in words.
type Status struct{ Text, Class, Message string }

// newStatus returns the status of a version: that of its quarantine, with the reason, which is
// public (contract C-21), if it is among what is hidden.
func newStatus(r registry.Release, hidden []registry.Quarantined) Status {
	if q, found := registry.FindQuarantine(hidden, r.Version); found && r.Status == registry.StatusDeleted {
		return Status{"Quarantined", "bad", string(q.Reason)}
	}
	switch r.Status {
	case registry.StatusDeprecated:
		return Status{"Deprecated", "warn", r.StatusMessage}
	case registry.StatusDeleted:
		return Status{"Deleted", "bad", r.StatusMessage}
	}
	return Status{"Active", "good", r.StatusMessage}
}

// document is what the pages show of a document.
type document struct {
	Title       string       `json:"title"`
	Description string       `json:"description"`
	Website     string       `json:"websiteUrl"`
	Repository  repository   `json:"repository"`
	Packages    []packageRow `json:"packages"`
	Remotes     []remoteRow  `json:"remotes"`
}

type repository struct {
	URL       string `json:"url"`
	Subfolder string `json:"subfolder"`
}

type packageRow struct {
	ID           string    `json:"-"` // of its identifier on the page
	RegistryType string    `json:"registryType"`
	Identifier   string    `json:"identifier"`
	Version      string    `json:"version"`
	RuntimeHint  string    `json:"runtimeHint"`
	Transport    transport `json:"transport"`
	Environment  []input   `json:"environmentVariables"`
}

type transport struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type remoteRow struct {
	ID      string  `json:"-"` // of its address on the page
	Type    string  `json:"type"`
	URL     string  `json:"url"`
	Headers []input `json:"headers"`
}

// input is a value that a user gives.
type input struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"isRequired"`
	Secret      bool   `json:"isSecret"`
}

// parseDocument returns what it can read of a document. The rest of the page also shows the
// document itself.
func parseDocument(text []byte) document {
	var d document
	_ = json.Unmarshal(text, &d) // what does not fit is left out
	return d
}

// shorten removes what is too much for a page, and returns how many packages, remotes and inputs it
// has removed.
func (d *document) shorten() (removed int) {
	d.Packages, removed = first(d.Packages, maxOffers, removed)
	d.Remotes, removed = first(d.Remotes, maxOffers, removed)
	for i := range d.Packages {
		d.Packages[i].ID = "package-" + strconv.Itoa(i+1)
		d.Packages[i].Environment, removed = first(d.Packages[i].Environment, maxInputs, removed)
		shortenInputs(d.Packages[i].Environment)
	}
	for i := range d.Remotes {
		d.Remotes[i].ID = "remote-" + strconv.Itoa(i+1)
		d.Remotes[i].URL = shortText(d.Remotes[i].URL)
		d.Remotes[i].Headers, removed = first(d.Remotes[i].Headers, maxInputs, removed)
		shortenInputs(d.Remotes[i].Headers)
	}
	return removed
}

// needs returns what a user must give, each name once, and how the server runs: the types of its remotes
// and packages.
func (d *document) needs() (needs []input, runs []string) {
	add := func(kind string, inputs []input) {
		if kind != "" && !slices.Contains(runs, kind) {
			runs = append(runs, kind)
		}
		for _, in := range inputs {
			if (in.Required || in.Secret) && !slices.ContainsFunc(needs, func(n input) bool { return n.Name == in.Name }) {
				needs = append(needs, in)
			}
		}
	}
	for _, r := range d.Remotes {
		add(r.Type, r.Headers)
	}
	for _, p := range d.Packages {
		add(p.RegistryType, p.Environment)
	}
	return needs[:min(len(needs), maxInputs)], runs
}

// first returns the first items of a list, and the number of those that were removed until now.
func first[T any](list []T, n, removed int) ([]T, int) {
	return list[:min(len(list), n)], removed + max(len(list)-n, 0)
}

func shortenInputs(inputs []input) {
	for i := range inputs {
		inputs[i].Name, inputs[i].Description = shortText(inputs[i].Name), shortText(inputs[i].Description)
	}
}

// shortText returns a text, cut if it is too long for a page.
func shortText(s string) string {
	e := site.NewExcerpt(s, maxText)
	if e.Cut {
		return e.Text + "…"
	}
	return s
}
