package history

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/mileusna/useragent"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// Observation is a sign-in as the score sees it. Observe creates one.
type Observation struct {
	at                 time.Time
	address, prefix    string // empty if the address is not known, like network
	network            string
	provider, country  string // empty if they are not known
	hidden             bool   // the address is that of a hosting company, a proxy or Tor
	rated              bool   // the reputation is known
	timezone, language string
	deviceParts
}

// deviceParts are the values that come from the user agent and the screen.
type deviceParts struct {
	system, browser, device string
	version                 uint32
}

// Observe returns the observation of a sign-in with the signals that package assessment has
// gathered.
func Observe(address netip.Addr, d auth.DeviceInfo, s risk.Signals) Observation {
	o := Observation{
		at: s.At, country: s.Location.Country, timezone: nameOr(d.Timezone()), language: nameOr(d.Language()),
		deviceParts: newDeviceParts(d),
		rated:       s.Reputation.State == risk.Known,
		hidden:      s.Reputation.State == risk.Known && s.Reputation.Class != risk.Clean,
	}
	o.setPlaces(address.Unmap().WithZone(""), s.Location)
	return o
}

// newDeviceParts returns the values of a device.
func newDeviceParts(d auth.DeviceInfo) deviceParts {
	a := parseAgent(d.UserAgent())
	p := deviceParts{system: a.system, browser: a.family + "|" + a.system, version: a.version}
	p.device = p.browser + "|" + nameOr(d.ScreenResolution())
	return p
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
	o.provider = "AS" + strconv.FormatUint(uint64(l.Network.ASN), 10)
	o.network = o.provider
	if l.Coordinates != nil {
		o.network += " " + gridCell(*l.Coordinates)
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
	degrees := func(d float64) string { return strconv.FormatFloat(math.Floor(d*2)/2, 'f', 1, 64) }
	return degrees(c.Latitude) + " " + degrees(c.Longitude)
}

// At returns the time of the sign-in.
func (o *Observation) At() time.Time { return o.at }

// PersonValues returns the values whose counts of the person the score needs.
func (o *Observation) PersonValues() []Value {
	list := []Value{
		{SignIns, ""}, {Recent, ""}, {Hidden, ""},
		{Device, o.device}, {Browser, o.browser}, {System, o.system}, {Timezone, o.timezone}, {Language, o.language},
	}
	for _, f := range hierarchies {
		list = append(list, Value{Novel, f.key()})
	}
	if o.network == "" {
		return list
	}
	list = append(list, Value{Address, o.address}, Value{Prefix, o.prefix}, Value{Network, o.network},
		Value{Return, o.network + far}, Value{Return, o.network + near}, Value{
			NetworkDevice, o.network + "|" + o.device,
		})
	if o.provider != "" {
		list = append(list, Value{Provider, o.provider})
	}
	if o.country != "" {
		list = append(list, Value{Country, o.country})
	}
	return list
}

// EveryoneValues returns the values whose counts of everybody the score needs. Which class of time
// a sign-in has is known only when the counts of the person are, so it lists all of them.
func (o *Observation) EveryoneValues() []Value {
	list := []Value{
		{SignIns, ""}, {Recent, ""}, {Experienced, ""}, {Hidden, ""},
		{Device, o.device}, {Browser, o.browser}, {System, o.system}, {Timezone, o.timezone}, {Language, o.language},
	}
	for _, f := range hierarchies {
		list = append(list, Value{Novel, f.key()})
	}
	for n := range Experience {
		if n == 0 {
			continue
		}
		list = append(list, Value{Beginners, stage(float64(n))})
		for _, f := range hierarchies {
			list = append(list, Value{EarlyNovel, stage(float64(n)) + "|" + f.key()})
		}
	}
	for _, g := range gaps {
		for _, change := range [...]string{sameVersion, newerVersion, olderVersion} {
			list = append(list, Value{Upgrade, upgrade{true, g, change}.text()}, Value{
				Upgrade, upgrade{false, g, change}.text(),
			})
		}
	}
	if o.network == "" {
		return list
	}
	list = append(list, Value{Network, o.network})
	for _, g := range gaps {
		for _, outcome := range [...]string{same, near, far} {
			list = append(list, Value{Return, "|" + g.name + outcome}, Value{
				Return, o.network + "|" + g.name + outcome,
			})
		}
	}
	if o.provider != "" {
		list = append(list, Value{Provider, o.provider})
	}
	if o.country != "" {
		list = append(list, Value{Country, o.country}, Value{CountryTimezone, o.country + "|" + o.timezone})
	}
	return list
}

// agent is the browser and the system that a user agent names. Parts that it does not name are
// "unknown".
type agent struct {
	family  string // of the browser
	version uint32 // of the browser: 100 times the major version plus the minor one; 0 if it is not known
	system  string
}

func parseAgent(userAgent string) agent {
	parsed := useragent.Parse(userAgent)
	return agent{family: nameOr(parsed.Name), system: nameOr(parsed.OS), version: parseVersion(parsed.Version)}
}

// nameOr returns a name that is part of a value, or "unknown" for an empty one.
func nameOr(name string) string {
	if name == "" {
		return "unknown"
	}
	return shorten(name)
}

// maxVersion is the greatest part of a version. It keeps what a client sends within a uint32.
const maxVersion = 1 << 20

// parseVersion returns the first two parts of a version as a number that can be compared, or 0 if
// the first is not a number. A minor version above 99 counts as 99.
func parseVersion(version string) uint32 {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.ParseUint(major, 10, 32)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(minor, 10, 32)
	if err != nil {
		n = 0
	}
	return uint32(min(m, maxVersion)*100 + min(n, 99))
}
