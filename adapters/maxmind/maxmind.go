// Package maxmind tells where addresses are from MaxMind DB files. It answers ports/signals.Geography; when files have changed,
// somebody else tells it.
package maxmind

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// Geography answers ports/signals.Geography. It is safe for concurrent use.
type Geography struct {
	config Config
	city   atomic.Pointer[maxminddb.Reader] // nil where none is configured
	asn    atomic.Pointer[maxminddb.Reader] // likewise
}

// Open reads the databases into memory. One that cannot be read, or holds something else, is an error that begins with the name
// of its setting.
func Open(c Config) (*Geography, error) {
	g := &Geography{config: c}
	for _, file := range c.Files() {
		if err := g.Reload(file); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Reload reads a database of the settings again. When it fails, what was read before stays in force.
func (g *Geography) Reload(file string) error {
	if file == g.config.CityDB {
		if err := load(&g.city, file, tellsPlace); err != nil {
			return fmt.Errorf("GEOIP_CITY_DB: %w", err)
		}
	}
	if file == g.config.ASNDB {
		if err := load(&g.asn, file, tellsNetwork); err != nil {
			return fmt.Errorf("GEOIP_ASN_DB: %w", err)
		}
	}
	return nil
}

// Locate answers ports/signals.Geography.
func (g *Geography) Locate(_ context.Context, address netip.Addr) risk.Location {
	address = address.Unmap().WithZone("")
	var l risk.Location
	if db := g.city.Load(); db != nil {
		l = locate(db, address)
	}
	if db := g.asn.Load(); db != nil {
		l.Network = networkOf(db, address)
	}
	return l
}

// place is what is read of a City or Country database.
type place struct {
	Country struct {
		Code string `maxminddb:"iso_code"`
	} `maxminddb:"country"`
	Location struct {
		Latitude  *float64 `maxminddb:"latitude"`
		Longitude *float64 `maxminddb:"longitude"`
	} `maxminddb:"location"`
}

func locate(db *maxminddb.Reader, address netip.Addr) risk.Location {
	var p place
	if !address.IsValid() || db.Lookup(address).Decode(&p) != nil { // what cannot be read is not known
		return risk.Location{State: risk.Unanswered}
	}
	l := risk.Location{State: risk.Known, Country: p.country(), Coordinates: p.coordinates()}
	if l.Country == "" && l.Coordinates == nil {
		l.State = risk.Unanswered
	}
	return l
}

// country returns the code, or nothing where what stands there is none.
func (p *place) country() string {
	code := strings.ToUpper(p.Country.Code)
	if !risk.IsCountry(code) {
		return ""
	}
	return code
}

func (p *place) coordinates() *risk.Coordinates {
	north, east := p.Location.Latitude, p.Location.Longitude
	if north == nil || east == nil || !(*north >= -90 && *north <= 90 && *east >= -180 && *east <= 180) {
		return nil
	}
	return &risk.Coordinates{Latitude: *north, Longitude: *east}
}

// network is what is read of an ASN database.
type network struct {
	Number       uint32 `maxminddb:"autonomous_system_number"`
	Organisation string `maxminddb:"autonomous_system_organization"`
}

// maxOrganisation bounds the name of an organisation, in bytes.
const maxOrganisation = 200

func networkOf(db *maxminddb.Reader, address netip.Addr) risk.Network {
	var n network
	if !address.IsValid() || db.Lookup(address).Decode(&n) != nil { // what cannot be read is not known
		return risk.Network{}
	}
	name := n.Organisation[:min(len(n.Organisation), maxOrganisation)]
	return risk.Network{ASN: n.Number, Organisation: strings.ToValidUTF8(name, "")}
}

// tellsPlace reports whether a record that decodes says where it is.
func tellsPlace(r maxminddb.Result) (bool, error) {
	var p place
	if err := r.Decode(&p); err != nil {
		return false, errRecord(r, err)
	}
	return p.country() != "" || p.coordinates() != nil, nil
}

// tellsNetwork reports whether a record that decodes says whose it is.
func tellsNetwork(r maxminddb.Result) (bool, error) {
	var n network
	if err := r.Decode(&n); err != nil {
		return false, errRecord(r, err)
	}
	return n.Number != 0, nil
}

func errRecord(r maxminddb.Result, cause error) error {
	return fmt.Errorf("the record of %s cannot be read: %w", r.Prefix(), cause)
}

var errOther = errors.New("its first records do not contain the required data: is it another kind of database?")
