// Package maxmind tests adapters/maxmind with database files that another program has written.
// It is not in the folder of the adapter, because the module of the service does not require the
// library that writes them.
package maxmind_test

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/tollgate-dev/tollgate/adapters/maxmind"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/signals"
	"github.com/tollgate-dev/tollgate/ports/signals/signalstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// buildDatabase returns the bytes of a database with the records.
func buildDatabase(t *testing.T, records map[netip.Prefix]mmdbtype.Map) []byte {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Test", IncludeReservedNetworks: true})
	must.Succeed(t, err)
	for bits := 0; bits <= 128; bits++ { // wide networks first, because a later one overwrites
		for p, r := range records {
			if p.Bits() != bits {
				continue
			}
			ipNet := &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
			must.Succeed(t, tree.Insert(ipNet, r))
		}
	}
	var b bytes.Buffer
	if _, err := tree.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func cityDatabase(t *testing.T, places signalstest.Places) []byte {
	t.Helper()
	records := map[netip.Prefix]mmdbtype.Map{}
	for p, l := range places {
		record := mmdbtype.Map{}
		if l.Country != "" {
			record["country"] = mmdbtype.Map{"iso_code": mmdbtype.String(l.Country)}
		}
		if c := l.Coordinates; c != nil {
			record["location"] = mmdbtype.Map{
				"latitude": mmdbtype.Float64(c.Latitude), "longitude": mmdbtype.Float64(c.Longitude),
			}
		}
		records[p] = record
	}
	return buildDatabase(t, records)
}

func writeDatabase(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.mmdb")
	must.Succeed(t, os.WriteFile(path, content, 0o600))
	return path
}

func openDatabases(t *testing.T, c maxmind.Config) *maxmind.Geography {
	t.Helper()
	g, err := maxmind.Open(c)
	must.Succeed(t, err)
	return g
}

func TestContract(t *testing.T) {
	signalstest.Geography(t, func(t *testing.T, p signalstest.Places) signals.Geography {
		return openDatabases(t, maxmind.Config{CityDB: writeDatabase(t, cityDatabase(t, p))})
	})
}

var (
	testNetwork = netip.MustParsePrefix("203.0.113.0/24")
	testAddress = netip.MustParseAddr("203.0.113.7")
)

func onePlace(code string) signalstest.Places {
	return signalstest.Places{testNetwork: {Country: code}}
}

func asnDatabase(t *testing.T) []byte {
	return buildDatabase(t, map[netip.Prefix]mmdbtype.Map{testNetwork: {
		"autonomous_system_number":       mmdbtype.Uint32(64500),
		"autonomous_system_organization": mmdbtype.String(strings.Repeat("Ä", 150)),
	}})
}

func TestLocateRecords(t *testing.T) {
	for name, c := range map[string]struct {
		record mmdbtype.Map
		want   risk.Location
	}{
		"a country code in lower case": {
			mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("de")}}, risk.Location{
				State: risk.Known, Country: "DE",
			},
		},
		"a country name instead of a code": {
			mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("Germany")}}, risk.Location{
				State: risk.Unanswered,
			},
		},
		"a latitude without a longitude": {
			mmdbtype.Map{"location": mmdbtype.Map{"latitude": mmdbtype.Float64(1)}}, risk.Location{
				State: risk.Unanswered,
			},
		},
		"a latitude out of range": {
			mmdbtype.Map{"location": mmdbtype.Map{"latitude": mmdbtype.Float64(91), "longitude": mmdbtype.Float64(0)}},
			risk.Location{State: risk.Unanswered},
		},
		"an empty record": {mmdbtype.Map{}, risk.Location{State: risk.Unanswered}},
	} {
		useful := mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("FR")}}
		content := buildDatabase(t, map[netip.Prefix]mmdbtype.Map{
			testNetwork: c.record, netip.MustParsePrefix("198.51.100.0/24"): useful,
		})
		if got := openDatabases(t, maxmind.Config{CityDB: writeDatabase(t, content)}).Locate(context.Background(),
			testAddress); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestLocateNetworks(t *testing.T) {
	asn := writeDatabase(t, asnDatabase(t))
	want := risk.Network{ASN: 64500, Organisation: strings.Repeat("Ä", 100)}
	got := openDatabases(t, maxmind.Config{ASNDB: asn}).Locate(context.Background(), testAddress)
	if got != (risk.Location{Network: want}) {
		t.Errorf("with an ASN database only: %+v, want only the network %+v", got, want)
	}
	g := openDatabases(t, maxmind.Config{ASNDB: asn, CityDB: writeDatabase(t, cityDatabase(t, onePlace("DE")))})
	if got := g.Locate(context.Background(), testAddress); got != (risk.Location{
		State: risk.Known, Country: "DE", Network: want,
	}) {
		t.Errorf("with both databases: %+v", got)
	}
	if got := g.Locate(context.Background(), netip.MustParseAddr("198.51.100.1")); got != (risk.Location{
		State: risk.Unanswered,
	}) {
		t.Errorf("an address in no database: %+v", got)
	}
	if got := openDatabases(t, maxmind.Config{}).Locate(context.Background(), testAddress); got != (risk.Location{}) {
		t.Errorf("without databases: %+v", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	whole := cityDatabase(t, onePlace("DE"))
	for name, c := range map[string]struct {
		config maxmind.Config
		text   string
	}{
		"no such file":     {maxmind.Config{CityDB: filepath.Join(t.TempDir(), "missing.mmdb")}, "no such file"},
		"a folder":         {maxmind.Config{CityDB: t.TempDir()}, "is not a file"},
		"empty":            {maxmind.Config{CityDB: writeDatabase(t, nil)}, "is not a MaxMind DB"},
		"a text":           {maxmind.Config{CityDB: writeDatabase(t, []byte("203.0.113.0/24"))}, "is not a MaxMind DB"},
		"cut short":        {maxmind.Config{CityDB: writeDatabase(t, whole[:len(whole)/2])}, "is not a MaxMind DB"},
		"no records":       {maxmind.Config{CityDB: writeDatabase(t, buildDatabase(t, nil))}, "another kind"},
		"networks as city": {maxmind.Config{CityDB: writeDatabase(t, asnDatabase(t))}, "another kind"},
		"city as networks": {maxmind.Config{ASNDB: writeDatabase(t, whole)}, "another kind"},
	} {
		_, err := maxmind.Open(c.config)
		variable := "GEOIP_CITY_DB: "
		if c.config.ASNDB != "" {
			variable = "GEOIP_ASN_DB: "
		}
		if err == nil || !strings.HasPrefix(err.Error(), variable) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want an error that begins with %s and contains %q", name, err, variable, c.text)
		}
	}
}

func TestReload(t *testing.T) {
	path := writeDatabase(t, cityDatabase(t, onePlace("DE")))
	g := openDatabases(t, maxmind.Config{CityDB: path})
	replace := func(content []byte) error {
		must.Succeed(t, os.WriteFile(path, content, 0o600))
		return g.Reload(path)
	}
	if err := replace([]byte("broken")); err == nil || g.Locate(context.Background(), testAddress).Country != "DE" {
		t.Errorf("Reload of a broken database: error %v, location %+v", err,
			g.Locate(context.Background(), testAddress))
	}
	if err := replace(cityDatabase(t, onePlace("FR"))); err != nil ||
		g.Locate(context.Background(), testAddress).Country != "FR" {
		t.Errorf("Reload of a changed database: error %v, location %+v", err,
			g.Locate(context.Background(), testAddress))
	}
}
