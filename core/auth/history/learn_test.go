package history

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
)

// TestRepeatingAttacker checks that somebody who signs in again and again with a stolen password,
// below FULL_TRUST and on a device without its token, does not become familiar.
func TestRepeatingAttacker(t *testing.T) {
	i := newInstallation(t)
	rapid.Check(t, func(rt *rapid.T) {
		attack, c := drawVisit(rt, "attack"), i.counts("ada")
		first := Score(attack.observe(t, start), c)
		for n := range rapid.IntRange(1, 50).Draw(rt, "attempts") {
			level := rapid.SampledFrom([]auth.TrustLevel{auth.HighRisk, auth.Unverified, auth.LimitedTrust}).
				Draw(rt, "level")
			device := risk.Device{Confirmed: level == auth.LimitedTrust, Trusted: rapid.Bool().Draw(rt, "trusted")}
			o := attack.observe(t, start.Add(time.Duration(n)*time.Minute))
			if trust.MayLearn(level, device, trust.BindingPreferred) {
				c.Apply(Learn(o, c), o.At())
			}
		}
		if last := Score(attack.observe(t, start), c); last.Score != first.Score {
			rt.Fatalf("the score was %v and is %v", first.Score, last.Score)
		}
	})
}

// TestLearntIsFamiliar checks that a sign-in which was learnt is not more surprising
// the next time.
func TestLearntIsFamiliar(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		i := newInstallation(t)
		v := drawVisit(rt, "the")
		before := i.learn("ada", v.observe(t, start))
		if after := Score(v.observe(t, start.Add(day)), i.counts("ada")); after.Score > before.Score+.5 {
			rt.Fatalf("%+v, before it was learnt %+v", after, before)
		}
	})
}

// TestCountedAFewTimesADay checks that a person who signs in all the time does not count more than
// four times a day.
func TestCountedAFewTimesADay(t *testing.T) {
	i := installation{Table{}, map[string]Table{}}
	for m := range 24 * 12 {
		i.learn("ada", visit{}.observe(t, start.Add(time.Duration(5*m)*time.Minute)))
	}
	c := i.counts("ada")
	for _, v := range []Value{{SignIns, ""}, {Network, "AS64500"}, {Address, "20.0.1.7/32"}, {System, "Windows"}} {
		if n := c.Person[v].Weight(start.Add(day)); v.Feature != SignIns && n > 4.01 ||
			v.Feature == SignIns && c.Person[v].Sum != 4 {
			t.Errorf("%v counts %v times", v, n)
		}
	}
	person, everyone := c.Learnt(start.Add(day))
	if person != 4 || everyone != 4 || c.Everyone[Value{Feature: People}].Sum != 1 {
		t.Errorf("%v, %v, %+v", person, everyone, c.Everyone[Value{Feature: People}])
	}
}

// TestAddressesOfMobileNetworks checks that a network in which a person has another address each
// time does not fill the store.
func TestAddressesOfMobileNetworks(t *testing.T) {
	i := installation{Table{}, map[string]Table{}}
	for n := range 100 {
		i.learn("ada", visit{address: fmt.Sprintf("20.0.%d.%d", n, n)}.observe(t, start.Add(time.Duration(n)*day)))
	}
	addresses := 0
	for v := range i.people["ada"] {
		if v.Feature == Address {
			addresses++
		}
	}
	if addresses < minReturns || addresses > 2*minReturns {
		t.Errorf("%d addresses are stored", addresses)
	}
}

// TestValues checks that all counts that Score and Learn read are listed, by leaving the others
// out.
func TestValues(t *testing.T) {
	i := newInstallation(t)
	rapid.Check(t, func(rt *rapid.T) {
		o := drawVisit(rt, "the").observe(t, start)
		c := i.counts("ada")
		some := Counts{Person: pick(c.Person, o.PersonValues()), Everyone: pick(c.Everyone, o.EveryoneValues())}
		if all, few := Score(o, c), Score(o, some); all.Score != few.Score {
			rt.Fatalf("%+v with all counts, %+v with the listed ones", all, few)
		}
		if all, few := fmt.Sprint(Learn(o, c)), fmt.Sprint(Learn(o, some)); all != few {
			rt.Fatalf("with all counts %s is learnt, with the listed ones %s", all, few)
		}
	})
}

func pick(t Table, values []Value) Table {
	some := Table{}
	for _, v := range values {
		if c, ok := t[v]; ok {
			some[v] = c
		}
	}
	return some
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string][3]string{
		"203.0.113.7":          {"203.0.113.7/32", "203.0.113.0/24", "prefix 203.0.0.0/16"},
		"::ffff:203.0.113.7":   {"203.0.113.7/32", "203.0.113.0/24", "prefix 203.0.0.0/16"},
		"2001:db8:1:2:3:4:5:6": {"2001:db8:1:2::/64", "2001:db8:1::/48", "prefix 2001:db8::/32"},
		"fe80::1%eth0":         {"fe80::/64", "fe80::/48", "prefix fe80::/32"},
	} {
		o := Observe(netip.MustParseAddr(address), auth.DeviceInfo{}, risk.Signals{At: start})
		if got := [3]string{o.address, o.prefix, o.network}; got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	o := Observe(netip.Addr{}, auth.DeviceInfo{}, risk.Signals{
		At: start, Location: risk.Location{Network: risk.Network{ASN: 64500}},
	})
	if o.address != "" || o.network != "" {
		t.Errorf("no address: %+v", o)
	}
	place := risk.Location{
		Network: risk.Network{ASN: 64500}, Coordinates: &risk.Coordinates{Latitude: -33.87, Longitude: 151.21},
	}
	if o := Observe(netip.MustParseAddr("203.0.113.7"), auth.DeviceInfo{}, risk.Signals{
		Location: place,
	}); o.network != "AS64500 -34.0 151.0" {
		t.Errorf("a network at a place is %q", o.network)
	}
}

// FuzzDevice checks that what a client sends gives values of a bounded length.
func FuzzDevice(f *testing.F) {
	f.Add(fmt.Sprintf(chrome, 140), "1920x1080")
	f.Add("Mozilla/5.0 (iPhone; CPU iPhone OS 17_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.3 Mobile/15E148 Safari/604.1", "390x844")
	f.Add("Chrome/99999999999999999999.1|||", "|")
	f.Fuzz(func(t *testing.T, agent, screen string) {
		d, err := auth.NewDeviceInfo(auth.DeviceFields{
			UserAgent: agent, ScreenResolution: screen, Timezone: screen, Language: agent,
		})
		if err != nil {
			return
		}
		o := Observe(netip.MustParseAddr("203.0.113.7"), d, risk.Signals{At: start})
		for _, v := range append(o.PersonValues(), o.EveryoneValues()...) {
			if len(v.Text) > maxText {
				t.Fatalf("%v has %d bytes", v, len(v.Text))
			}
			_ = Part{Feature: v.Feature, Value: readable(v)}.Sentence()
		}
	})
}
