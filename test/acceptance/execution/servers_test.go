// Package execution tests that a tool server executes what was decided: real servers get the calls that
// Tollgate allows.
package execution

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestMain(m *testing.M) { fixture.Main(m) }

// caseHeader is the header with the number of a case.
const caseHeader = "X-Case"

// execution is a tool that a server executed in a case.
type execution struct{ Server, Case, Tool string }

// toolServers are tool servers of four kinds, by their addresses and paths.
type toolServers struct {
	addresses map[string]string
	inNode    string // the URL of what the servers in Node.js executed

	mu       sync.Mutex
	executed []execution
}

// startToolServers runs the servers until the test ends.
func startToolServers(t *testing.T) *toolServers {
	t.Helper()
	s := &toolServers{addresses: map[string]string{}}
	for name, handler := range map[string]http.Handler{"go-sdk": s.newGoSDK(), "mcp-go": s.newMCPGo()} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		s.addresses[name] = server.Listener.Addr().String() + "/mcp"
	}
	s.startNode(t)
	return s
}

// newGoSDK returns a server of the official SDK for Go, which records each call of a tool, also of one
// that it does not have.
func (s *toolServers) newGoSDK() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "go-sdk", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "safe"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if p, ok := r.GetParams().(*mcp.CallToolParamsRaw); ok {
				s.record("go-sdk", r.GetExtra().Header, p.Name)
			}
			return next(ctx, method, r)
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

// newMCPGo returns a server of mark3labs/mcp-go, which records likewise.
func (s *toolServers) newMCPGo() http.Handler {
	hooks := &mcpgoserver.Hooks{}
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, r *mcpgo.CallToolRequest) { s.record("mcp-go", r.Header, r.Params.Name) })
	server := mcpgoserver.NewMCPServer("mcp-go", "1.0.0", mcpgoserver.WithToolCapabilities(false), mcpgoserver.WithHooks(hooks))
	server.AddTool(mcpgo.NewTool("safe"), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return &mcpgo.CallToolResult{}, nil
	})
	return mcpgoserver.NewStreamableHTTPServer(server, mcpgoserver.WithStateLess(true), mcpgoserver.WithDisableStreaming(true))
}

func (s *toolServers) record(server string, header http.Header, tool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.executed = append(s.executed, execution{server, header.Get(caseHeader), tool})
}

// startNode runs the servers of the SDK for TypeScript.
func (s *toolServers) startNode(t *testing.T) {
	t.Helper()
	suite := os.Getenv("TEST_MCP")
	if suite == "" {
		t.Skip("needs the MCP SDK: run the test by test/servers/with.sh, or set TEST_MCP to what `make servers` prints")
	}
	modules := filepath.Join(filepath.Dir(suite), "../../..")
	c := exec.Command("node", "testdata/servers.mjs", modules)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // it was killed
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	must.Succeed(t, err)
	address := "127.0.0.1:" + strings.TrimSpace(port)
	s.addresses["express"], s.addresses["http"] = address+"/express", address+"/http"
	s.inNode = "http://" + address + "/executed"
}

// all returns what all servers have executed.
func (s *toolServers) all(t *testing.T) []execution {
	t.Helper()
	response, err := http.Get(s.inNode)
	must.Succeed(t, err)
	defer response.Body.Close()
	var more []execution
	must.Succeed(t, json.NewDecoder(response.Body).Decode(&more))
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(more, s.executed...)
}
