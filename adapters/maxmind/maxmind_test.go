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
)

// database returns the bytes of a database that holds the records.
func database(t *testing.T, records map[netip.Prefix]mmdbtype.Map) []byte {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Test", IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	for bits := 0; bits <= 128; bits++ { // the wide ones first, so that the narrow ones stay
		for p, r := range records {
			if p.Bits() != bits {
				continue
			}
			ipNet := &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
			if err := tree.Insert(ipNet, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	var b bytes.Buffer
	if _, err := tree.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func city(t *testing.T, places signalstest.Places) []byte {
	t.Helper()
	records := map[netip.Prefix]mmdbtype.Map{}
	for p, l := range places {
		record := mmdbtype.Map{}
		if l.Country != "" {
			record["country"] = mmdbtype.Map{"iso_code": mmdbtype.String(l.Country)}
		}
		if c := l.Coordinates; c != nil {
			record["location"] = mmdbtype.Map{"latitude": mmdbtype.Float64(c.Latitude), "longitude": mmdbtype.Float64(c.Longitude)}
		}
		records[p] = record
	}
	return database(t, records)
}

func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.mmdb")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, c maxmind.Config) *maxmind.Geography {
	t.Helper()
	g, err := maxmind.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestContract(t *testing.T) {
	signalstest.Geography(t, func(t *testing.T, p signalstest.Places) signals.Geography {
		return open(t, maxmind.Config{CityDB: file(t, city(t, p))})
	})
}

var (
	everyone = netip.MustParsePrefix("203.0.113.0/24")
	somebody = netip.MustParseAddr("203.0.113.7")
)

func country(code string) signalstest.Places {
	return signalstest.Places{everyone: {Country: code}}
}

func networks(t *testing.T) []byte {
	return database(t, map[netip.Prefix]mmdbtype.Map{everyone: {
		"autonomous_system_number":       mmdbtype.Uint32(64500),
		"autonomous_system_organization": mmdbtype.String(strings.Repeat("Ä", 150)),
	}})
}

func TestRecords(t *testing.T) {
	for name, c := range map[string]struct {
		record mmdbtype.Map
		want   risk.Location
	}{
		"lower case": {mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("de")}}, risk.Location{State: risk.Known, Country: "DE"}},
		"no country code": {
			mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("Germany")}}, risk.Location{State: risk.Unanswered},
		},
		"half a place": {mmdbtype.Map{"location": mmdbtype.Map{"latitude": mmdbtype.Float64(1)}}, risk.Location{State: risk.Unanswered}},
		"no place on earth": {
			mmdbtype.Map{"location": mmdbtype.Map{"latitude": mmdbtype.Float64(91), "longitude": mmdbtype.Float64(0)}},
			risk.Location{State: risk.Unanswered},
		},
		"empty": {mmdbtype.Map{}, risk.Location{State: risk.Unanswered}},
	} {
		useful := mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("FR")}}
		content := database(t, map[netip.Prefix]mmdbtype.Map{everyone: c.record, netip.MustParsePrefix("198.51.100.0/24"): useful})
		if got := open(t, maxmind.Config{CityDB: file(t, content)}).Locate(context.Background(), somebody); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestNetworks(t *testing.T) {
	asn := file(t, networks(t))
	want := risk.Network{ASN: 64500, Organisation: strings.Repeat("Ä", 100)}
	got := open(t, maxmind.Config{ASNDB: asn}).Locate(context.Background(), somebody)
	if got != (risk.Location{Network: want}) {
		t.Errorf("networks alone: %+v, want a location that is not configured in %+v", got, want)
	}
	g := open(t, maxmind.Config{ASNDB: asn, CityDB: file(t, city(t, country("DE")))})
	if got := g.Locate(context.Background(), somebody); got != (risk.Location{State: risk.Known, Country: "DE", Network: want}) {
		t.Errorf("both: %+v", got)
	}
	if got := g.Locate(context.Background(), netip.MustParseAddr("198.51.100.1")); got != (risk.Location{State: risk.Unanswered}) {
		t.Errorf("in neither: %+v", got)
	}
	if got := open(t, maxmind.Config{}).Locate(context.Background(), somebody); got != (risk.Location{}) {
		t.Errorf("nothing configured: %+v", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	whole := city(t, country("DE"))
	for name, c := range map[string]struct {
		config maxmind.Config
		says   string
	}{
		"no such file":     {maxmind.Config{CityDB: filepath.Join(t.TempDir(), "none.mmdb")}, "no such file"},
		"a folder":         {maxmind.Config{CityDB: t.TempDir()}, "is not a file"},
		"empty":            {maxmind.Config{CityDB: file(t, nil)}, "is not a MaxMind DB"},
		"a text":           {maxmind.Config{CityDB: file(t, []byte("203.0.113.0/24"))}, "is not a MaxMind DB"},
		"cut short":        {maxmind.Config{CityDB: file(t, whole[:len(whole)/2])}, "is not a MaxMind DB"},
		"no records":       {maxmind.Config{CityDB: file(t, database(t, nil))}, "another kind"},
		"networks as city": {maxmind.Config{CityDB: file(t, networks(t))}, "another kind"},
		"city as networks": {maxmind.Config{ASNDB: file(t, whole)}, "another kind"},
	} {
		_, err := maxmind.Open(c.config)
		variable := "GEOIP_CITY_DB: "
		if c.config.ASNDB != "" {
			variable = "GEOIP_ASN_DB: "
		}
		if err == nil || !strings.HasPrefix(err.Error(), variable) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that begins with %s and says %q", name, err, variable, c.says)
		}
	}
}

func TestReload(t *testing.T) {
	path := file(t, city(t, country("DE")))
	g := open(t, maxmind.Config{CityDB: path})
	replace := func(content []byte) error {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return g.Reload(path)
	}
	if err := replace([]byte("broken")); err == nil || g.Locate(context.Background(), somebody).Country != "DE" {
		t.Errorf("a broken database: %v, %+v", err, g.Locate(context.Background(), somebody))
	}
	if err := replace(city(t, country("FR"))); err != nil || g.Locate(context.Background(), somebody).Country != "FR" {
		t.Errorf("a new database: %v, %+v", err, g.Locate(context.Background(), somebody))
	}
}
