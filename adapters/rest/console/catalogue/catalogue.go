// Package catalogue has the pages on which people find servers and learn how to install them. They need
// no sign-in.
package catalogue

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
)

//go:embed templates
var templates embed.FS

var (
	listPage   = site.ParsePage(templates, "templates/list.html")
	serverPage = site.ParsePage(templates, "templates/server.html")
)

// serversPath is the path below which the pages of servers are.
const serversPath = site.Root + "servers/"

// Reader reads the registry. *browse.Browser implements it and documents the errors.
type Reader interface {
	List(ctx context.Context, q browse.Query) (browse.Page, error)
	Version(ctx context.Context, serverName, version, includeDeleted string) (registry.Record, error)
	Editions(ctx context.Context, serverName string) ([]registry.Edition, error)
}

// Pages are the pages of the catalogue. It is safe for concurrent use.
type Pages struct {
	site   *site.Site
	reader Reader
}

// New returns the pages.
func New(s *site.Site, r Reader) *Pages { return &Pages{s, r} }

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(site.Home, p.site.Open(p.list))
	r.Get(serversPath+":namespace/:server", p.site.Open(p.server))
	r.Get(serversPath+":namespace/:server/versions/:version", p.site.Open(p.server))
}

// ServerPath returns the path of the page of a server.
func ServerPath(name registry.Name) string {
	namespace, server, _ := strings.Cut(name.String(), "/")
	return serversPath + url.PathEscape(namespace) + "/" + url.PathEscape(server)
}

// VersionPath returns the path of the page of a version.
func VersionPath(name registry.Name, version registry.Version) string {
	return ServerPath(name) + "/versions/" + url.PathEscape(version.String())
}

// listView is the page with the list of servers.
type listView struct {
	Search   string
	Filtered bool // the list is not that of all servers
	Servers  []cardView
	Next     string // the address of the next page; empty on the last one
	Later    bool   // this is not the first page
}

// cardView is a server in the list.
type cardView struct {
	Path, Name, Title, Description string // Title is empty if the document has none
	Version                        string
	Status                         statusView
	Kinds                          []string
	Release                        registry.Release
}

// perPage is the number of servers on a page.
const perPage = "30"

func (p *Pages) list(v *site.Visit) error {
	q := browse.Query{
		Search: strings.TrimSpace(v.Text("q")), Cursor: v.Text("cursor"), Limit: perPage, Version: registry.LatestAlias,
	}
	view := listView{Search: q.Search, Filtered: q.Search != "", Later: q.Cursor != ""}
	found, err := p.reader.List(v.UserContext(), q)
	var problems site.Problems
	if f, ok := fault.As(err); ok && f.Kind == fault.Invalid {
		problems = site.ProblemsOf(f)
		v.Status(fiber.StatusUnprocessableEntity)
	} else if err != nil {
		return err
	}
	for _, r := range found.Records {
		view.Servers = append(view.Servers, newCard(r))
	}
	if found.NextCursor != "" {
		view.Next = site.Home + "?" + url.Values{"q": {q.Search}, "cursor": {found.NextCursor}}.Encode()
	}
	return v.Render(listPage, site.Head{Title: "Servers", Problems: problems}, view)
}

func newCard(r registry.Record) cardView {
	d := parseDocument(r.Document)
	return cardView{
		Path: ServerPath(r.Name), Name: r.Name.String(), Title: strings.TrimSpace(d.Title), Description: d.Description, Version: r.Version.String(),
		Status: newStatus(r.Release), Kinds: d.kinds(), Release: r.Release,
	}
}

// statusView is the status of a version in words.
type statusView struct{ Text, Class, Message string }

func newStatus(r registry.Release) statusView {
	switch r.Status {
	case registry.StatusDeprecated:
		return statusView{"Deprecated", "warn", r.StatusMessage}
	case registry.StatusDeleted:
		return statusView{"Deleted", "bad", r.StatusMessage}
	}
	return statusView{"Active", "good", r.StatusMessage}
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

// parseDocument returns what it can read of a document. The rest of the page also shows the document
// itself.
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
