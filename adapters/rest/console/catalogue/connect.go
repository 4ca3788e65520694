package catalogue

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
)

var connectPage = site.NewPage(templates, "templates/connect.html")

// ConnectPath is the path of the page that says how programs reach the registry.
const ConnectPath = site.Root + "connect"

// PublicURL is the address under which clients reach the service; empty if it is not set.
type PublicURL string

// MCP says that the registry, and each view, is an MCP server too (contract M-1).
type MCP bool

// Connect is the page that says how programs reach the registry. It is safe for concurrent use.
type Connect struct {
	site   *site.Site
	views  *viewing.Gate
	public PublicURL
	mcp    MCP
}

// NewConnect returns the page.
func NewConnect(s *site.Site, v *viewing.Gate, u PublicURL, m MCP) *Connect {
	return &Connect{s, v, u, m}
}

// Mount adds the route.
func (c *Connect) Mount(r fiber.Router) { r.Get(ConnectPath, c.site.Open(c.show)) }

// tokenPlace is in place of the token of a view.
const tokenPlace = "TOKEN"

// program is a program that people connect, with what docs/clients says about it.
type program struct {
	ID, Name string
	File     string // in which its users add a server; empty if they need no file
	Links    bool   // the page of a server has a link that installs it
	Users    string // what else its users do
	// Registry says where an administrator enters the address of the registry; empty for nowhere.
	Registry string
	List     allowlist.Format // of its allow list; empty without one
	Deploy   string           // what an administrator does with the allow list
	Places   []place          // of the allow list
	Setting  string           // what is set with the list
}

// place is where a program reads its managed settings on a system.
type place struct{ System, File string }

const copilotRegistry = "as the MCP registry URL in the policies of the organisation or enterprise at GitHub. " +
	"With the policy “Registry only”, editors then refuse servers whose name is not in the registry"

const copilotDeploy = "Merge both properties into the managed settings of Copilot: a file on the machine, " +
	"managed-settings.json in the repository .github-private of the enterprise, or device management."

// programs are the programs that the page has steps for. The first one is shown without a choice.
var programs = describedPrograms()

// describedPrograms returns what the page says of each client, and of other programs.
func describedPrograms() (all []program) {
	for _, c := range allowlist.Clients() {
		p := deployments[c.Client]
		p.ID, p.Name, p.File = string(c.Client), c.Title, c.File
		all = append(all, p)
	}
	return append(all, program{ID: "other", Name: "Another program"})
}

// deployments is what the page says of clients that have more than a file.
var deployments = map[allowlist.Client]program{
	allowlist.ClientVSCode: {Links: true, Registry: copilotRegistry, List: allowlist.VSCode, Deploy: copilotDeploy},
	"copilot":              {Registry: copilotRegistry, List: allowlist.VSCode, Deploy: copilotDeploy},
	allowlist.ClientClaude: {
		List: allowlist.Claude, Setting: `{"allowManagedMcpServersOnly": true}`,
		Deploy: "Merge the list and the setting below into the managed settings, " +
			"so that users cannot extend the list in their own settings.",
		Places: []place{
			{"Linux", "/etc/claude-code/managed-settings.json"},
			{"macOS", "/Library/Application Support/ClaudeCode/managed-settings.json"},
		},
	},
	allowlist.ClientCursor: {Links: true},
	allowlist.ClientGemini: {
		List: allowlist.Gemini,
		Deploy: "Write the list to the system settings, which win over those of users and projects. " +
			"Every user gets all servers of the list, and the program tries them all: give it a view of some dozens.",
		Places: []place{
			{"Linux", "/etc/gemini-cli/settings.json"}, {"macOS", "/Library/Application Support/GeminiCli/settings.json"},
		},
	},
	"kiro": {
		Users: "If your administrator has set a list, Kiro offers its servers and no others.",
		List:  allowlist.Kiro,
		Deploy: "In the console of Kiro, under the shared settings (for Amazon Q Developer, on its tab), turn MCP on " +
			"and enter this address as the MCP Registry URL. It must be https, with a certificate that the machines " +
			"of your users trust.",
	},
	allowlist.ClientCodex: {
		List: allowlist.Codex,
		Deploy: "Merge the list into the requirements of the machine. Codex then starts servers of the list alone; " +
			"it has remotes only, so all packages are disabled.",
		Places: []place{{"Linux", "/etc/codex/requirements.toml"}, {"macOS", "/etc/codex/requirements.toml"}},
	},
}

// connectView is the page that says how programs reach the registry. Like the menu Code of a
// repository at GitHub, it shows one address with a button that copies it, for the way that the
// reader chooses.
type connectView struct {
	Program  program
	Programs []program
	View     view.View
	Views    []view.View
	Service  string // the address of the service
	Address  string // of the registry, or of the view
	List     string // of the allow list
	MCP      MCP
}

// show shows how programs reach the registry.
func (c *Connect) show(v *site.Visit) error {
	who, err := v.Reader()
	if err != nil {
		return err
	}
	views, err := c.views.Known(v.UserContext(), who)
	if err != nil {
		return err
	}
	page := connectView{Program: programs[0], Programs: programs, View: view.OfAll(), Views: views, Service: c.address(v), MCP: c.mcp}
	problems := page.choose(v.Text("client"), v.Text("view"))
	if len(problems) > 0 {
		v.Status(fiber.StatusUnprocessableEntity)
	}
	page.Address = page.Service + page.View.Path(tokenPlace)
	page.List = page.Address
	if page.View.Name == view.All {
		page.List += "/registries/" + view.All
	}
	page.List += "/allowlist/" + page.Program.List.File()
	return v.Render(connectPage, site.Head{Title: "Connect", Problems: problems}, page)
}

// choose sets the program and the view that the reader has chosen, if they are known.
func (page *connectView) choose(client, name string) (problems site.Problems) {
	if i := slices.IndexFunc(programs, func(p program) bool { return p.ID == client }); i >= 0 {
		page.Program = programs[i]
	} else if client != "" {
		problems = append(problems, site.Problem{Field: "client", Text: "Choose a program of the list."})
	}
	if i := slices.IndexFunc(page.Views, func(v view.View) bool { return string(v.Name) == name }); i >= 0 {
		page.View = page.Views[i]
	} else if name != "" && name != view.All {
		problems = append(problems, site.Problem{Field: "view", Text: "Choose a view of the list."})
	}
	return problems
}

// address returns the address of the service: PUBLIC_URL, or else that which the reader has used.
func (c *Connect) address(v *site.Visit) string {
	switch {
	case c.public != "":
		return strings.TrimSuffix(string(c.public), "/")
	case rest.Secure(v.Ctx):
		return "https://" + rest.Host(v.Ctx)
	}
	return "http://" + rest.Host(v.Ctx)
}
