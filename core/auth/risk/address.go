package risk

import (
	"math"
	"slices"
	"strings"
	"time"
)

// SourceState is the state of the answer of a source of signals.
type SourceState uint8

// The states of an answer. A source that is not configured counts nothing; one that is configured
// and does not answer counts a little (contract A-30).
const (
	NotConfigured SourceState = iota
	Unanswered                // configured, but failed or without data
	Known
)

// Location is where an address is.
type Location struct {
	State       SourceState
	Country     string       // ISO 3166 alpha-2, upper case; empty when only the coordinates are known
	Coordinates *Coordinates // nil if they are not known; always nil for a private address
	Network     Network      // for the audit log only; may be set although State is not Known
}

// countrySilent reports whether a source is configured and did not return the country.
func (l Location) countrySilent() bool {
	return l.State == Unanswered || l.State == Known && l.Country == ""
}

// Network is the operator of the network of an address. The zero value means that it is not known.
type Network struct {
	ASN          uint32
	Organisation string
}

// Coordinates is a place on the earth in degrees.
type Coordinates struct{ Latitude, Longitude float64 }

// earthRadiusKM is the mean radius of the earth.
const earthRadiusKM = 6371.0088

// DistanceKM returns the great-circle distance to another place (haversine formula).
func (c Coordinates) DistanceKM(d Coordinates) float64 {
	const radians = math.Pi / 180
	north := math.Sin((d.Latitude - c.Latitude) * radians / 2)
	east := math.Sin((d.Longitude - c.Longitude) * radians / 2)
	h := north*north + math.Cos(c.Latitude*radians)*math.Cos(d.Latitude*radians)*east*east
	return 2 * earthRadiusKM * math.Asin(math.Sqrt(min(h, 1)))
}

// History is what was learnt from earlier sessions at FULL_TRUST or LIMITED_TRUST, or after
// step-up.
type History struct {
	Countries []string    // the usual countries; empty without a history
	Last      *LastSignIn // the last sign-in with coordinates, or nil
}

// LastSignIn is a sign-in at a place.
type LastSignIn struct {
	At          time.Time
	Coordinates Coordinates
}

// SignInPlace is the time and location of the sign-in of a session that is part of the history.
type SignInPlace struct {
	At       time.Time
	Location Location
}

// BuildHistory returns the history of stays, which must be sorted newest first.
func BuildHistory(stays []SignInPlace) History {
	var h History
	for i := range stays {
		l := &stays[i].Location
		if l.State != Known {
			continue
		}
		if l.Country != "" && !slices.Contains(h.Countries, l.Country) {
			h.Countries = append(h.Countries, l.Country)
		}
		if h.Last == nil && l.Coordinates != nil {
			h.Last = &LastSignIn{At: stays[i].At, Coordinates: *l.Coordinates}
		}
	}
	return h
}

// AddressClass is the reputation of an address.
type AddressClass uint8

// The classes of addresses, from good to bad.
const (
	Clean AddressClass = iota
	Hosting
	Proxy
	Tor
	Listed
)

// ParseAddressClass returns the class of a name: clean, hosting, proxy, tor or listed; false for
// another one.
func ParseAddressClass(name string) (AddressClass, bool) {
	for class, known := range [...]string{"clean", "hosting", "proxy", "tor", "listed"} {
		if name == known {
			return AddressClass(class), true
		}
	}
	return Clean, false
}

// IsCountry reports whether code has the form of a country code: two capital letters (ISO 3166-1
// alpha-2).
func IsCountry(code string) bool {
	return len(code) == 2 && strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Reputation is what the lists say of an address.
type Reputation struct {
	State SourceState
	Class AddressClass
}
