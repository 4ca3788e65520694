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
)

var _ rulesource.Source = (*Source)(nil)

// settings are those of a test: the defaults with waits that are short.
func settings(address string) Config {
	return Config{
		Server: address, RetryInterval: MinWait, Node: NodeConfig{ID: "default"},
		Backoff: BackoffConfig{Initial: MinWait, Max: MinWait, RandomFactor: 0.5, Jitter: true},
	}
}

func open(t *testing.T, c Config) *Source {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	s, cleanup, err := Open(c, logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cleanup)
	return s
}

// broken is a resource whose bytes are not those of a RateLimitConfig: the value
// of a descriptor in it is no UTF-8.
func broken() *corepb.TransportSocket {
	return &corepb.TransportSocket{Name: "broken", ConfigType: &corepb.TransportSocket_TypedConfig{
		TypedConfig: &anypb.Any{TypeUrl: "k", Value: []byte{0xff}},
	}}
}

func TestContract(t *testing.T) {
	rulesourcetest.Run(t, func(t *testing.T) rulesourcetest.Subject {
		m := newManager(t)
		return rulesourcetest.Subject{
			Source: open(t, settings(m.address)),
			Offer:  func(_ *testing.T, names ...string) { m.offer(domains(names...)...) },
			OfferUnreadable: func(_ *testing.T, names ...string) {
				m.offer(append(domains(names...), broken())...)
			},
		}
	})
}

// silent hears of configurations and says nothing.
type silent struct{}

func (silent) Loaded(int, int) {}
func (silent) Refused(error)   {}

// follow brings what the source delivers into force until the test ends.
func follow(t *testing.T, s *Source) *reload.Rules {
	t.Helper()
	rules := reload.New(ruleset.Options{}, silent{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rules.Follow(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the watch ended with %v", err)
		}
	})
	return rules
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
	m := newManager(t)
	rules := follow(t, open(t, settings(m.address)))
	first := m.await("first request", func(r *discoverypb.DiscoveryRequest) bool { return true })
	if first.GetVersionInfo() != "" || first.GetResponseNonce() != "" || len(first.GetResourceNames()) != 0 {
		t.Errorf("the first request is %v", first)
	}
	for _, names := range [][]string{{"a"}, {"a", "b"}, {}, {"c"}} {
		version := m.offer(domains(names...)...)
		m.await("acknowledgement of "+version, acknowledges(version))
		wantDomains(t, rules, names...)
	}
	if rules.Loaded() != 4 || rules.Refused() != 0 {
		t.Errorf("%d loaded, %d refused", rules.Loaded(), rules.Refused())
	}
}

// TestAcknowledgesTheSameUnderAnotherVersion wants the version to follow, and
// nothing to be loaded.
func TestAcknowledgesTheSameUnderAnotherVersion(t *testing.T) {
	m := newManager(t)
	rules := follow(t, open(t, settings(m.address)))
	for range 3 {
		version := m.offer(domains("a", "b", "c")...)
		m.await("acknowledgement of "+version, acknowledges(version))
	}
	if rules.Loaded() != 1 {
		t.Errorf("loaded %d times, want once", rules.Loaded())
	}
}

func TestRefusesWithTheLastGoodVersionAndAllFaults(t *testing.T) {
	m := newManager(t)
	rules := follow(t, open(t, settings(m.address)))
	good := m.offer(domains("good")...)
	m.await("acknowledgement", acknowledges(good))
	bad := domain("bad")
	bad.Descriptors[0].Key = ""
	bad.Descriptors[0].RateLimit.Unit = 0
	twice := domain("good")
	twice.Name = "zz"
	m.offer(bad, twice, domain("good"), broken())
	r := m.await("refusal", refuses)
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
	better := m.offer(domains("better")...)
	m.await("acknowledgement", acknowledges(better))
	wantDomains(t, rules, "better")
	if rules.Loaded() != 2 || rules.Refused() != 1 {
		t.Errorf("%d loaded, %d refused; want 2, 1", rules.Loaded(), rules.Refused())
	}
}

// TestRefusesAtALeisurelyPace holds against go-control-plane's snapshot cache,
// which sends a refused set again at once, and again.
func TestRefusesAtALeisurelyPace(t *testing.T) {
	m := newManager(t)
	rules := follow(t, open(t, settings(m.address)))
	m.offer(broken())
	m.await("refusal", refuses)
	began, before := time.Now(), m.seen()
	m.awaitAfter(before, "second refusal", refuses)
	m.awaitAfter(before+1, "third refusal", refuses)
	if passed := time.Since(began); passed < refusalGap {
		t.Errorf("two more refusals within %v", passed)
	}
	if rules.Refused() != 1 {
		t.Errorf("one set is refused %d times", rules.Refused())
	}
	good := m.offer(domains("good")...)
	m.await("acknowledgement", acknowledges(good))
	wantDomains(t, rules, "good")
}

func TestGoesBackToTheSetBeforeARefusal(t *testing.T) {
	m := newManager(t)
	rules := follow(t, open(t, settings(m.address)))
	m.await("acknowledgement", acknowledges(m.offer(domains("good")...)))
	m.offer(broken())
	m.await("refusal", refuses)
	m.await("acknowledgement", acknowledges(m.offer(domains("good")...)))
	wantDomains(t, rules, "good")
	if rules.Loaded() != 1 {
		t.Errorf("loaded %d times, want once", rules.Loaded())
	}
}

func TestServerComesLate(t *testing.T) {
	m := newManager(t)
	m.stop()
	rules := follow(t, open(t, settings(m.address)))
	version := m.offer(domains("late")...)
	m.start(m.address)
	m.await("acknowledgement", acknowledges(version))
	wantDomains(t, rules, "late")
}

func TestServerGoesAndComesBack(t *testing.T) {
	m := newManager(t)
	rules := follow(t, open(t, settings(m.address)))
	first := m.offer(domains("a")...)
	m.await("acknowledgement", acknowledges(first))
	m.stop()
	wantDomains(t, rules, "a")
	before := m.seen()
	m.start(m.address)
	m.awaitAfter(before, "request with the last version", func(r *discoverypb.DiscoveryRequest) bool {
		return r.GetVersionInfo() == first && r.GetResponseNonce() == "" && r.GetErrorDetail() == nil
	})
	second := m.offer(domains("b")...)
	m.await("acknowledgement", acknowledges(second))
	wantDomains(t, rules, "b")
	if rules.Loaded() != 2 {
		t.Errorf("loaded %d times, want 2", rules.Loaded())
	}
}

// TestMessageTooLarge wants the rules to stay, and what fits to be taken later.
func TestMessageTooLarge(t *testing.T) {
	m := newManager(t)
	c := settings(m.address)
	c.MaxMessage = 4 << 10
	rules := follow(t, open(t, c))
	m.await("acknowledgement", acknowledges(m.offer(domains("good")...)))
	before := m.seen()
	m.offer(large(1000))
	m.awaitAfter(before, "new stream", func(r *discoverypb.DiscoveryRequest) bool { return r.GetResponseNonce() == "" })
	wantDomains(t, rules, "good")
	m.await("acknowledgement", acknowledges(m.offer(domains("small")...)))
	wantDomains(t, rules, "small")
}

func TestDefaultTakesLargeMessages(t *testing.T) {
	m := newManager(t)
	rules := follow(t, open(t, settings(m.address)))
	m.await("acknowledgement", acknowledges(m.offer(large(200_000)))) // 6 MB, more than gRPC takes by itself
	if got := rules.Current().RuleCount(); got != 200_000 {
		t.Errorf("%d rules are in force", got)
	}
}

func TestHeadersAndNode(t *testing.T) {
	m := newManager(t)
	c := settings(m.address)
	c.Headers = "Authorization:Bearer a:b, x-tenant : north"
	c.Node.Metadata = "region=eu=west,team:pay"
	follow(t, open(t, c))
	r := m.await("request", func(*discoverypb.DiscoveryRequest) bool { return true })
	fields := r.GetNode().GetMetadata().GetFields()
	if r.GetNode().GetId() != "default" || fields["region"].GetStringValue() != "eu=west" || fields["team"].GetStringValue() != "pay" {
		t.Errorf("node is %v", r.GetNode())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := m.headers[0]; strings.Join(got["authorization"], ";") != "Bearer a:b" || strings.Join(got["x-tenant"], ";") != "north" {
		t.Errorf("headers are %v", got)
	}
}

// script is a management server that answers as a test says.
type script struct {
	discoverypb.UnimplementedAggregatedDiscoveryServiceServer
	stream func(grpc.BidiStreamingServer[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse]) error
}

func (s script) StreamAggregatedResources(stream grpc.BidiStreamingServer[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse]) error {
	return s.stream(stream)
}

func packed(t *testing.T, name string) *anypb.Any {
	t.Helper()
	a, err := anypb.New(domain(name))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTypeURLs sends a response of another type, which is left alone, then a
// resource of another type, which is refused, then the right type under a prefix
// of the server's own.
func TestTypeURLs(t *testing.T) {
	answers := make(chan *discoverypb.DiscoveryRequest, 3)
	address := serve(t, script{stream: func(stream grpc.BidiStreamingServer[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse]) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		foreign := packed(t, "foreign")
		foreign.TypeUrl = "type.googleapis.com/envoy.config.core.v3.Node"
		for _, r := range []*discoverypb.DiscoveryResponse{
			{VersionInfo: "other", Nonce: "1", TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"},
			{VersionInfo: "foreign", Nonce: "2", TypeUrl: typeURL, Resources: []*anypb.Any{foreign}},
			{VersionInfo: "right", Nonce: "3", TypeUrl: "types.example/" + messageName(typeURL), Resources: []*anypb.Any{packed(t, "a")}},
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
	rules := follow(t, open(t, settings(address)))
	if r := <-answers; r.GetResponseNonce() != "2" || r.GetErrorDetail() == nil || !strings.Contains(r.GetErrorDetail().GetMessage(), "resource 1: cannot be decoded") {
		t.Errorf("a resource of another type is answered with %v", r)
	}
	if r := <-answers; r.GetResponseNonce() != "3" || r.GetErrorDetail() != nil || r.GetVersionInfo() != "right" {
		t.Errorf("the right type is answered with %v", r)
	}
	wantDomains(t, rules, "a")
}

// TestServerRefusesTheStream wants it tried again.
func TestServerRefusesTheStream(t *testing.T) {
	var streams atomic.Int32
	again := make(chan struct{})
	address := serve(t, script{stream: func(grpc.BidiStreamingServer[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse]) error {
		if streams.Add(1) == 3 {
			close(again)
		}
		return status.Error(codes.PermissionDenied, "no")
	}})
	follow(t, open(t, settings(address)))
	select {
	case <-again:
	case <-time.After(30 * time.Second):
		t.Error("a stream that was refused is not tried again")
	}
}

// TestSwapsUnderLoad reads the rules in force while they are swapped: there are
// always some, and each set is whole.
func TestSwapsUnderLoad(t *testing.T) {
	m := newManager(t)
	rules := follow(t, open(t, settings(m.address)))
	m.await("acknowledgement", acknowledges(m.offer(pair(0))))
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				set := rules.Current()
				one := set.Match("pair", []ratelimit.Entry{{Key: "one"}})
				two := set.Match("pair", []ratelimit.Entry{{Key: "two"}})
				if one == nil || two == nil || one.Limit != two.Limit {
					t.Error("a set is not whole")
					return
				}
			}
		})
	}
	var last string
	for i := range 200 {
		last = m.offer(pair(uint32(i + 1)))
	}
	m.await("acknowledgement", acknowledges(last))
	stop()
	readers.Wait()
	if got := rules.Current().Match("pair", []ratelimit.Entry{{Key: "one"}}).Limit.RequestsPerUnit; got != 200 {
		t.Errorf("the limit is %d, want 200", got)
	}
}

func TestLongReasonIsCut(t *testing.T) {
	line := strings.Repeat("ä", 100) + "\n"
	cut := bounded(strings.Repeat(line, 1000))
	if len(cut) > maxReason || !strings.HasSuffix(cut, "ä\n(and more)") {
		t.Errorf("%d bytes, ends with %q", len(cut), cut[len(cut)-20:])
	}
	if one := bounded(strings.Repeat("ä", maxReason)); len(one) > maxReason || !strings.HasSuffix(one, "ä\n(and more)") {
		t.Errorf("%d bytes, ends with %q", len(one), one[len(one)-20:])
	}
	if short := bounded("x\ny"); short != "x\ny" {
		t.Errorf("a short reason becomes %q", short)
	}
}

func TestLoadHeedsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open(t, settings("127.0.0.1:1")).Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Load with a context that is done: %v", err)
	}
}
