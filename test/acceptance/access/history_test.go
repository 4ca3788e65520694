package access

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestHistories gives and takes away authority in random order at one instance, while another one loses its
// connections to the database, is cut off, or is replaced. What is taken away is refused there within a second,
// at the instance that has taken it at once, and by none of many calls at once after that; what is given is
// allowed again likewise. HISTORY_SEED repeats one.
func TestHistories(t *testing.T) {
	t.Parallel()
	e := fixture.NewProduction(t)
	e.Environ = append(e.Environ, "REGISTRY_READ=people", "MCP=on")
	h := openHistory(t, e)
	for _, step := range h.order(t) {
		a, fault := h.authorities(t)[step.authority], h.faults(t)[step.fault]
		what := fmt.Sprintf("%s, %s", a.name, fault.name)
		h.wantAll(t, "before: "+what, a, true)
		fault.during(a.take)
		h.wantFresh(t, what, a, false)
		h.wantAll(t, what, a, false)
		fault.during(a.give)
		h.wantFresh(t, "the end of "+what, a, true)
	}
}

// history is a site whose other instance reaches the database through a proxy.
type history struct {
	*site
	through *instance.Cutter
	key     string // the token of the service account bot
	carl    *fixture.Person
	carlID  string
}

func openHistory(t *testing.T, e *fixture.Environment) *history {
	t.Helper()
	h := &history{site: openSite(t, e, (*fixture.Environment).Start)}
	h.other.Stop()
	direct, err := url.Parse(h.databaseURL())
	must.Succeed(t, err)
	h.through, err = instance.NewCutter(direct.Host)
	must.Succeed(t, err)
	t.Cleanup(h.through.Close)
	direct.Host = h.through.Address
	h.e.Environ = append(h.e.Environ, "DATABASE_URL="+direct.String())
	h.other = h.e.Start(t)
	h.carl = e.NewWriter(t, h.one, "carl@example.com")
	_, h.carlID = fixture.ReadSession(t, h.one, h.carl)
	h.setRule(t, "others", object{"effect": "allow", "subjects": []string{"service:bot", "person:carl@example.com"}})
	h.key = h.newKey(t, "bot", "registry:read")
	return h
}

// databaseURL returns the URL that counts, which is the last one.
func (h *history) databaseURL() (address string) {
	for _, setting := range h.e.Environ {
		if value, is := strings.CutPrefix(setting, "DATABASE_URL="); is {
			address = value
		}
	}
	return address
}

// step is what is taken away and given, and what happens meanwhile.
type step struct{ authority, fault int }

// order returns each authority with each fault once, in random order; in a short run, each authority once.
func (h *history) order(t *testing.T) (all []step) {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("HISTORY_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64() //nolint:gosec // not a secret
	}
	t.Logf("HISTORY_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // likewise
	for a := range h.authorities(t) {
		faults := random.Perm(len(h.faults(t)))
		if testing.Short() {
			faults = faults[:1]
		}
		for _, f := range faults {
			all = append(all, step{a, f})
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// authority is something that allows calls, until it is taken away at the first instance.
type authority struct {
	name       string
	bearer     func() string
	also       []probe // in addition to decisions
	take, give func()
}

// probe makes a request with a token and returns the status; 0 if there is no answer.
type probe func(at *fixture.Service, bearer string) int

func (h *history) authorities(t *testing.T) []authority {
	t.Helper()
	ada := func() string { return h.ada.AccessToken }
	carl := func() string { return h.carl.AccessToken }
	reads := []probe{read, callMCP}
	return []authority{
		{"a rule", ada, nil, func() {
			h.setRule(t, "late", object{"effect": "deny", "subjects": []string{"everyone"}})
		}, func() { h.want(t, http.StatusNoContent, "DELETE", "/access-rules/late", nil) }},
		{"quarantine", ada, nil, func() { h.quarantine(t) }, func() { h.endQuarantine(t) }},
		{"a token", func() string { return h.key }, reads, func() {
			h.want(t, http.StatusNoContent, "DELETE", "/service-accounts/bot/tokens/"+h.tokenID(t), nil)
		}, func() { h.key = h.addToken(t) }},
		{"a session", ada, reads, func() { h.endSession(t) }, func() { h.ada.Login(t, h.one) }},
		{"a leaver", carl, reads, func() {
			h.want(t, http.StatusOK, "POST", "/people/"+h.carlID+"/disable", nil)
		}, func() {
			h.want(t, http.StatusOK, "POST", "/people/"+h.carlID+"/enable", nil)
			h.carl.Login(t, h.one)
		}},
	}
}

// tokenID returns the id of the token of the service account.
func (h *history) tokenID(t *testing.T) string {
	t.Helper()
	var page struct{ Tokens []struct{ ID string } }
	h.want(t, http.StatusOK, "GET", "/service-accounts/bot/tokens", nil).Decode(t, &page)
	return page.Tokens[0].ID
}

func (h *history) addToken(t *testing.T) string {
	t.Helper()
	var made struct{ Token string }
	h.want(t, http.StatusCreated, "POST", "/service-accounts/bot/tokens",
		object{"name": "t", "scopes": []string{"registry:read"}}).Decode(t, &made)
	return made.Token
}

// fault is what happens to the other instance while something changes.
type fault struct {
	name   string
	during func(change func())
}

func (h *history) faults(t *testing.T) []fault {
	t.Helper()
	return []fault{
		{"no fault", func(change func()) { change() }},
		{"cut connections", func(change func()) {
			h.through.CutAll()
			change()
			h.through.CutAll()
		}},
		{"cut off, and asked meanwhile", func(change func()) {
			h.through.Refuse()
			change()
			for range 5 {
				decide(h.other, h.ada.AccessToken) // any answer is right
			}
			h.through.Accept()
		}},
		{"cut off in silence", func(change func()) {
			h.through.Refuse()
			change()
			h.through.Accept()
		}},
		{"replaced", func(change func()) {
			next := h.e.Start(t)
			change()
			h.other.Stop()
			h.other = next
		}},
	}
}

// wantFresh checks that all kinds of requests are allowed, or refused, at the instance that has acted, and
// waits until they are at the other one, a second after it has its database again at most.
func (h *history) wantFresh(t *testing.T, what string, a authority, allowed bool) {
	t.Helper()
	probes := append([]probe{decide}, a.also...)
	for i, p := range probes {
		if status := p(h.one, a.bearer()); !isAnswer(status, allowed) {
			t.Errorf("%s, probe %d, where it was done: %d, allowed %t", what, i, status, allowed)
		}
	}
	await.Until(t, what+": the other instance has its database", func() bool {
		response, err := http.Get(h.other.API + "/ready")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	for i, p := range probes {
		fixture.AwaitFresh(t, fmt.Sprintf("%s, probe %d", what, i), func() bool { return isAnswer(p(h.other, a.bearer()), allowed) })
	}
}

// wantAll checks that each of many requests at once, at both instances, is allowed or refused.
func (h *history) wantAll(t *testing.T, what string, a authority, allowed bool) {
	t.Helper()
	var all sync.WaitGroup
	for _, at := range []*fixture.Service{h.one, h.other} {
		for i, p := range append([]probe{decide}, a.also...) {
			for range 8 {
				all.Go(func() {
					if status := p(at, a.bearer()); !isAnswer(status, allowed) {
						t.Errorf("%s, probe %d: %d, allowed %t", what, i, status, allowed)
					}
				})
			}
		}
	}
	all.Wait()
}

func isAnswer(status int, allowed bool) bool {
	if allowed {
		return status == http.StatusOK
	}
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// decide asks for a decision about a call of the tool forecast.
func decide(at *fixture.Service, bearer string) int {
	conn, err := grpc.NewClient(at.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }() // the call is over
	c := newCall(&fixture.Person{AccessToken: bearer}, "forecast")
	m, err := auth.NewAuthorizationClient(conn).Check(at.T.Context(), c.describe(at.T))
	if err != nil {
		return 0
	}
	return c.apply(m).status
}

func read(at *fixture.Service, bearer string) int {
	return send(at, "GET", "/v0.1"+fixture.ServerPath(weather, "1.0.0"), "", bearer)
}

func callMCP(at *fixture.Service, bearer string) int {
	return send(at, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, bearer)
}

// send makes a request; openapi.yaml does not describe /mcp.
func send(at *fixture.Service, method, path, body, bearer string) int {
	r, err := http.NewRequestWithContext(at.T.Context(), method, at.API+path, strings.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header = http.Header{
		"Authorization": {"Bearer " + bearer}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"},
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	_ = response.Body.Close() // only the status counts
	return response.StatusCode
}
