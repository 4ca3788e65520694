package keysources

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/domainkeys/domainkeystest"
	"github.com/tollgate-dev/tollgate/test/dnsserver"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	// patience is longer than anything that ends by itself.
	patience = time.Minute
	// impatience ends what would not end by itself.
	impatience = 100 * time.Millisecond
)

func TestTXTFulfilsTheContract(t *testing.T) {
	t.Parallel()
	domainkeystest.Run(t, func(t *testing.T) domainkeystest.Subject {
		dns := dnsserver.Start(t)
		return domainkeystest.Subject{
			Source:  txtWithin(Config{Resolver: dns.Address}, patience, patience),
			Publish: func(_ *testing.T, d publisher.Domain, texts ...string) { dns.SetTXT(d.String(), texts...) },
			Fail:    func(_ *testing.T, d publisher.Domain) { dns.SetFailure(d.String(), dnsserver.ServerFailure) },
			Hold:    func(_ *testing.T, d publisher.Domain) func() { return dns.Hold(d.String()) },
			Questions: func(_ *testing.T, d publisher.Domain) int {
				return dns.Questions(d.String(), dnsmessage.TypeTXT)
			},
		}
	})
}

func parseDomain(t *testing.T, name string) publisher.Domain {
	t.Helper()
	d, err := publisher.ParseDomain(name)
	must.Succeed(t, err)
	return d
}

func TestTXTJoinsStringsAndReadsLongAnswersOverTCP(t *testing.T) {
	t.Parallel()
	dns := dnsserver.Start(t)
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("%d ", i)+strings.Repeat("k", 600)) // too much for UDP together
	}
	dns.SetTXT("long.example", want...)
	dns.SetTXT("cut.example", want[0])
	dns.SetFailure("cut.example", dnsserver.Truncation)
	source := txtWithin(Config{Resolver: dns.Address}, patience, patience)
	for name, texts := range map[string][]string{"long.example": want, "cut.example": want[:1]} {
		got, err := source.Texts(t.Context(), parseDomain(t, name))
		if slices.Sort(got); err != nil || !slices.Equal(got, texts) {
			t.Errorf("Texts(%s) = %q, %v, want %q", name, got, err, texts)
		}
	}
}

func TestTXTReadsAtMost64TextsOf4096Bytes(t *testing.T) {
	t.Parallel()
	dns := dnsserver.Start(t)
	texts := []string{strings.Repeat("a", maxText+1)}
	for range 100 {
		texts = append(texts, "b")
	}
	dns.SetTXT("many.example", texts...)
	dns.SetTXT("largest.example", strings.Repeat("a", maxText))
	source := txtWithin(Config{Resolver: dns.Address}, patience, patience)
	got, err := source.Texts(t.Context(), parseDomain(t, "many.example"))
	if err != nil || len(got) != 64 || slices.Contains(got, texts[0]) {
		t.Errorf("%d texts, %v, want 64 without the long one", len(got), err)
	}
	if got, err := source.Texts(t.Context(), parseDomain(t, "largest.example")); err != nil || len(got) != 1 {
		t.Errorf("%d texts, %v, want the text of 4096 bytes", len(got), err)
	}
}

func TestTXTDistinguishesNoRecordsFromFailures(t *testing.T) {
	t.Parallel()
	dns := dnsserver.Start(t)
	source := txtWithin(Config{Resolver: dns.Address}, patience, patience)
	dns.SetTXT("none.example")
	for _, name := range []string{"unknown.example", "none.example"} {
		if got, err := source.Texts(t.Context(), parseDomain(t, name)); err != nil || len(got) != 0 {
			t.Errorf("Texts(%s) = %q, %v, want none", name, got, err)
		}
	}
	impatient := txtWithin(Config{Resolver: dns.Address}, impatience, patience)
	for name, c := range map[string]struct {
		source  *TXT
		failure dnsserver.Failure
		want    string
	}{
		"servfail": {source, dnsserver.ServerFailure, "the DNS lookup failed"},
		"refused":  {source, dnsserver.Refused, "the DNS lookup failed"},
		"broken":   {source, dnsserver.BrokenRecord, "the DNS lookup failed"},
		"tcp":      {source, dnsserver.FailingTCP, "the DNS lookup failed"},
		"silent":   {impatient, dnsserver.Silence, "the DNS server did not answer in time"},
		"garbage":  {impatient, dnsserver.Garbage, "the DNS server did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dns.SetTXT(name+".example", "v=MCPv1; k=ed25519; p=AAAA")
			dns.SetFailure(name+".example", c.failure)
			got, err := c.source.Texts(t.Context(), parseDomain(t, name+".example"))
			want := "the TXT records of " + name + ".example cannot be read now: " + c.want + "; try again later"
			if f, ok := fault.As(err); len(got) != 0 || !ok || f.Kind != fault.Unavailable || f.Message != want {
				t.Errorf("Texts = %q, %v, want a fault of kind Unavailable: %s", got, err, want)
			}
		})
	}
}

func TestTXTIsUnavailableWithoutServer(t *testing.T) {
	t.Parallel()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	must.Succeed(t, err)
	_ = conn.Close() // its port refuses packets now
	source := txtWithin(Config{Resolver: conn.LocalAddr().String()}, patience, patience)
	if got, err := source.Texts(t.Context(), parseDomain(t, "keys.example")); len(got) != 0 ||
		!fault.Is(err, fault.Unavailable) {
		t.Errorf("Texts = %q, %v, want a fault of kind Unavailable", got, err)
	}
}

func TestTXTRepeatsALostQuestion(t *testing.T) {
	t.Parallel()
	dns := dnsserver.Start(t)
	dns.SetTXT("keys.example", "a key")
	dns.SetFailure("keys.example", dnsserver.LostOnce)
	source := txtWithin(Config{Resolver: dns.Address}, txtDeadline, time.Second)
	if got, err := source.Texts(t.Context(), parseDomain(t, "keys.example")); err != nil || len(got) != 1 {
		t.Errorf("Texts = %q, %v, want the text", got, err)
	}
	if n := dns.Questions("keys.example", dnsmessage.TypeTXT); n != 2 {
		t.Errorf("%d questions, want 2", n)
	}
}
