package publisher

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// recipe is a part of docs/publishing.md with its shell blocks and its YAML files.
type recipe struct{ shell, yaml []string }

var (
	recipeBlock  = regexp.MustCompile("(?s)(<!-- docs: not run[^\n]*-->\n)?```(sh|yaml)\n(.*?)```")
	printedEntry = regexp.MustCompile(`(?m)^example\.com\. IN TXT "(.*)"$`)
)

// readRecipe returns the part of the section "Without a person" that a heading begins. It replaces
// the addresses of the page.
func readRecipe(t *testing.T, heading string, addresses ...string) (r recipe) {
	t.Helper()
	content, err := os.ReadFile("../../../docs/publishing.md")
	must.Succeed(t, err)
	_, section, _ := strings.Cut(string(content), "\n## Without a person\n")
	_, part, found := strings.Cut(section, "\n### "+heading+"\n")
	if !found {
		t.Fatalf("docs/publishing.md has no part %q", heading)
	}
	part, _, _ = strings.Cut(part, "\n### ")
	for _, block := range recipeBlock.FindAllStringSubmatch(part, -1) {
		text := strings.NewReplacer(addresses...).Replace(block[3])
		switch {
		case block[1] != "":
		case block[2] == "sh":
			r.shell = append(r.shell, text)
		default:
			r.yaml = append(r.yaml, text)
		}
	}
	return r
}

// shell runs the scripts of the page in one folder, which has server.json.
type shell struct {
	dir     string
	environ []string
}

// newShell returns a shell for which server.json has a version.
func newShell(t *testing.T, p *proofSite, version string, environ ...string) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir()}
	s.environ = append(append([]string{}, p.e.Environ...), "HOME="+t.TempDir(),
		"PATH="+fixture.BinDir+":"+linkClient(t)+":"+os.Getenv("PATH"))
	s.environ = append(s.environ, environ...)
	text, err := json.Marshal(fixture.NewServerDocument("com.example/weather", version))
	must.Succeed(t, err)
	fixture.WriteFile(t, filepath.Join(s.dir, "server.json"), string(text))
	return s
}

// run runs a script, which must succeed, and returns its output.
func (s *shell) run(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return string(out)
}

// TestProofRecipes runs the recipes of docs/publishing.md as they are, except that it replaces the
// addresses of the service and of the issuer.
func TestProofRecipes(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		github, gitlab := oidcissuer.Start(t), oidcissuer.Start(t)
		p := startProofs(t, e, "GITHUB_OIDC_ISSUER="+github.URL, "OIDC_ISSUERS="+gitlab.URL)
		addresses := []string{"https://tollgate.example.com", p.API, "https://gitlab.com", gitlab.URL}
		runDomainRecipe(t, p, readRecipe(t, "With your own domain", addresses...))
		runWorkflow(t, p, github, readRecipe(t, "With GitHub Actions", addresses...))
		runGitLabJob(t, p, gitlab, readRecipe(t, "With GitLab", addresses...))
		versions := p.readVersions(t, "com.example/weather")
		for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
			if versions[version].Status != "active" {
				t.Errorf("after the recipes: %+v", versions)
			}
		}
	})
}

func runDomainRecipe(t *testing.T, p *proofSite, r recipe) {
	t.Helper()
	if len(r.shell) != 3 {
		t.Fatalf("the recipe has %d blocks", len(r.shell))
	}
	s := newShell(t, p, "1.0.0")
	entry := printedEntry.FindStringSubmatch(s.run(t, r.shell[0]))
	if entry == nil {
		t.Fatal("the recipe prints no record")
	}
	p.dns.SetTXT("example.com", entry[1])
	s.run(t, r.shell[1])
	s.run(t, r.shell[2])
}

func runWorkflow(t *testing.T, p *proofSite, issuer *oidcissuer.Issuer, r recipe) {
	t.Helper()
	if len(r.shell) != 1 || len(r.yaml) != 1 {
		t.Fatalf("the recipe has %+v", r)
	}
	var workflow struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	must.Succeed(t, yaml.Unmarshal([]byte(r.yaml[0]), &workflow))
	if workflow.Permissions["id-token"] != "write" {
		t.Errorf("the workflow has the permissions %v", workflow.Permissions)
	}
	newShell(t, p, "1.1.0").run(t, r.shell[0])
	s, ran := newShell(t, p, "1.1.0", startJob(t, issuer).environ...), 0
	for _, step := range workflow.Jobs["publish"].Steps {
		switch {
		case step.Run == "":
		case step.Name == "Install the client":
			if step.Run != "go install "+clientPackage+"@"+clientVersion {
				t.Errorf("the workflow installs another client: %s", step.Run)
			}
		default:
			s.run(t, step.Run)
			ran++
		}
	}
	if ran == 0 {
		t.Error("the workflow runs nothing")
	}
}

func runGitLabJob(t *testing.T, p *proofSite, issuer *oidcissuer.Issuer, r recipe) {
	t.Helper()
	if len(r.shell) != 1 || len(r.yaml) != 1 {
		t.Fatalf("the recipe has %+v", r)
	}
	var file map[string]struct {
		IDTokens map[string]struct{ Aud string } `yaml:"id_tokens"`
		Script   []string
	}
	must.Succeed(t, yaml.Unmarshal([]byte(r.yaml[0]), &file))
	newShell(t, p, "1.2.0").run(t, r.shell[0])
	claims := issuer.NewClaims(file["publish"].IDTokens["TOLLGATE_ID_TOKEN"].Aud, time.Now())
	for name, value := range map[string]string{
		"sub": "project_path:acme/tools:ref_type:branch:ref:main", "project_path": "acme/tools", "ref_type": "branch",
		"ref": "main", "ref_protected": "true",
	} {
		claims[name] = value
	}
	s := newShell(t, p, "1.2.0", "TOLLGATE_ID_TOKEN="+issuer.Sign(t, claims))
	if len(file["publish"].Script) == 0 {
		t.Error("the job runs nothing")
	}
	for _, line := range file["publish"].Script {
		s.run(t, line)
	}
}
