package rolling

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// readName is a server that exists from the start, the first in the list.
const readName = "a.example/first"

// registryReads reads the registry.
type registryReads struct{ client *balancedClient }

func (r registryReads) step() error {
	var latest fixture.ServerRecord
	if err := r.client.decodeCall(&latest, "GET", "/v0.1"+fixture.ServerPath(readName, "latest"), nil); err != nil {
		return err
	}
	if latest.ID() != readName+"@1.0.0" {
		return fmt.Errorf("latest is %s", latest.ID())
	}
	for _, query := range []string{"limit=1", "search=" + readName} {
		var found fixture.ServerPage
		if err := r.client.decodeCall(&found, "GET", "/v0.1/servers?"+query, nil); err != nil {
			return err
		}
		if len(found.Servers) != 1 || found.Servers[0].ID() != latest.ID() {
			return fmt.Errorf("%s finds %v", query, found.Names())
		}
	}
	return nil
}

// methodsReads reads the methods listing.
type methodsReads struct{ client *balancedClient }

func (m methodsReads) step() error {
	var listing struct{ Data []struct{} }
	if err := m.client.decodeCall(&listing, "GET", "/v2/api/methods.json", nil); err != nil {
		return err
	}
	if len(listing.Data) != 35 {
		return fmt.Errorf("%d methods are listed", len(listing.Data))
	}
	return nil
}

// loginCycle signs a person in and refreshes the tokens. It uses each token on the next instance.
type loginCycle struct {
	client *balancedClient
	person *fixture.Person
	times  int
}

func (s *loginCycle) step() error {
	s.times++
	login := map[string]any{"email": s.person.Email, "password": fixture.Password, "deviceInfo": s.person.Device}
	if err := s.storeTokens("/auth/login", login); err != nil {
		return err
	}
	return s.storeTokens("/auth/refresh", map[string]string{"refreshToken": s.person.RefreshToken})
}

// storeTokens requests tokens and uses the access token.
func (s *loginCycle) storeTokens(path string, body any) error {
	var got struct{ AccessToken, RefreshToken string }
	if err := s.client.decodeCall(&got, "POST", path, body); err != nil {
		return err
	}
	s.person.AccessToken, s.person.RefreshToken = got.AccessToken, got.RefreshToken
	var session struct{ ID string }
	return s.client.decodeCall(&session, "GET", "/auth/session", nil, s.person.Bearer()...)
}

// checkLogins checks that the last session is valid, and that the audit log has every login.
func (s *loginCycle) checkLogins(t *testing.T, on *fixture.Service) {
	t.Helper()
	apiclient.Call(t, "GET", on.API+"/auth/session", nil, s.person.Bearer()...).WantStatus(t, http.StatusOK)
	if told := s.person.ReadAuditLog(t, on, "eventType=LOGIN_ATTEMPT&limit=1").Total; told != s.times {
		t.Errorf("the audit log has %d logins of %s, want %d", told, s.person.Email, s.times)
	}
}

// publications publishes one version of a server after the other, and reads each from the other
// instances.
type publications struct {
	client   *balancedClient
	writer   *fixture.Person
	name     string
	versions []string // accepted
}

func (p *publications) step() error {
	version := fmt.Sprintf("1.%d.0", len(p.versions))
	var written, read fixture.ServerRecord
	if err := p.client.decodeCall(&written, "POST", "/v0.1/publish", fixture.NewServerDocument(p.name, version),
		p.writer.Bearer()...); err != nil {
		return err
	}
	p.versions = append(p.versions, version)
	want := p.name + "@" + version
	again := time.NewTicker(pace)
	defer again.Stop()
	for end := time.Now().Add(await.Timeout); read.ID() != want && time.Now().Before(end); <-again.C {
		if err := p.client.decodeCall(&read, "GET", "/v0.1"+fixture.ServerPath(p.name, "latest"), nil); err != nil {
			return err
		}
	}
	if written.ID() != want || read.ID() != want {
		return fmt.Errorf("%s was published, %s is latest, want %s", written.ID(), read.ID(), want)
	}
	return nil
}

// checkVersions checks that the registry has the accepted versions, and no others.
func (p *publications) checkVersions(t *testing.T, on *fixture.Service) {
	t.Helper()
	found, err := fixture.ParseServerPage(apiclient.Call(t, "GET",
		on.API+"/v0.1"+fixture.ServerPath(p.name)+"/versions", nil))
	must.Succeed(t, err)
	got := map[string]bool{}
	for _, r := range found.Servers {
		got[fmt.Sprint(r.Server["version"])] = true
	}
	want := slices.Sorted(slices.Values(p.versions))
	if len(found.Servers) != len(want) || !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
		t.Errorf("%d versions of %s are there, %d were accepted", len(found.Servers), p.name, len(want))
	}
}

const (
	manyLimit = 1_000_000_000
	fewLimit  = 100
)

// rollingRules has limits per year, so that no window ends during a test.
var rollingRules = fmt.Sprintf(`domain: rolling
descriptors:
  - {key: many, rate_limit: {unit: year, requests_per_unit: %d}}
  - {key: few, rate_limit: {unit: year, requests_per_unit: %d}}
`, manyLimit, fewLimit)

// newLimitsRequest returns a request that counts under both limits.
func newLimitsRequest() *ratelimit.RateLimitRequest {
	both := fixture.NewRateLimitRequest("rolling", "many", "")
	both.Descriptors = append(both.Descriptors, fixture.NewRateLimitRequest("rolling", "few", "").Descriptors...)
	return both
}

// limitCounts holds the number of calls within two limits. The calls soon reach the second limit.
type limitCounts struct {
	mu        sync.Mutex
	many, few int // calls within the limits
}

// countResponse counts a response under both limits.
func (l *limitCounts) countResponse(many, few string) error {
	if many != "OK" || few != "OK" && few != "OVER_LIMIT" {
		return fmt.Errorf("the answer is %q and %q", many, few)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.many++
	if few == "OK" {
		l.few++
	}
	return nil
}

// checkCounts checks that every call was counted once, and that the limit was not exceeded.
func (l *limitCounts) checkCounts(t *testing.T, on *fixture.Service) {
	t.Helper()
	if l.few != min(fewLimit, l.many) {
		t.Errorf("%d of %d calls were let through a limit of %d", l.few, l.many, fewLimit)
	}
	look := fixture.NewRateLimitRequest("rolling", "many", "")
	look.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
	got := fixture.WantOverallCode(t, on.NewRateLimitClient(t), look, ratelimit.RateLimitResponse_OK)
	if counted := manyLimit - int(got.Statuses[0].LimitRemaining); counted != l.many {
		t.Errorf("%d calls were counted, %d were answered", counted, l.many)
	}
}

// limitByJSON makes calls over HTTP.
type limitByJSON struct {
	client *balancedClient
	limits *limitCounts
}

func (l limitByJSON) step() error {
	a, err := l.client.send("POST", "/json", newLimitsRequest())
	if err != nil {
		return err
	}
	var got struct{ Statuses []struct{ Code string } }
	if err := json.Unmarshal(a.Body, &got); err != nil || len(got.Statuses) != 2 {
		return fmt.Errorf("/json is answered %d %s", a.Status, a.Body)
	}
	return l.limits.countResponse(got.Statuses[0].Code, got.Statuses[1].Code)
}

// limitByGRPC makes calls over gRPC.
type limitByGRPC struct {
	client ratelimit.RateLimitServiceClient
	limits *limitCounts
}

func (l limitByGRPC) step() error {
	got, err := l.client.ShouldRateLimit(context.Background(), newLimitsRequest())
	if err != nil {
		return fmt.Errorf("ShouldRateLimit: %w", err)
	}
	return l.limits.countResponse(got.GetStatuses()[0].GetCode().String(), got.GetStatuses()[1].GetCode().String())
}
