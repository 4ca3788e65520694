// Package maxmind locates IP addresses by MaxMind DB files. It implements ports/signals.Geography.
// A database is read again when its file changes.
package maxmind

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/google/wire"
	"github.com/oschwald/maxminddb-golang/v2"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// Geography implements ports/signals.Geography. It is safe for concurrent use.
type Geography struct {
	config Config
	city   atomic.Pointer[maxminddb.Reader] // nil if not configured
	asn    atomic.Pointer[maxminddb.Reader] // nil if not configured
}

// Open reads the databases into memory. If a database cannot be read or is of another kind, the
// error begins with the name of its setting.
func Open(c Config) (*Geography, error) {
	g := &Geography{config: c}
	for _, file := range c.Files() {
		if err := g.Reload(file); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Set provides a Geography that follows its files.
var Set = wire.NewSet(OpenWatched, wire.Bind(new(signals.Geography), new(*Geography)))

// OpenWatched is Open, and reads a database again when its file changes, until the cleanup is called.
func OpenWatched(c Config, log *logrus.Entry) (*Geography, func(), error) {
	return files.OpenWatched(log, c.Files(), func() (*Geography, error) { return Open(c) })
}

// Reload reads a database again. If it fails, the previous content stays in force.
func (g *Geography) Reload(file string) error {
	if file == g.config.CityDB {
		if err := loadDatabase(&g.city, file, hasPlace); err != nil {
			return fmt.Errorf("GEOIP_CITY_DB: %w", err)
		}
	}
	if file == g.config.ASNDB {
		if err := loadDatabase(&g.asn, file, hasNetwork); err != nil {
			return fmt.Errorf("GEOIP_ASN_DB: %w", err)
		}
	}
	return nil
}

// Locate implements ports/signals.Geography.
func (g *Geography) Locate(_ context.Context, address netip.Addr) risk.Location {
	address = address.Unmap().WithZone("")
	var l risk.Location
	if db := g.city.Load(); db != nil {
		l = lookupPlace(db, address)
	}
	if db := g.asn.Load(); db != nil {
		l.Network = lookupNetwork(db, address)
	}
	return l
}

// placeRecord has the fields that are read from a City or Country database.
type placeRecord struct {
	Country struct {
		Code string `maxminddb:"iso_code"`
	} `maxminddb:"country"`
	Location struct {
		Latitude  *float64 `maxminddb:"latitude"`
		Longitude *float64 `maxminddb:"longitude"`
	} `maxminddb:"location"`
}

func lookupPlace(db *maxminddb.Reader, address netip.Addr) risk.Location {
	var p placeRecord
	if !address.IsValid() || db.Lookup(address).Decode(&p) != nil { // a record that cannot be decoded is no answer
		return risk.Location{State: risk.Unanswered}
	}
	l := risk.Location{State: risk.Known, Country: p.countryCode(), Coordinates: p.validCoordinates()}
	if l.Country == "" && l.Coordinates == nil {
		l.State = risk.Unanswered
	}
	return l
}

// countryCode returns the code of the country, or an empty string if the record has no valid code.
func (p *placeRecord) countryCode() string {
	code := strings.ToUpper(p.Country.Code)
	if !risk.IsCountry(code) {
		return ""
	}
	return code
}

func (p *placeRecord) validCoordinates() *risk.Coordinates {
	north, east := p.Location.Latitude, p.Location.Longitude
	if north == nil || east == nil || !(*north >= -90 && *north <= 90 && *east >= -180 && *east <= 180) {
		return nil
	}
	return &risk.Coordinates{Latitude: *north, Longitude: *east}
}

// networkRecord has the fields that are read from an ASN database.
type networkRecord struct {
	Number       uint32 `maxminddb:"autonomous_system_number"`
	Organisation string `maxminddb:"autonomous_system_organization"`
}

// maxOrganisation is the maximum length of an organisation's name in bytes.
const maxOrganisation = 200

func lookupNetwork(db *maxminddb.Reader, address netip.Addr) risk.Network {
	var n networkRecord
	if !address.IsValid() || db.Lookup(address).Decode(&n) != nil { // a record that cannot be decoded is no answer
		return risk.Network{}
	}
	name := n.Organisation[:min(len(n.Organisation), maxOrganisation)]
	return risk.Network{ASN: n.Number, Organisation: strings.ToValidUTF8(name, "")}
}

// hasPlace reports whether a record has a country or coordinates. It returns an error if the record
// cannot be decoded.
func hasPlace(r maxminddb.Result) (bool, error) {
	var p placeRecord
	if err := r.Decode(&p); err != nil {
		return false, unreadableRecord(r, err)
	}
	return p.countryCode() != "" || p.validCoordinates() != nil, nil
}

// hasNetwork reports whether a record has the number of a network. It returns an error if the
// record cannot be decoded.
func hasNetwork(r maxminddb.Result) (bool, error) {
	var n networkRecord
	if err := r.Decode(&n); err != nil {
		return false, unreadableRecord(r, err)
	}
	return n.Number != 0, nil
}

func unreadableRecord(r maxminddb.Result, cause error) error {
	return fmt.Errorf("the record of %s cannot be read: %w", r.Prefix(), cause)
}

var errWrongKind = errors.New("its first records do not contain the required data: is it another kind of database?")

// Config names the databases (contract A-30). Each database is optional.
type Config struct {
	CityDB string `env:"GEOIP_CITY_DB" desc:"MaxMind DB file with country and coordinates of addresses, for example GeoLite2-City.mmdb; reloaded on change"`
	ASNDB  string `env:"GEOIP_ASN_DB" desc:"MaxMind DB file with the networks of addresses, for example GeoLite2-ASN.mmdb; used only in the audit log"`
}

// Files returns the paths of the databases.
func (c Config) Files() []string {
	var files []string
	for _, path := range []string{c.CityDB, c.ASNDB} {
		if path != "" {
			files = append(files, path)
		}
	}
	return files
}

const (
	// maxFile is the maximum size of a database in bytes. The largest commercial ones have some
	// hundred MiB.
	maxFile = 1 << 30
	// sampleSize is the number of records that checkRecords reads.
	sampleSize = 10_000
)

// loadDatabase reads a database, checks it and stores it in into. hasData reports whether a record
// has the data that the database is used for. The database is kept in memory and not mapped,
// because overwriting a mapped file would crash the process.
func loadDatabase(
	into *atomic.Pointer[maxminddb.Reader], path string, hasData func(maxminddb.Result) (bool, error),
) error {
	content, err := files.Read(path, maxFile)
	if err != nil {
		return err
	}
	db, err := maxminddb.OpenBytes(content)
	if err != nil {
		return fmt.Errorf("%s is not a MaxMind DB: %w", path, err)
	}
	if err := checkRecords(db, hasData); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	into.Store(db)
	return nil
}

// checkRecords reads the first records. All of them must be readable, and at least one must have
// data.
func checkRecords(db *maxminddb.Reader, hasData func(maxminddb.Result) (bool, error)) error {
	n, useful := 0, false
	for r := range db.Networks() {
		found, err := hasData(r)
		if err != nil {
			return err
		}
		useful = useful || found
		if n++; n == sampleSize {
			break
		}
	}
	if !useful {
		return errWrongKind
	}
	return nil
}
