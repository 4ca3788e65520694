package authentication

import (
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// The addresses of the risk tests. All are reserved for documentation (RFC 5737), except the
// private one.
const (
	inBerlin   = "203.0.113.1"
	inFrance   = "203.0.113.65" // no coordinates
	inHighRisk = "203.0.113.129"
	inTokyo    = "198.51.100.1"
	nowhere    = "192.0.2.1"
	private    = "10.1.2.3"
)

// writeCityDatabase writes a city database with the test addresses.
func writeCityDatabase(t *testing.T, path string) {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-City", IncludeReservedNetworks: true})
	must.Succeed(t, err)
	at := func(country string, place ...float64) mmdbtype.Map {
		record := mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(country)}}
		if len(place) == 2 {
			record["location"] = mmdbtype.Map{
				"latitude": mmdbtype.Float64(place[0]), "longitude": mmdbtype.Float64(place[1]),
			}
		}
		return record
	}
	for network, record := range map[string]mmdbtype.Map{
		"203.0.113.0/26": at("DE", 52.52, 13.405), "203.0.113.64/26": at("FR"), "203.0.113.128/26": at("XX"),
		"198.51.100.0/24": at("JP", 35.68, 139.69),
	} {
		_, ipNet, err := net.ParseCIDR(network)
		must.Succeed(t, err)
		must.Succeed(t, tree.Insert(ipNet, record))
	}
	f, err := os.Create(path)
	must.Succeed(t, err)
	if _, err := tree.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, f.Close())
}

// loginFrom signs the person in from an address and returns the level and the token.
func loginFrom(t *testing.T, p *fixture.Person, s *fixture.Service, address string) (level, token string) {
	t.Helper()
	var got struct{ AccessToken, TrustLevel string }
	apiclient.Call(t, "POST", s.API+"/auth/login",
		map[string]any{"email": p.Email, "password": fixture.Password, "deviceInfo": p.Device},
		"X-Device-Token", p.DeviceToken, "X-Forwarded-For", address).WantStatus(t, http.StatusOK).Decode(t, &got)
	return got.TrustLevel, got.AccessToken
}

// evaluation is a risk evaluation in the audit log.
type evaluation struct {
	RiskScore  float64
	TrustLevel string
	Factors    map[string]float64
	Reasons    map[string]string
	Unanswered []string
}

// readLastEvaluation reads the last risk evaluation in the audit log with the person's token.
func readLastEvaluation(t *testing.T, p *fixture.Person, s *fixture.Service) evaluation {
	t.Helper()
	var page struct {
		Logs []struct{ Details evaluation }
	}
	apiclient.Call(t, "GET", s.API+"/audit-logs?eventType=RISK_EVALUATION&limit=1", nil, p.Bearer()...).WantStatus(t,
		http.StatusOK).Decode(t, &page)
	if len(page.Logs) != 1 {
		t.Fatalf("%d risk evaluations, want one", len(page.Logs))
	}
	return page.Logs[0].Details
}

// trustDevice marks the person's only device as trusted.
func trustDevice(t *testing.T, p *fixture.Person, s *fixture.Service) {
	t.Helper()
	var list struct{ Devices []struct{ ID string } }
	apiclient.Call(t, "GET", s.API+"/devices", nil, p.Bearer()...).WantStatus(t, http.StatusOK).Decode(t, &list)
	apiclient.Call(t, "PUT", s.API+"/devices/"+list.Devices[0].ID+"/trust", map[string]string{"trustStatus": "TRUSTED"},
		p.Bearer()...).
		WantStatus(t, http.StatusOK)
}

// TestRiskOfPlaces signs in from many places and checks the trust levels and the risk factors in
// the audit log.
func TestRiskOfPlaces(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		city, listed, tor := filepath.Join(e.Dir, "city.mmdb"), filepath.Join(e.Dir, "listed.txt"),
			filepath.Join(e.Dir, "tor.txt")
		writeCityDatabase(t, city)
		fixture.WriteFile(t, listed, "# bad\n203.0.113.2\n")
		fixture.WriteFile(t, tor, "203.0.113.3/32 # exit\n")
		s := e.Start(t, "TRUSTED_PROXIES=127.0.0.0/8,::1/128", "GEOIP_CITY_DB="+city,
			"IP_REPUTATION_LISTS="+listed+",tor="+tor, "HIGH_RISK_COUNTRIES=XX", fixture.RiskPolicy("fast"))
		ada := e.NewPerson(t, "ada@example.com")

		var level string
		level, ada.AccessToken = loginFrom(t, ada, s, inHighRisk)
		want := map[string]float64{
			"deviceFamiliarity": 30, "geographicAnomaly": 30, "ipReputation": 0, "loginVelocity": 0,
			"failedAttempts": 0,
		}
		if got := readLastEvaluation(t, ada, s); level != "UNVERIFIED" || !maps.Equal(got.Factors, want) ||
			got.RiskScore != 60 {
			t.Errorf("first login, high-risk country: %s, %+v", level, got)
		}
		level, ada.AccessToken = loginFrom(t, ada, s, inBerlin)
		if got := readLastEvaluation(t, ada, s); level != "UNVERIFIED" || got.Factors["geographicAnomaly"] != 0 {
			t.Errorf("another login, nothing learnt: %s, %+v", level, got)
		}
		ada.StepUp(t, e, s)
		trustDevice(t, ada, s)

		for _, step := range []struct {
			address, level    string
			place, reputation float64
			unanswered        string
		}{
			{address: inBerlin, level: "FULL_TRUST"},
			{address: "::ffff:" + inBerlin, level: "FULL_TRUST"},
			{address: nowhere, level: "FULL_TRUST", place: 10, unanswered: "geographicAnomaly"},
			{address: private, level: "FULL_TRUST", place: 10, unanswered: "geographicAnomaly"},
			{address: "203.0.113.3", level: "FULL_TRUST", reputation: 10},
			{address: "203.0.113.2", level: "LIMITED_TRUST", reputation: 40},
			{address: inFrance, level: "FULL_TRUST", place: 20},
			{address: inFrance, level: "FULL_TRUST"}, // known by now
			{address: inHighRisk, level: "LIMITED_TRUST", place: 30},
			{address: inTokyo, level: "LIMITED_TRUST", place: 40},
			{address: "203.0.113.2", level: "HIGH_RISK", place: 40, reputation: 40},
		} {
			level, _ := loginFrom(t, ada, s, step.address)
			got := readLastEvaluation(t, ada, s)
			if level != step.level || got.TrustLevel != level || got.Factors["geographicAnomaly"] != step.place ||
				got.Factors["ipReputation"] != step.reputation || got.RiskScore != step.place+step.reputation ||
				len(got.Reasons) != 5 ||
				slices.Contains(got.Unanswered, "geographicAnomaly") != (step.unanswered != "") {
				t.Errorf("%s: %s, %+v; want %+v", step.address, level, got, step)
			}
		}

		// The service applies a replaced list. It does not apply an invalid one, and logs the
		// number of the invalid line.
		fresh := listed + ".new"
		fixture.WriteFile(t, fresh, "203.0.113.4\n")
		must.Succeed(t, os.Rename(fresh, listed))
		s.AwaitLog("a changed file was read")
		loginFrom(t, ada, s, "203.0.113.4")
		if got := readLastEvaluation(t, ada, s); got.Factors["ipReputation"] != 40 {
			t.Errorf("an address of the new list: %+v", got)
		}
		fixture.WriteFile(t, listed, "203.0.113.5\nnonsense\n")
		s.AwaitLog(listed + ":2: ")
		loginFrom(t, ada, s, "203.0.113.4")
		if got := readLastEvaluation(t, ada, s); got.Factors["ipReputation"] != 40 {
			t.Errorf("an address of the list before the wrong one: %+v", got)
		}
	})
}
