// Package catalogue has the pages on which people find servers and learn how to install them. They
// need no sign-in.
package catalogue

import (
	"cmp"
	"embed"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth/joining"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
)

//go:embed templates
var templates embed.FS

var (
	listPage   = site.ParsePage(templates, "templates/list.html")
	serverPage = site.ParsePage(templates, "templates/server.html")
)

// ServersPath is the path below which the pages of servers are.
const ServersPath = site.Root + "servers/"

// Pages are the pages of the catalogue. It is safe for concurrent use.
type Pages struct {
	site   *site.Site
	reader *browsing.Browser
	// reviews and joining are nil without the part for authentication.
	reviews *reviewing.Service
	joining *joining.Service
}

// New returns the pages.
func New(s *site.Site, r *browsing.Browser, w *reviewing.Service, j *joining.Service) *Pages {
	return &Pages{s, r, w, j}
}

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(site.Home, p.site.Open(p.list))
	r.Get(ServersPath+":namespace/:server", p.site.Open(p.server))
	r.Get(ServersPath+":namespace/:server/versions/:version", p.site.Open(p.server))
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
	Search   string
	Status   string
	Package  string // the type of a package
	Remote   string // "true" or "false"
	First    string // the address of the first page
	Filtered bool   // the list is not that of all servers
	Servers  []Card
	Next     string // the address of the next page; empty on the last one
	Later    bool   // this is not the first page
	Empty    bool   // the service has no account yet
}

// Card is a server in a list.
type Card struct {
	Path, Name, Title, Description string // Title is empty if the document has none
	Version                        string
	Status                         Status
	Kinds                          []string
	Release                        registry.Release
}

// perPage is the number of servers on a page.
const perPage = "30"

func (p *Pages) list(v *site.Visit) error {
	q := browsing.Query{
		Search: strings.TrimSpace(v.Text("q")), Cursor: v.Text("cursor"), Limit: perPage, Version: registry.LatestAlias,
		Status: v.Text("status"), PackageType: v.Text("package"), Remote: v.Text("remote"),
	}
	found, err := p.reader.List(v.UserContext(), q)
	var problems site.Problems
	if f, ok := fault.As(err); ok && f.Kind == fault.Invalid {
		problems = site.ProblemsOf(f)
		v.Status(fiber.StatusUnprocessableEntity)
	} else if err != nil {
		return err
	}
	view := newListView(q, found)
	if p.joining != nil {
		if view.Empty, err = p.joining.IsEmpty(v.UserContext()); err != nil {
			return err
		}
	}
	return v.Render(listPage, site.Head{Title: "Servers", Problems: problems}, view)
}

func newListView(q browsing.Query, found browsing.Page) listView {
	filters := url.Values{}
	for name, value := range map[string]string{
		"q": q.Search, "status": q.Status, "package": q.PackageType, "remote": q.Remote,
	} {
		if value != "" {
			filters.Set(name, value)
		}
	}
	view := listView{
		Search: q.Search, Status: q.Status, Package: q.PackageType, Remote: q.Remote, Later: q.Cursor != "",
		Filtered: len(filters) > 0, First: site.Home + "?" + filters.Encode(),
	}
	for _, r := range found.Records {
		view.Servers = append(view.Servers, NewCard(r))
	}
	if found.NextCursor != "" {
		filters.Set("cursor", found.NextCursor)
		view.Next = site.Home + "?" + filters.Encode()
	}
	return view
}

// NewCard returns the card of a version.
func NewCard(r registry.Record) Card {
	d := parseDocument(r.Document)
	return Card{
		Path: ServerPath(r.Name), Name: r.Name.String(), Title: strings.TrimSpace(d.Title), Description: d.Description,
		Version: r.Version.String(),
		Status:  newStatus(r.Release), Kinds: d.kinds(), Release: r.Release,
	}
}

// Status is the status of a version in words.
type Status struct{ Text, Class, Message string }

func newStatus(r registry.Release) Status {
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

// title returns the title, or the name.
func (d document) title(name registry.Name) string {
	return cmp.Or(strings.TrimSpace(d.Title), name.String())
}

// kinds returns how the server can be used, each once, in words.
func (d document) kinds() (kinds []string) {
	seen := map[string]bool{}
	add := func(text string) {
		if !seen[text] {
			seen[text] = true
			kinds = append(kinds, text)
		}
	}
	for _, p := range d.Packages {
		add(p.RegistryType + " package")
	}
	for _, r := range d.Remotes {
		add("remote, " + r.Type)
	}
	return kinds
}

// shorten removes what is too much for a page, and returns how many packages, remotes and inputs it
// has removed.
func (d *document) shorten() (removed int) {
	d.Packages, removed = first(d.Packages, maxOffers, removed)
	d.Remotes, removed = first(d.Remotes, maxOffers, removed)
	for i := range d.Packages {
		d.Packages[i].Environment, removed = first(d.Packages[i].Environment, maxInputs, removed)
		shortenInputs(d.Packages[i].Environment)
	}
	for i := range d.Remotes {
		d.Remotes[i].URL = shortText(d.Remotes[i].URL)
		d.Remotes[i].Headers, removed = first(d.Remotes[i].Headers, maxInputs, removed)
		shortenInputs(d.Remotes[i].Headers)
	}
	return removed
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
