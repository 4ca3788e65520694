package execution

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

var seed = flag.Uint64("seed", 0, "begin of the attacks by chance; 0 is the usual one in a short run, otherwise the time")

// The servers by whose rules each attack is decided: of open all tools but danger may be called, of strict
// only the tool safe.
const (
	open   = "com.alpha/open"
	strict = "com.beta/strict"
)

// client sends requests on one connection to a server at a time.
type client struct {
	address    string
	connection net.Conn
	reader     *bufio.Reader
}

// send sends a request, and returns the response, whose body is read. A response is nil for a request that
// the server did not answer.
func (c *client) send(t *testing.T, path string, a *attack, more ...string) *http.Response {
	t.Helper()
	if c.connection == nil {
		connection, err := net.Dial("tcp", c.address)
		must.Succeed(t, err)
		c.connection, c.reader = connection, bufio.NewReader(connection)
		t.Cleanup(func() { _ = connection.Close() }) // it may be closed
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n", a.method, path, len(a.body))
	for _, h := range a.header {
		b.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	for i := 0; i < len(more); i += 2 {
		b.WriteString(more[i] + ": " + more[i+1] + "\r\n")
	}
	b.WriteString("\r\n")
	b.Write(a.body)
	must.Succeed(t, c.connection.SetDeadline(time.Now().Add(time.Minute)))
	_, err := io.WriteString(c.connection, b.String())
	var response *http.Response
	if err == nil {
		response, err = http.ReadResponse(c.reader, &http.Request{Method: a.method})
	}
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
	}
	if err != nil || response.Close {
		_ = c.connection.Close() // the next request begins another one
		c.connection = nil
	}
	if err != nil {
		return nil
	}
	return response
}

// decider gets decisions of a service.
type decider struct {
	http  client
	envoy authpb.AuthorizationClient
}

// decision says whether a call is allowed, and of which tool.
type decision struct {
	allowed bool
	tool    string
}

// startDecider runs a service with the rules.
func startDecider(t *testing.T) *decider {
	t.Helper()
	e := fixture.NewEnvironment(t, "embedded")
	var documents []map[string]any
	for _, name := range []string{open, strict} {
		documents = append(documents, map[string]any{"server": fixture.NewServerDocument(name, "1.0.0")})
	}
	file, err := json.Marshal(map[string]any{"servers": documents})
	must.Succeed(t, err)
	path := filepath.Join(e.Dir, "servers.json")
	fixture.WriteFile(t, path, string(file))
	e.RunCommand(t, "", "registry", "import", path)
	for _, rule := range []string{
		"no-danger --order 1 --effect deny --server com.alpha/* --tool danger", "only-safe --order 2 --effect allow --server com.beta/* --tool safe",
		"nothing-else --order 3 --effect deny --server com.beta/*", "all --order 4 --effect allow --server *",
	} {
		e.RunCommand(t, "", append([]string{"access", "rule", "set", "--subject", "anyone"}, strings.Fields(rule)...)...)
	}
	s := e.Start(t, "DECIDE=on", "DECIDE_NETWORKS=127.0.0.0/8")
	connection, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = connection.Close() }) // the test is over
	return &decider{client{address: strings.TrimPrefix(s.API, "http://")}, authpb.NewAuthorizationClient(connection)}
}

// decide returns the decision about an attack on a server, as a proxy gets it that asks by HTTP.
func (d *decider) decide(t *testing.T, a *attack, server string) decision {
	t.Helper()
	question := *a
	question.method = "POST" // of the question
	response := d.http.send(t, "/decide/http", &question, "X-Forwarded-Method", a.method, "x-tollgate-server", server)
	if response == nil {
		return decision{}
	}
	return decision{response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNoContent, decodeTool(response.Header.Get("x-tollgate-tool"))}
}

// decideForEnvoy returns the decision about an attack, as Envoy gets it: the values of a header that is
// there twice have a comma between them.
func (d *decider) decideForEnvoy(t *testing.T, a *attack, server string) decision {
	t.Helper()
	header := map[string]string{"content-length": strconv.Itoa(len(a.body))}
	for _, h := range a.header {
		name := strings.ToLower(h[0])
		if before, known := header[name]; known {
			h[1] = before + "," + h[1]
		}
		header[name] = h[1]
	}
	answer, err := d.envoy.Check(t.Context(), &authpb.CheckRequest{Attributes: &authpb.AttributeContext{
		ContextExtensions: map[string]string{"tollgate.server": server},
		Request: &authpb.AttributeContext_Request{Http: &authpb.AttributeContext_HttpRequest{
			Method: a.method, Headers: header, RawBody: a.body,
		}},
	}})
	must.Succeed(t, err)
	tool := ""
	for _, h := range answer.GetOkResponse().GetHeaders() {
		if h.GetHeader().GetKey() == "x-tollgate-tool" {
			tool = valueOf(h.GetHeader())
		}
	}
	return decision{answer.GetStatus().GetCode() == int32(codes.OK), decodeTool(tool)}
}

func valueOf(h *corepb.HeaderValue) string {
	if raw := h.GetRawValue(); len(raw) > 0 {
		return string(raw)
	}
	return h.GetValue()
}

// decodeTool returns the name of a tool from the header for the tool server.
func decodeTool(text string) string {
	inner, coded := strings.CutPrefix(text, "=?base64?")
	if !coded {
		return text
	}
	name, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
	if err != nil {
		return "no base64: " + text
	}
	return string(name)
}

// TestServersExecuteWhatWasDecided sends attacks that are known, and attacks by chance: no server executes
// another tool than the one that was decided.
func TestServersExecuteWhatWasDecided(t *testing.T) {
	servers := startToolServers(t)
	d := startDecider(t)
	sendKnownAttacks(t, d, servers)
	sendAttacks(t, d, servers)
}

// sendKnownAttacks checks that what made a server execute another tool than the one that was decided is
// refused. The server executes it still.
func sendKnownAttacks(t *testing.T, d *decider, servers *toolServers) {
	t.Helper()
	address, path, _ := strings.Cut(servers.addresses["express"], "/")
	express := &client{address: address}
	for i, a := range knownAttacks() {
		for _, server := range []string{open, strict} {
			if by := d.decide(t, a, server); by.allowed {
				t.Errorf("%s is allowed at %s as %q", a, server, by.tool)
			}
			if by := d.decideForEnvoy(t, a, server); by.allowed {
				t.Errorf("Envoy: %s is allowed at %s as %q", a, server, by.tool)
			}
		}
		a.add("Accept", "application/json, text/event-stream")
		name := "known " + strconv.Itoa(i)
		express.send(t, "/"+path, a, caseHeader, name)
		if !slices.Contains(servers.all(t), execution{"express", name, "danger"}) {
			t.Errorf("%s did not make the server execute danger", a)
		}
	}
}

// sendAttacks sends attacks by chance, those that are allowed to the servers too.
func sendAttacks(t *testing.T, d *decider, servers *toolServers) {
	t.Helper()
	n, begin := 10_000, *seed
	if testing.Short() {
		n = 1_000
	} else if begin == 0 {
		begin = uint64(time.Now().UnixNano())
	}
	clients := map[string]*client{}
	for name, place := range servers.addresses {
		address, _, _ := strings.Cut(place, "/")
		clients[name] = &client{address: address}
	}
	m := maker{Rand: rand.New(rand.NewPCG(begin, 0)), calm: 1}
	attacks, decided := map[string]*attack{}, map[string]decision{}
	for i := range n {
		a, number := m.newAttack(), strconv.Itoa(i)
		by := d.decideAll(t, a)
		if attacks[number], decided[number] = a, by; !by.allowed {
			continue
		}
		for name, place := range servers.addresses {
			_, path, _ := strings.Cut(place, "/")
			clients[name].send(t, "/"+path, a, caseHeader, number)
		}
	}
	executed := map[string]int{}
	for _, e := range servers.all(t) {
		if strings.HasPrefix(e.Case, "known") {
			continue
		}
		executed[e.Server]++
		if by, known := decided[e.Case]; !known || e.Tool != by.tool {
			t.Errorf("%s executed %q, decided was %q: %s", e.Server, e.Tool, by.tool, attacks[e.Case])
		}
	}
	for name := range servers.addresses {
		if executed[name] < n/8 {
			t.Errorf("%s executed %d of %d: the attacks are changed too much", name, executed[name], n)
		}
	}
	t.Logf("-seed %d: of %d attacks were executed %v", begin, n, executed)
}

// decideAll returns the decision about an attack on the server open. Envoy must get the same one, and that
// about strict may allow the tool safe only.
func (d *decider) decideAll(t *testing.T, a *attack) decision {
	t.Helper()
	byOpen, byStrict := d.decide(t, a, open), d.decide(t, a, strict)
	if byEnvoy := d.decideForEnvoy(t, a, open); byEnvoy != byOpen {
		t.Errorf("Envoy gets %+v, by HTTP it is %+v: %s", byEnvoy, byOpen, a)
	}
	if byOpen.allowed && byOpen.tool == "danger" || byStrict.allowed && (byStrict.tool != "safe" || byStrict != byOpen) {
		t.Errorf("%s: %+v, %s: %+v: %s", open, byOpen, strict, byStrict, a)
	}
	return byOpen
}
