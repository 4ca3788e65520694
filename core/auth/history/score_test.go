package history

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	chrome      = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36"
	firefox     = "Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko/20100101 Firefox/%d.0"
	homeAddress = "20.0.1.7"
)

// visit describes a sign-in. Its zero fields are those of a person at home.
type visit struct {
	address  string
	asn      uint32
	country  string
	agent    string
	screen   string
	language string
	timezone string
	class    risk.AddressClass
}

// observe returns the observation of a visit.
func (v visit) observe(t testing.TB, at time.Time) Observation {
	t.Helper()
	or := func(text, other string) string {
		if text == "" {
			return other
		}
		return text
	}
	d, err := auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent: or(v.agent, fmt.Sprintf(chrome, 140)), ScreenResolution: or(v.screen, "1920x1080"),
		Timezone: or(v.timezone, "Europe/Berlin"), Language: or(v.language, "de-DE"),
	})
	must.Succeed(t, err)
	if v.asn == 0 {
		v.asn = 64500
	}
	return Observe(netip.MustParseAddr(or(v.address, homeAddress)), d, risk.Signals{
		At: at, Reputation: risk.Reputation{State: risk.Known, Class: v.class},
		Location: risk.Location{State: risk.Known, Country: or(v.country, "DE"), Network: risk.Network{ASN: v.asn}},
	})
}

// installation holds the counts of an installation.
type installation struct {
	everyone Table
	people   map[string]Table
}

func (i installation) counts(name string) Counts {
	if i.people[name] == nil {
		i.people[name] = Table{}
	}
	return Counts{Person: i.people[name], Everyone: i.everyone}
}

// learn scores a sign-in and learns from it.
func (i installation) learn(name string, o Observation) Result {
	c := i.counts(name)
	r := Score(o, c)
	c.Apply(Learn(o, c), o.At())
	return r
}

// newInstallation returns an installation with 60 people who signed in on ten days, each from a
// home and a device of their own, and ada, who signed in on 30 days from hers. The next day is
// start.
func newInstallation(t testing.TB) installation {
	t.Helper()
	i := installation{everyone: Table{}, people: map[string]Table{}}
	for d := range 30 {
		at := start.Add(time.Duration(d-30) * day)
		for p := range 60 {
			if (d+p)%3 != 0 {
				continue
			}
			v := visit{
				address: fmt.Sprintf("20.%d.2.%d", p%4, p+1), asn: 64500 + uint32(p%4), screen: []string{
					"1920x1080", "1536x864", "2560x1440",
				}[p%3],
			}
			if d < 15 { // browsers update themselves
				v.agent = fmt.Sprintf(chrome, 139)
			}
			if p%5 == 0 {
				v.agent = fmt.Sprintf(firefox, 140, 140)
			}
			if p%20 == 0 && d > 20 {
				v.country, v.asn = "FR", 64700
			}
			i.learn(fmt.Sprint("person ", p), v.observe(t, at.Add(time.Duration(p)*time.Minute)))
		}
		i.learn("ada", visit{}.observe(t, at))
	}
	return i
}

// TestScoreOrder checks that what is more unusual for ada has a higher score.
func TestScoreOrder(t *testing.T) {
	i := newInstallation(t)
	last := -1.0
	for _, v := range []struct {
		name string
		visit
	}{
		{"at home", visit{}},
		{"a new address next to the old one", visit{address: "20.0.1.99"}},
		{"another address of the provider", visit{address: "20.0.77.9"}},
		{"and another screen", visit{address: "20.0.77.9", screen: "1366x768"}},
		{
			"and another system, language and country", visit{
				address: "20.9.1.9", asn: 64999, country: "BR", agent: fmt.Sprintf(firefox, 140, 140),
				language: "pt-BR",
			},
		},
	} {
		r := Score(v.observe(t, start), i.counts("ada"))
		if r.Silence != Heard || r.Score <= last || r.Score > MaxScore {
			t.Errorf("%s: %+v, want more than %v", v.name, r, last)
		}
		last = r.Score
	}
	if r := Score(visit{}.observe(t, start), i.counts("ada")); r.Score > UsualScore {
		t.Errorf("a usual sign-in has the score %v", r.Score)
	}
}

// TestVersions checks that a browser that updates itself is not a new browser, and that an older
// version than the last one is unusual.
func TestVersions(t *testing.T) {
	i := newInstallation(t)
	score := func(version int) float64 {
		return Score(visit{agent: fmt.Sprintf(chrome, version)}.observe(t, start), i.counts("ada")).Score
	}
	usual, newer, older := score(140), score(141), score(138)
	if newer > usual+12 || older <= newer {
		t.Errorf("the same version %v, a newer one %v, an older one %v", usual, newer, older)
	}
}

func TestSilence(t *testing.T) {
	i := newInstallation(t)
	for n := range MinPerson {
		r := i.learn("bob", visit{}.observe(t, start.Add(time.Duration(n-10)*day)))
		if r.Silence != SilentPerson || r.Score != 0 || len(r.Parts) != 0 || Combine(7, r) != 7 ||
			Ranking(7, r) != unknownScore || Ranking(50, r) != 81 || Ranking(90, r) != MaxScore {
			t.Errorf("sign-in %d: %+v", n+1, r)
		}
	}
	o := visit{}.observe(t, start)
	if r := Score(o, i.counts("bob")); r.Silence != Heard {
		t.Errorf("after %d sign-ins: %+v", MinPerson, r)
	}
	if r := Score(visit{}.observe(t, start.Add(Lifetime)), i.counts("bob")); r.Silence != SilentInstallation {
		t.Errorf("when all has ended: %+v", r)
	}
	few := i.everyone[Value{Feature: SignIns}]
	few.Sum = MinInstallation - 1
	i.everyone[Value{Feature: SignIns}] = few
	if r := Score(o, i.counts("bob")); r.Silence != SilentInstallation {
		t.Errorf("with a small installation: %+v", r)
	}
}

// drawVisit returns any sign-in.
func drawVisit(t *rapid.T, name string) visit {
	return visit{
		address: rapid.SampledFrom([]string{homeAddress, "20.0.1.99", "20.0.77.9", "2001:db8::1"}).Draw(t,
			name+" address"),
		asn:     rapid.SampledFrom([]uint32{64500, 64501, 64999}).Draw(t, name+" asn"),
		country: rapid.SampledFrom([]string{"DE", "FR", "BR"}).Draw(t, name+" country"),
		agent: rapid.SampledFrom([]string{
			fmt.Sprintf(chrome, 139), fmt.Sprintf(chrome, 140), fmt.Sprintf(firefox, 140, 140), "?",
		}).Draw(t, name+" agent"),
		screen: rapid.SampledFrom([]string{"1920x1080", "1366x768"}).Draw(t, name+" screen"),
		class:  rapid.SampledFrom([]risk.AddressClass{risk.Clean, risk.Hosting}).Draw(t, name+" class"),
	}
}

// TestNeverLowers checks that the final score is never below that of the points, and within its
// bounds.
func TestNeverLowers(t *testing.T) {
	i := newInstallation(t)
	rapid.Check(t, func(rt *rapid.T) {
		points := rapid.IntRange(0, MaxScore).Draw(rt, "points")
		r := Score(drawVisit(rt, "the").observe(t, start),
			i.counts(rapid.SampledFrom([]string{"ada", "carl"}).Draw(rt, "person")))
		if got := Combine(points, r); got < points || got > MaxScore || math.IsNaN(r.Score) || r.Score < 0 ||
			r.Score > MaxScore {
			rt.Fatalf("points %d and %+v give %d", points, r, got)
		}
	})
}

// TestMonotoneInRarity checks that a value which the person has shown more often never has more
// points.
func TestMonotoneInRarity(t *testing.T) {
	i := newInstallation(t)
	rapid.Check(t, func(rt *rapid.T) {
		o := drawVisit(rt, "the").observe(t, start)
		v := rapid.SampledFrom([]Value{
			{Country, o.country}, {Provider, o.provider}, {System, o.system}, {Browser, o.browser}, {Device, o.device},
			{Language, o.language}, {Timezone, o.timezone}, {NetworkDevice, o.network + "|" + o.device}, {
				Address, o.address,
			},
		}).Draw(rt, "value")
		c := i.counts("ada")
		before := Score(o, c)
		was, had := c.Person[v]
		defer func() {
			if delete(c.Person, v); had {
				c.Person[v] = was
			}
		}()
		at, version := start.Add(-day), o.version
		if had {
			at, version = was.Last, was.Version
		}
		for range rapid.IntRange(1, 40).Draw(rt, "more") {
			c.Person[v] = c.Person[v].Plus(Addition{Weight: Growth(start), Version: version}, at)
		}
		after := Score(o, c)
		if was, is := pointsFor(before, v), pointsFor(after, v); is > was+1e-9 {
			rt.Fatalf("more of %v: %v points, before %v", v, is, was)
		}
	})
}

// pointsFor returns the points of the part in which a value is compared.
func pointsFor(r Result, v Value) (points float64) {
	groups := [][]Feature{
		{Country, Provider, Network, NetworkDevice}, {System, Browser, Device}, {Language}, {Timezone}, {Address},
	}
	for _, g := range groups {
		for _, p := range r.Parts {
			if slices.Contains(g, v.Feature) && slices.Contains(g, p.Feature) {
				points += p.Points
			}
		}
	}
	return points
}

// TestOrderOfLearning checks that the order in which additions arrive does not change a score.
func TestOrderOfLearning(t *testing.T) {
	i := newInstallation(t)
	type batch struct {
		at        time.Time
		additions []Addition
	}
	rapid.Check(t, func(rt *rapid.T) {
		var batches []batch
		known := i.counts("ada")
		for n := range rapid.IntRange(1, 6).Draw(rt, "visits") {
			o := drawVisit(rt, fmt.Sprint(n)).observe(t, start.Add(time.Duration(n)*day))
			batches = append(batches, batch{o.At(), Learn(o, known)})
		}
		score := func(order []batch) float64 {
			c := Counts{Person: Table{}, Everyone: Table{}}
			for v, n := range known.Person {
				c.Person[v] = n
			}
			for v, n := range known.Everyone {
				c.Everyone[v] = n
			}
			for _, b := range order {
				shuffled := slices.Clone(b.additions)
				slices.Reverse(shuffled)
				c.Apply(shuffled, b.at)
			}
			return Score(visit{address: "20.0.1.99"}.observe(t, start.Add(20*day)), c).Score
		}
		a, b := score(batches), score(rapid.Permutation(batches).Draw(rt, "order"))
		if math.Abs(a-b) > 1e-6 {
			rt.Fatalf("%v and %v", a, b)
		}
	})
}

// TestParts checks that the parts explain the score: their points and the base make the sum.
func TestParts(t *testing.T) {
	i := newInstallation(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := Score(drawVisit(rt, "the").observe(t, start), i.counts("ada"))
		if got := SumParts(r.Parts); got != r.Score || SumParts(nil) != basePoints {
			rt.Fatalf("the parts make %v, the score is %v", got, r.Score)
		}
		for _, p := range r.Parts {
			if p.Person <= 0 || p.Person > 1 || p.Everyone < 0 || p.Everyone > 1 ||
				strings.Contains(p.Sentence(), "feature") {
				rt.Fatalf("%+v: %s", p, p.Sentence())
			}
		}
	})
}

func TestSentences(t *testing.T) {
	i := newInstallation(t)
	r := Score(visit{
		address: "20.1.1.9", asn: 64502, agent: fmt.Sprintf(chrome, 138), class: risk.Tor,
	}.observe(t, start), i.counts("ada"))
	var got []string
	for _, p := range r.Parts {
		got = append(got, p.Sentence())
	}
	want := []string{
		"this provider (AS64502): never before for you, 24 % of all sign-ins here: +21",
		"this device (Chrome on Windows, 1920x1080): 99 % of your sign-ins, 30 % of all sign-ins here: -4",
		"browser version: older than last time, like 0.4 % of all sign-ins here: +14",
		"this language (de-DE): 99 % of your sign-ins, 100 % of all sign-ins here: +0",
		"this time zone (Europe/Berlin): 99 % of your sign-ins, 100 % of all sign-ins here: +0",
		"an address of a hosting company, a proxy or Tor, as expected for 0.4 % of your sign-ins: +16",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the sentences are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func BenchmarkScore(b *testing.B) {
	i := newInstallation(b)
	c := i.counts("ada")
	o := visit{address: "20.0.77.9"}.observe(b, start)
	b.ReportAllocs()
	for b.Loop() {
		Score(o, c)
	}
}

// BenchmarkSignIn measures all that a sign-in computes.
func BenchmarkSignIn(b *testing.B) {
	i := newInstallation(b)
	c := i.counts("ada")
	v := visit{address: "20.0.77.9"}
	b.ReportAllocs()
	for b.Loop() {
		o := v.observe(b, start)
		_, _ = o.PersonValues(), o.EveryoneValues()
		Score(o, c)
		Learn(o, c)
	}
}
