package publisher

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// The publishing client of the public registry. The tests run it unmodified.
const (
	clientPackage = "github.com/modelcontextprotocol/registry/cmd/publisher"
	clientVersion = "v1.8.9"
)

// buildClient returns the path of the publishing client. It builds the client unless the cache of
// the user has it.
var buildClient = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("folder of the tools: %w", err)
	}
	dir := filepath.Join(cache, "tollgate-tools", "mcp-publisher-"+clientVersion)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("folder of the tools: %w", err)
	}
	unlock, err := instance.LockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	program := filepath.Join(dir, "publisher")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	built := filepath.Join(dir, "new")
	cmd := exec.Command("go", "install", clientPackage+"@"+clientVersion)
	cmd.Env = append(os.Environ(), "GOBIN="+built, "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", clientPackage, err, out)
	}
	if err := os.Rename(filepath.Join(built, "publisher"), program); err != nil { // never a part of it
		return "", fmt.Errorf("store the client: %w", err)
	}
	return program, nil
})

// linkClient returns a folder that has the publishing client under both of its names.
func linkClient(t *testing.T) string {
	t.Helper()
	program, err := buildClient()
	must.Succeed(t, err)
	dir := t.TempDir()
	for _, name := range []string{"mcp-publisher", "publisher"} {
		must.Succeed(t, os.Symlink(program, filepath.Join(dir, name)))
	}
	return dir
}

// proofClient runs the publishing client in an empty home folder.
type proofClient struct {
	program string
	home    string
	environ []string
}

func newProofClient(t *testing.T, environ ...string) *proofClient {
	t.Helper()
	c := &proofClient{program: filepath.Join(linkClient(t), "mcp-publisher"), home: t.TempDir()}
	c.environ = append([]string{"HOME=" + c.home, "PATH=" + os.Getenv("PATH")}, environ...)
	return c
}

// tryRun runs a command of the client and returns its output and whether it succeeded.
func (c *proofClient) tryRun(args ...string) (string, bool) {
	cmd := exec.Command(c.program, args...)
	cmd.Env, cmd.Dir = c.environ, c.home
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// run runs a command of the client, which must succeed.
func (c *proofClient) run(t *testing.T, args ...string) string {
	t.Helper()
	out, ok := c.tryRun(args...)
	if !ok {
		t.Fatalf("mcp-publisher %s:\n%s", strings.Join(args, " "), out)
	}
	return out
}

// wantRefusal runs a command of the client, which must fail with a text.
func (c *proofClient) wantRefusal(t *testing.T, text string, args ...string) {
	t.Helper()
	if out, ok := c.tryRun(args...); ok || !strings.Contains(out, text) {
		t.Errorf("mcp-publisher %s must fail with %q:\n%s", strings.Join(args, " "), text, out)
	}
}

func (c *proofClient) tokenFile() string {
	return filepath.Join(c.home, ".config", "mcp-publisher", "token.json")
}

// wantToken checks the file of a login and returns the claims of its token.
func (c *proofClient) wantToken(t *testing.T, s *fixture.Service, method string) publisherClaims {
	t.Helper()
	info, err := os.Stat(c.tokenFile())
	must.Succeed(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the token file has mode %v", info.Mode())
	}
	text, err := os.ReadFile(c.tokenFile())
	must.Succeed(t, err)
	var stored map[string]string
	fixture.DecodeJSON(t, string(text), &stored)
	if len(stored) != 3 || stored["method"] != method || stored["registry"] != s.API {
		t.Errorf("the token file has %s", text)
	}
	return readClaims(t, stored["token"])
}

// publisherClaims are the claims of the token of a publisher (contract P-15).
type publisherClaims struct {
	Type        string `json:"-"`
	Subject     string `json:"sub"`
	Method      string `json:"auth_method"`
	Session     string `json:"sid"`
	IssuedAt    int64  `json:"iat"`
	ExpiresAt   int64  `json:"exp"`
	Permissions []struct {
		Actions          []string
		Resource, Policy string
	}
}

func readClaims(t *testing.T, token string) (c publisherClaims) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is not a JWT", token)
	}
	decode := func(part string, into any) {
		text, err := base64.RawURLEncoding.DecodeString(part)
		must.Succeed(t, err)
		fixture.DecodeJSON(t, string(text), into)
	}
	var header struct{ Typ string }
	decode(parts[0], &header)
	decode(parts[1], &c)
	c.Type = header.Typ
	return c
}
