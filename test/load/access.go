package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// accessCommand is the argument with which this program measures decisions about calls of tool
// servers, as Envoy requests them.
const accessCommand = "access"

const (
	listings   = 10_000 // servers of the measured registries
	manyRules  = 10_000
	allowCalls = `{"effect":"allow","mode":"enforce","subjects":["everyone"],"servers":["*"],"order":10000,"name":"last"}`
)

// ruleSet is a set of access rules, each written from its number. One more, the last, allows every
// call with a token.
type ruleSet struct {
	name  string
	rules int
	write func(i int) string
}

// tokenNames say what the tokens are that are measured.
var tokenNames = []string{"session", "token of a service account", "foreign token"}

// measureAccess reads the command's flags and prints the cost of Envoy's Check and of an empty handler
// that gets the same bytes, by rules and kind of token.
func measureAccess(args []string) error {
	var p plan
	flags := flag.NewFlagSet(accessCommand, flag.ExitOnError)
	p.defineFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	issuer, err := openIssuer()
	if err != nil {
		return err
	}
	defer issuer.server.Close()
	return p.runBench([]string{"cmd/tollgate", "plugins/otp-log"}, func(b *bench) error {
		like, err := b.startFloor("", "GOGC=400")
		if err != nil {
			return err
		}
		registry := filepath.Join(b.dir, "registry")
		if err := fillServers(registry, listings, 1); err != nil {
			return err
		}
		for _, set := range []ruleSet{
			{"10 rules", 10, ruleOfGroup}, {"10,000 rules", manyRules, ruleOfGroup},
			{"10,000 rules of one server", manyRules, ruleOfTool},
		} {
			if !slices.ContainsFunc(tokenNames, func(token string) bool { return strings.Contains(set.name+", "+token, p.only) }) {
				continue
			}
			if err := b.addChecks(set, registry, issuer, like); err != nil {
				return fmt.Errorf("%s: %w", set.name, err)
			}
		}
		return nil
	})
}

// ruleOfGroup returns a rule about the servers of a namespace, for a group or a person.
func ruleOfGroup(i int) string {
	subject := fmt.Sprintf("group:acme/g%d", i%1000)
	if i%2 == 0 {
		subject = fmt.Sprintf("person:p%d@example.com", i)
	}
	return fmt.Sprintf(`{"effect":"allow","mode":"enforce","subjects":[%q],"servers":["io.github.org%05x/*"],"order":%d,"name":"r%d"}`,
		subject, uint32(i)*2654435761>>12, i%100, i)
}

// ruleOfTool returns a rule that everybody and every server match, and only the tool does not.
func ruleOfTool(i int) string {
	return fmt.Sprintf(`{"effect":"deny","mode":"enforce","subjects":["anyone"],"servers":["*"],"tools":["other_%d"],"order":%d,"name":"r%d"}`,
		i, i%100, i)
}

// addChecks starts a service with rules, and adds candidates that ask it with each kind of token.
func (b *bench) addChecks(set ruleSet, registry string, by *issuer, like *instance.Instance) error {
	e := newEnvironment(b.dir, b.plan, strings.ReplaceAll(set.name, " ", "-"), "", "SQLite")
	e.environ = append(e.environ, "DECIDE=on")
	if err := os.CopyFS(e.database, os.DirFS(registry)); err != nil {
		return fmt.Errorf("copy the registry: %w", err)
	}
	if err := fillRules(e.database, set); err != nil {
		return err
	}
	account, err := makeAccounts(b.dir, e, by)
	if err != nil {
		return err
	}
	i, err := e.startService(b.dir, "serve")
	if err != nil {
		return err
	}
	b.running = append(b.running, i)
	session, err := signIn(b.dir, e, i)
	if err != nil {
		return err
	}
	foreign, err := by.sign()
	if err != nil {
		return err
	}
	for n, token := range []string{session, account, foreign} {
		if err := b.addCheck(set.name+", "+tokenNames[n], i, newCheck(token), like); err != nil {
			return err
		}
	}
	b.setDebugAddress(i)
	return awaitAccess(b.candidates[len(b.candidates)-1])
}

// awaitAccess waits until a service has read its rules and servers.
func awaitAccess(c *candidate) error {
	for deadline := time.Now().Add(time.Minute); ; {
		err := c.call(0, 0)
		if err == nil || grpcstatus.Code(err) != codes.Unavailable || time.Now().After(deadline) {
			return err
		}
	}
}

// addCheck adds a candidate with its floors, which get the same bytes.
func (b *bench) addCheck(name string, i *instance.Instance, q *authpb.CheckRequest, like *instance.Instance) error {
	token := name[strings.LastIndex(name, ", ")+2:]
	floor, err := b.checkFloor("floor: empty handler, "+token, b.floor, q)
	if err != nil {
		return err
	}
	likeFloor, err := b.checkFloor("floor: empty handler with GOGC=400, "+token, like, q)
	if err != nil {
		return err
	}
	c, err := checkCandidate(name, i, q, b.plan.conns, floor, likeFloor)
	if err != nil {
		return err
	}
	c.allocations = func() (uint64, error) { return readAllocations("http://" + i.Debug + allocationsPath) }
	b.candidates = append(b.candidates, c)
	return nil
}

// checkFloor returns the floor of a name, which several candidates have in common.
func (b *bench) checkFloor(name string, at *instance.Instance, q *authpb.CheckRequest) (*candidate, error) {
	for _, c := range b.candidates {
		if c.name == name {
			return c, nil
		}
	}
	c, err := checkCandidate(name, at, q, b.plan.conns)
	if err != nil {
		return nil, err
	}
	c.allocations = func() (uint64, error) { return readAllocations("http://" + at.API + allocationsPath) }
	b.candidates = append(b.candidates, c)
	return c, nil
}

// checkCandidate returns a candidate that calls Check. The call must be allowed.
func checkCandidate(name string, i *instance.Instance, q *authpb.CheckRequest, conns int, floors ...*candidate) (*candidate, error) {
	clients := make([]authpb.AuthorizationClient, conns)
	for n := range clients {
		conn, err := grpc.NewClient(i.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", i.GRPC, err)
		}
		clients[n] = authpb.NewAuthorizationClient(conn)
	}
	call := func(worker, _ int) error {
		answer, err := clients[worker%len(clients)].Check(context.Background(), q)
		if err == nil && answer.GetStatus().GetCode() != 0 {
			return fmt.Errorf("the call was not allowed: %s", answer.GetDeniedResponse().GetBody())
		}
		return err
	}
	return &candidate{name: name, floors: floors, pid: i.PID(), call: call}, nil
}

// newCheck returns the question of Envoy about a call of a tool, with the headers of a usual client.
func newCheck(token string) *authpb.CheckRequest {
	const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"forecast","arguments":{"city":"Oslo","days":3}}}`
	server := newGeneratedServer(4712)
	host, _, _ := strings.Cut(strings.TrimPrefix(server.remote, "https://"), "/")
	return &authpb.CheckRequest{Attributes: &authpb.AttributeContext{
		Source: &authpb.AttributeContext_Peer{Address: &corepb.Address{Address: &corepb.Address_SocketAddress{
			SocketAddress: &corepb.SocketAddress{Address: "192.0.2.9", PortSpecifier: &corepb.SocketAddress_PortValue{PortValue: 4711}},
		}}},
		Request: &authpb.AttributeContext_Request{Http: &authpb.AttributeContext_HttpRequest{
			Id: "1234567890", Method: "POST", Scheme: "https", Host: host, Path: "/mcp", Protocol: "HTTP/2", RawBody: []byte(body),
			Headers: map[string]string{
				":authority": host, ":method": "POST", ":path": "/mcp", ":scheme": "https", "accept": "application/json, text/event-stream",
				"authorization": "Bearer " + token, "content-length": fmt.Sprint(len(body)), "content-type": "application/json",
				"mcp-protocol-version": "2025-11-25", "user-agent": "load", "x-envoy-auth-partial-body": "false",
				"x-forwarded-proto": "https", "x-request-id": "4b5f3b9e-6a0e-4f6c-9d0c-0a4b8e4b0d5e",
			},
		}},
	}}
}

// fillRules inserts access rules.
func fillRules(database string, set ruleSet) error {
	ctx := context.Background()
	db, err := openToFill(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the transaction has reported any failure
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
	f := filler{ctx: ctx, tx: tx, now: time.Now()}
	rules := f.newRows("access_rules", 3)
	rules.columns = "name, settings, managed_by"
	for i := range set.rules - 1 {
		rules.addValues(fmt.Sprint("r", i), set.write(i), "")
	}
	rules.addValues("last", allowCalls, "")
	if err := rules.insertRows(); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// makeAccounts adds the provider of foreign tokens, and returns a token of a service account.
func makeAccounts(dir string, e environment, by *issuer) (string, error) {
	for _, args := range [][]string{
		{"provider", "add", "acme", "--issuer", by.server.URL, "--client-id", "load", "--audience", by.server.URL, "--network", "127.0.0.0/8"},
		{"service-account", "set", "agent"},
	} {
		if err := runCommand(dir, e, "", args...); err != nil {
			return "", err
		}
	}
	return commandOutput(dir, e, "service-account", "token", "create", "agent", "--name", "load", "--scope", "registry:read")
}

// issuer is a provider of access tokens, which are signed with RS256.
type issuer struct {
	server *httptest.Server
	key    jose.JSONWebKey
}

func openIssuer() (*issuer, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	by := &issuer{key: jose.JSONWebKey{Key: private, KeyID: "1", Algorithm: string(jose.RS256), Use: "sig"}}
	pages := http.NewServeMux()
	by.server = httptest.NewServer(pages)
	for path, page := range map[string]any{
		"/.well-known/openid-configuration": map[string]any{
			"issuer": by.server.URL, "jwks_uri": by.server.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
			"authorization_endpoint": by.server.URL + "/authorize", "token_endpoint": by.server.URL + "/token",
		},
		"/keys": jose.JSONWebKeySet{Keys: []jose.JSONWebKey{by.key.Public()}},
	} {
		pages.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(page) // the service says what it misses
		})
	}
	return by, nil
}

// sign returns a token of a person in some groups.
func (i *issuer) sign() (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: i.key}, (&jose.SignerOptions{}).WithType("at+jwt"))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": i.server.URL, "sub": "robot", "aud": i.server.URL, "scope": "openid mcp-registry:read", "jti": "1",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "groups": []string{"developers", "operations", "everybody"},
	})
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return signed.CompactSerialize()
}
