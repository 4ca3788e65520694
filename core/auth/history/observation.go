package history

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// Observation is a sign-in as the score sees it. Observe creates one.
type Observation struct {
	at                         time.Time
	signals                    risk.Signals
	address, prefix            string // empty if the address is not known, like the four below
	network, provider, country string
	hour                       string
	timezone, language         string
	deviceParts
}

// Observe returns the observation of a sign-in with the signals that package assess has gathered.
func Observe(address netip.Addr, d auth.DeviceInfo, s risk.Signals) Observation {
	o := Observation{at: s.At, signals: s, deviceParts: newDeviceParts(d)}
	o.country = s.Location.Country
	o.setPlaces(address.Unmap().WithZone(""), s.Location)
	o.hour = fmt.Sprintf("%02d", s.At.UTC().Hour()/4*4)
	o.timezone = o.country + "|" + nameOr(d.Timezone())
	o.language = o.country + "|" + nameOr(d.Language())
	return o
}

// setPlaces sets the values that come from the address.
func (o *Observation) setPlaces(address netip.Addr, l risk.Location) {
	if !address.IsValid() {
		return
	}
	one, prefix, wide := 32, 24, 16
	if address.Is6() {
		one, prefix, wide = 64, 48, 32
	}
	o.address, o.prefix = prefixOf(address, one), prefixOf(address, prefix)
	if l.Network.ASN == 0 {
		o.network = widePrefix + prefixOf(address, wide)
		return
	}
	o.provider = fmt.Sprintf("AS%d", l.Network.ASN)
	o.network = o.provider
	if l.Coordinates != nil {
		o.network += "|" + gridCell(*l.Coordinates)
	}
}

func prefixOf(a netip.Addr, bits int) string {
	p, err := a.Prefix(bits)
	if err != nil { // cannot happen: the bits fit the family
		return a.String()
	}
	return p.String()
}

// gridCell returns the cell of half a degree that contains a place.
func gridCell(c risk.Coordinates) string {
	return fmt.Sprintf("%.1f %.1f", math.Floor(c.Latitude*2)/2, math.Floor(c.Longitude*2)/2)
}

// At returns the time of the sign-in.
func (o *Observation) At() time.Time { return o.at }

// PersonValues returns the values whose counts of the person the score needs.
func (o *Observation) PersonValues() []Value {
	list := []Value{
		{SignIns, ""}, {Recent, ""}, {NewNetwork, ""}, {NewDevice, ""},
		{Device, o.device}, {Browser, o.browser}, {System, o.system}, {DeviceClass, o.class}, {BrowserVersion, o.browserVersion},
		{Screen, o.screen}, {Timezone, o.timezone}, {Language, o.language}, {Hour, o.hour},
	}
	if o.network != "" {
		list = append(list, Value{Address, o.address}, Value{Prefix, o.prefix}, Value{Network, o.network},
			Value{NewAddress, o.network}, Value{NetworkDevice, o.network + "|" + o.device})
	}
	return o.appendCoarse(list)
}

// EveryoneValues returns the values whose counts of everybody the score needs.
func (o *Observation) EveryoneValues() []Value {
	list := []Value{
		{SignIns, ""}, {People, ""}, {Recent, ""},
		{Device, o.device}, {Browser, o.browser}, {System, o.system}, {DeviceClass, o.class}, {BrowserVersion, o.browserVersion},
		{Screen, o.screen}, {Timezone, o.timezone}, {Language, o.language}, {Hour, o.hour},
	}
	if o.network != "" {
		list = append(list, Value{Prefix, o.prefix}, Value{Network, o.network})
	}
	return o.appendCoarse(list)
}

// appendCoarse adds the provider, the country, and all classes of pauses: which of them the sign-in
// has is known only when the counts are.
func (o *Observation) appendCoarse(list []Value) []Value {
	if o.provider != "" {
		list = append(list, Value{Provider, o.provider})
	}
	if o.country != "" {
		list = append(list, Value{Country, o.country})
	}
	for _, p := range pauses {
		list = append(list, Value{Pause, p.name})
	}
	return list
}

// pauses are the classes of the time between two sign-ins, by their upper bounds.
var pauses = [...]struct {
	below time.Duration
	name  string
}{
	{10 * time.Minute, "10m"}, {time.Hour, "1h"}, {6 * time.Hour, "6h"}, {14 * time.Hour, "14h"}, {34 * time.Hour, "1d"},
	{4 * 24 * time.Hour, "4d"}, {10 * 24 * time.Hour, "10d"}, {40 * 24 * time.Hour, "40d"}, {math.MaxInt64, "more"},
}

// pauseBefore returns the class of the time since the person's last sign-in, or the empty text if
// there is none.
func (c Counts) pauseBefore(now time.Time) string {
	last := c.Person[Value{Feature: SignIns}].Last
	if last.IsZero() {
		return ""
	}
	passed := now.Sub(last)
	for _, p := range pauses {
		if passed < p.below {
			return p.name
		}
	}
	return pauses[len(pauses)-1].name
}
