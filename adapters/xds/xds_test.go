package xds

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	configpb "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/ports/rulesource"
	"github.com/tollgate-dev/tollgate/ports/rulesource/rulesourcetest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

var _ rulesource.Source = (*Source)(nil)

// testConfig returns a configuration with short waits.
func testConfig(address string) Config {
	return Config{
		Server: address, RetryInterval: MinWait, Node: NodeConfig{ID: "default"},
		Backoff: BackoffConfig{Initial: MinWait, Max: MinWait, RandomFactor: 0.5, Jitter: true},
	}
}

func openSource(t *testing.T, c Config) *Source {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	s, cleanup, err := Open(c, logrus.NewEntry(log))
	must.Succeed(t, err)
	t.Cleanup(cleanup)
	return s
}

// undecodable is a resource whose bytes are not a RateLimitConfig: a string in it is not UTF-8.
func undecodable() *corepb.TransportSocket {
	return &corepb.TransportSocket{Name: "broken", ConfigType: &corepb.TransportSocket_TypedConfig{
		TypedConfig: &anypb.Any{TypeUrl: "k", Value: []byte{0xff}},
	}}
}

func TestContract(t *testing.T) {
	rulesourcetest.Run(t, func(t *testing.T) rulesourcetest.Subject {
		m := newManager(t)
		return rulesourcetest.Subject{
			Source: openSource(t, testConfig(m.address)),
			Offer:  func(_ *testing.T, names ...string) { m.offerSet(domainResources(names...)...) },
			OfferUnreadable: func(_ *testing.T, names ...string) {
				m.offerSet(append(domainResources(names...), undecodable())...)
			},
		}
	})
}

// discardReporter ignores all reports.
type discardReporter struct{}

func (discardReporter) Report(any) {}

// followSource brings the configurations of the source into force until the test ends.
func followSource(t *testing.T, s *Source) *reload.Rules {
	t.Helper()
	rules := reload.New(ruleset.Options{}, discardReporter{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rules.Follow(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Follow returned %v", err)
		}
	})
	return rules
}

// startFollowing returns a manager, and the rules of a source that follows it.
func startFollowing(t *testing.T) (*manager, *reload.Rules) {
	t.Helper()
	m := newManager(t)
	return m, followSource(t, openSource(t, testConfig(m.address)))
}

func wantDomains(t *testing.T, rules *reload.Rules, names ...string) {
	t.Helper()
	set := rules.Current()
	if set == nil {
		t.Fatal("no configuration is in force")
	}
	if set.DomainCount() != len(names) {
		t.Errorf("domains %q are in force, want %q", set.Domains(), names)
	}
	for _, name := range names {
		if !set.HasDomain(ratelimit.Domain(name)) {
			t.Errorf("domains %q are in force, want %q", set.Domains(), names)
		}
	}
}

func TestAcknowledgesWhatIsInForce(t *testing.T) {
	m, rules := startFollowing(t)
	first := m.waitForRequest("first request", func(r *discoverypb.DiscoveryRequest) bool { return true })
	if first.GetVersionInfo() != "" || first.GetResponseNonce() != "" || len(first.GetResourceNames()) != 0 {
		t.Errorf("the first request is %v", first)
	}
	for _, names := range [][]string{{"a"}, {"a", "b"}, {}, {"c"}} {
		m.offerAccepted(domainResources(names...)...)
		wantDomains(t, rules, names...)
	}
	if rules.Loaded() != 4 || rules.Refused() != 0 {
		t.Errorf("%d loaded, %d refused", rules.Loaded(), rules.Refused())
	}
}

// TestAcknowledgesTheSameUnderAnotherVersion checks that an equal set with another version changes
// the version and loads nothing.
func TestAcknowledgesTheSameUnderAnotherVersion(t *testing.T) {
	m, rules := startFollowing(t)
	for range 3 {
		m.offerAccepted(domainResources("a", "b", "c")...)
	}
	if rules.Loaded() != 1 {
		t.Errorf("loaded %d times, want once", rules.Loaded())
	}
}

func TestRefusesWithTheLastGoodVersionAndAllFaults(t *testing.T) {
	t.Parallel()
	m, rules := startFollowing(t)
	good := m.offerAccepted(domainResources("good")...)
	bad := domainResource("bad")
	bad.Descriptors[0].Key = ""
	bad.Descriptors[0].RateLimit.Unit = 0
	twice := domainResource("good")
	twice.Name = "zz"
	m.offerSet(bad, twice, domainResource("good"), undecodable())
	r := m.waitForRequest("refusal", isRefusal)
	if r.GetVersionInfo() != good || r.GetResponseNonce() == "" {
		t.Errorf("the refusal has version %q and nonce %q", r.GetVersionInfo(), r.GetResponseNonce())
	}
	reason := r.GetErrorDetail().GetMessage()
	for _, want := range []string{
		"bad: descriptors[0]: key must not be empty", "bad: descriptors[0]: unit is missing",
		`zz: domain "good" is in good already`, ": cannot be decoded: ",
	} {
		if !strings.Contains(reason, want) {
			t.Errorf("the reason %q lacks %q", reason, want)
		}
	}
	wantDomains(t, rules, "good")
	m.offerAccepted(domainResources("better")...)
	wantDomains(t, rules, "better")
	if rules.Loaded() != 2 || rules.Refused() != 1 {
		t.Errorf("%d loaded, %d refused; want 2, 1", rules.Loaded(), rules.Refused())
	}
}

// TestUnitsQuotaAndMetadata requires that the rules in force have what the management server gave
// to the descriptors, and that a unit which does not exist refuses the set.
func TestUnitsQuotaAndMetadata(t *testing.T) {
	t.Parallel()
	m, rules := startFollowing(t)
	all := &configpb.RateLimitConfig{Name: "all", Domain: "all"}
	for _, name := range ratelimit.UnitNames() {
		all.Descriptors = append(all.Descriptors, &configpb.RateLimitDescriptor{
			Key: name, QuotaMode: name == "week", Metadata: newStruct(t, map[string]any{"of": name}),
			RateLimit: &configpb.RateLimitPolicy{
				Unit: configpb.RateLimitUnit(configpb.RateLimitUnit_value[strings.ToUpper(name)]), RequestsPerUnit: 3,
			},
		})
	}
	good := m.offerAccepted(all)
	for _, name := range ratelimit.UnitNames() {
		rule := rules.Current().Match("all", []ratelimit.Entry{{Key: name, Value: "x"}})
		unit, _ := ratelimit.ParseUnit(name)
		if rule.Limit != (ratelimit.Limit{RequestsPerUnit: 3, Unit: unit}) || rule.Quota != (name == "week") ||
			rule.Metadata.Text("of") != name {
			t.Errorf("the rule of %s is %+v", name, rule)
		}
	}
	bad := domainResource("bad")
	bad.Descriptors[0].RateLimit.Unit = 8
	m.offerSet(bad)
	r := m.waitForRequest("refusal", isRefusal)
	const want = `bad: descriptors[0]: unit "8" is not one of second, minute, hour, day, week, month, year`
	if got := r.GetErrorDetail().GetMessage(); got != want || r.GetVersionInfo() != good {
		t.Errorf("the refusal of %s is %q, want %q", r.GetVersionInfo(), got, want)
	}
}

// TestRefusesAtALimitedRate uses the snapshot cache of go-control-plane, which sends a refused set
// again at once.
func TestRefusesAtALimitedRate(t *testing.T) {
	t.Parallel()
	m, rules := startFollowing(t)
	began := time.Now()
	m.offerSet(undecodable())
	m.waitForRequest("refusal", isRefusal)
	m.waitForRequestAfter(m.requestCount(), "second refusal", isRefusal)
	if passed := time.Since(began); passed < refusalGap {
		t.Errorf("two refusals within %v", passed)
	}
	if rules.Refused() != 1 {
		t.Errorf("one set was refused %d times", rules.Refused())
	}
	m.offerAccepted(domainResources("good")...)
	wantDomains(t, rules, "good")
}

func TestGoesBackToTheSetBeforeARefusal(t *testing.T) {
	t.Parallel()
	m, rules := startFollowing(t)
	m.offerAccepted(domainResources("good")...)
	m.offerSet(undecodable())
	m.waitForRequest("refusal", isRefusal)
	m.offerAccepted(domainResources("good")...)
	wantDomains(t, rules, "good")
	if rules.Loaded() != 1 {
		t.Errorf("loaded %d times, want once", rules.Loaded())
	}
}

func TestServerStartsLate(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	m.stop()
	rules := followSource(t, openSource(t, testConfig(m.address)))
	version := m.offerSet(domainResources("late")...)
	m.start(m.address)
	m.waitForRequest("acknowledgement", isAcknowledgement(version))
	wantDomains(t, rules, "late")
}

func TestServerRestarts(t *testing.T) {
	t.Parallel()
	m, rules := startFollowing(t)
	first := m.offerAccepted(domainResources("a")...)
	m.stop()
	wantDomains(t, rules, "a")
	before := m.requestCount()
	m.start(m.address)
	m.waitForRequestAfter(before, "request with the last version", func(r *discoverypb.DiscoveryRequest) bool {
		return r.GetVersionInfo() == first && r.GetResponseNonce() == "" && r.GetErrorDetail() == nil
	})
	m.offerAccepted(domainResources("b")...)
	wantDomains(t, rules, "b")
	if rules.Loaded() != 2 {
		t.Errorf("loaded %d times, want 2", rules.Loaded())
	}
}

// TestMessageTooLarge checks that the rules stay in force, and that a smaller set is accepted
// later.
func TestMessageTooLarge(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	c := testConfig(m.address)
	c.MaxMessage = 4 << 10
	rules := followSource(t, openSource(t, c))
	m.offerAccepted(domainResources("good")...)
	before := m.requestCount()
	m.offerSet(largeResource(1000))
	m.waitForRequestAfter(before, "new stream", func(r *discoverypb.DiscoveryRequest) bool {
		return r.GetResponseNonce() == ""
	})
	wantDomains(t, rules, "good")
	m.offerAccepted(domainResources("small")...)
	wantDomains(t, rules, "small")
}

func TestDefaultTakesLargeMessages(t *testing.T) {
	m, rules := startFollowing(t)
	// 6 MB, which exceeds the default limit of gRPC
	m.offerAccepted(largeResource(25_000))
	if got := rules.Current().RuleCount(); got != 25_000 {
		t.Errorf("%d rules are in force", got)
	}
}

func TestSendsHeadersAndNode(t *testing.T) {
	m := newManager(t)
	c := testConfig(m.address)
	c.Headers = "Authorization:Bearer a:b, x-tenant : north"
	c.Node.Metadata = "region=eu=west,team:pay"
	followSource(t, openSource(t, c))
	r := m.waitForRequest("request", func(*discoverypb.DiscoveryRequest) bool { return true })
	fields := r.GetNode().GetMetadata().GetFields()
	if r.GetNode().GetId() != "default" || fields["region"].GetStringValue() != "eu=west" ||
		fields["team"].GetStringValue() != "pay" {
		t.Errorf("node is %v", r.GetNode())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := m.headers[0]; strings.Join(got["authorization"], ";") != "Bearer a:b" ||
		strings.Join(got["x-tenant"], ";") != "north" {
		t.Errorf("headers are %v", got)
	}
}

// scriptedServer is a management server whose stream is a function of the test.
type scriptedServer struct {
	discoverypb.UnimplementedAggregatedDiscoveryServiceServer
	stream func(grpc.BidiStreamingServer[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse]) error
}

func (s scriptedServer) StreamAggregatedResources(
	stream grpc.BidiStreamingServer[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse],
) error {
	return s.stream(stream)
}

func packDomain(t *testing.T, name string) *anypb.Any {
	t.Helper()
	a, err := anypb.New(domainResource(name))
	must.Succeed(t, err)
	return a
}

// TestTypeURLs sends three responses: one with another type, which is ignored; one with a resource
// of another type, which is refused; and one of the right type with another prefix, which is
// accepted.
func TestTypeURLs(t *testing.T) {
	answers := make(chan *discoverypb.DiscoveryRequest, 3)
	address := startServer(t,
		scriptedServer{stream: func(stream grpc.BidiStreamingServer[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse]) error {
			if _, err := stream.Recv(); err != nil {
				return err
			}
			foreign := packDomain(t, "foreign")
			foreign.TypeUrl = "type.googleapis.com/envoy.config.core.v3.Node"
			for _, r := range []*discoverypb.DiscoveryResponse{
				{VersionInfo: "other", Nonce: "1", TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"},
				{VersionInfo: "foreign", Nonce: "2", TypeUrl: typeURL, Resources: []*anypb.Any{foreign}},
				{
					VersionInfo: "right", Nonce: "3", TypeUrl: "types.example/" + messageName(typeURL),
					Resources: []*anypb.Any{packDomain(t, "a")},
				},
			} {
				if err := stream.Send(r); err != nil {
					return err
				}
				if r.Nonce == "1" {
					continue
				}
				answer, err := stream.Recv()
				if err != nil {
					return err
				}
				answers <- answer
			}
			<-stream.Context().Done()
			return nil
		}})
	rules := followSource(t, openSource(t, testConfig(address)))
	if r := <-answers; r.GetResponseNonce() != "2" || r.GetErrorDetail() == nil ||
		!strings.Contains(r.GetErrorDetail().GetMessage(), "resource 1: cannot be decoded") {
		t.Errorf("a resource of another type is answered with %v", r)
	}
	if r := <-answers; r.GetResponseNonce() != "3" || r.GetErrorDetail() != nil || r.GetVersionInfo() != "right" {
		t.Errorf("the right type is answered with %v", r)
	}
	wantDomains(t, rules, "a")
}

// TestServerRefusesTheStream checks that the source opens the stream again.
func TestServerRefusesTheStream(t *testing.T) {
	var streams atomic.Int32
	again := make(chan struct{})
	address := startServer(t,
		scriptedServer{stream: func(grpc.BidiStreamingServer[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse]) error {
			if streams.Add(1) == 3 {
				close(again)
			}
			return status.Error(codes.PermissionDenied, "no")
		}})
	followSource(t, openSource(t, testConfig(address)))
	await.Closed(t, "the source opens the stream again", again)
}

// TestSwapsUnderLoad reads the rules in force while they are replaced. There must always be rules,
// and each set must be complete.
func TestSwapsUnderLoad(t *testing.T) {
	m, rules := startFollowing(t)
	m.offerAccepted(pairResource(0))
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				set := rules.Current()
				one := set.Match("pair", []ratelimit.Entry{{Key: "one"}})
				two := set.Match("pair", []ratelimit.Entry{{Key: "two"}})
				if one == nil || two == nil || one.Limit != two.Limit {
					t.Error("a set is not complete")
					return
				}
			}
		})
	}
	var last string
	for i := range 200 {
		last = m.offerSet(pairResource(uint32(i + 1)))
	}
	m.waitForRequest("acknowledgement", isAcknowledgement(last))
	stop()
	readers.Wait()
	if got := rules.Current().Match("pair", []ratelimit.Entry{{Key: "one"}}).Limit.RequestsPerUnit; got != 200 {
		t.Errorf("the limit is %d, want 200", got)
	}
}

func TestLongReasonIsCut(t *testing.T) {
	line := strings.Repeat("ä", 100) + "\n"
	cut := shortReason(strings.Repeat(line, 1000))
	if len(cut) > maxReason || !strings.HasSuffix(cut, "ä\n(and more)") {
		t.Errorf("%d bytes, ends with %q", len(cut), cut[len(cut)-20:])
	}
	if one := shortReason(strings.Repeat("ä", maxReason)); len(one) > maxReason ||
		!strings.HasSuffix(one, "ä\n(and more)") {
		t.Errorf("%d bytes, ends with %q", len(one), one[len(one)-20:])
	}
	if short := shortReason("x\ny"); short != "x\ny" {
		t.Errorf("a short reason becomes %q", short)
	}
}

func TestLoadOfACancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := openSource(t, testConfig("127.0.0.1:1")).Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Load with a cancelled context returned %v", err)
	}
}
