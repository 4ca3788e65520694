package acceptance

import (
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// The addresses of the risk tests. All are for documentation (RFC 5737) but the private one.
const (
	inBerlin   = "203.0.113.1"
	inFrance   = "203.0.113.65" // no coordinates
	inHighRisk = "203.0.113.129"
	inTokyo    = "198.51.100.1"
	nowhere    = "192.0.2.1"
	private    = "10.1.2.3"
)

// cityDatabase writes a database that knows the addresses.
func cityDatabase(t *testing.T, path string) {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-City", IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	at := func(country string, place ...float64) mmdbtype.Map {
		record := mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(country)}}
		if len(place) == 2 {
			record["location"] = mmdbtype.Map{"latitude": mmdbtype.Float64(place[0]), "longitude": mmdbtype.Float64(place[1])}
		}
		return record
	}
	for network, record := range map[string]mmdbtype.Map{
		"203.0.113.0/26": at("DE", 52.52, 13.405), "203.0.113.64/26": at("FR"), "203.0.113.128/26": at("XX"),
		"198.51.100.0/24": at("JP", 35.68, 139.69),
	} {
		_, ipNet, err := net.ParseCIDR(network)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Insert(ipNet, record); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// loginFrom signs the person in from an address and returns the level and the token.
func (p *person) loginFrom(t *testing.T, s *service, address string) (level, token string) {
	t.Helper()
	var got struct{ AccessToken, TrustLevel string }
	call(t, "POST", s.api+"/auth/login",
		map[string]any{"email": p.email, "password": password, "deviceInfo": p.device},
		"X-Device-Token", p.deviceToken, "X-Forwarded-For", address).want(t, http.StatusOK).decode(t, &got)
	return got.TrustLevel, got.AccessToken
}

// evaluation is what a risk evaluation tells in the audit log.
type evaluation struct {
	RiskScore  float64
	TrustLevel string
	Factors    map[string]float64
	Reasons    map[string]string
	Unanswered []string
}

// lastEvaluation reads the audit log with the person's present token.
func (p *person) lastEvaluation(t *testing.T, s *service) evaluation {
	t.Helper()
	var page struct {
		Logs []struct{ Details evaluation }
	}
	call(t, "GET", s.api+"/audit-logs?eventType=RISK_EVALUATION&limit=1", nil, p.bearer()...).want(t, http.StatusOK).decode(t, &page)
	if len(page.Logs) != 1 {
		t.Fatalf("%d risk evaluations, want one", len(page.Logs))
	}
	return page.Logs[0].Details
}

// trustDevice marks the person's only device as trusted.
func (p *person) trustDevice(t *testing.T, s *service) {
	t.Helper()
	var list struct{ Devices []struct{ ID string } }
	call(t, "GET", s.api+"/devices", nil, p.bearer()...).want(t, http.StatusOK).decode(t, &list)
	call(t, "PUT", s.api+"/devices/"+list.Devices[0].ID+"/trust", map[string]string{"trustStatus": "TRUSTED"}, p.bearer()...).
		want(t, http.StatusOK)
}

// TestRiskOfPlaces signs in from all over the world and looks at the levels, and at the factors in the audit log.
func TestRiskOfPlaces(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		city, listed, tor := filepath.Join(e.dir, "city.mmdb"), filepath.Join(e.dir, "listed.txt"), filepath.Join(e.dir, "tor.txt")
		cityDatabase(t, city)
		write(t, listed, "# bad\n203.0.113.2\n")
		write(t, tor, "203.0.113.3/32 # exit\n")
		s := e.start(t, "TRUSTED_PROXIES=127.0.0.0/8,::1/128", "GEOIP_CITY_DB="+city,
			"IP_REPUTATION_LISTS="+listed+",tor="+tor, "HIGH_RISK_COUNTRIES=XX", "RISK_VELOCITY_SESSIONS=1000")
		ada := e.newPerson(t, "ada@example.com")

		var level string
		level, ada.accessToken = ada.loginFrom(t, s, inHighRisk)
		want := map[string]float64{"deviceFamiliarity": 30, "geographicAnomaly": 30, "ipReputation": 0, "loginVelocity": 0, "failedAttempts": 0}
		if got := ada.lastEvaluation(t, s); level != "UNVERIFIED" || !maps.Equal(got.Factors, want) || got.RiskScore != 60 {
			t.Errorf("first login, high-risk country: %s, %+v", level, got)
		}
		level, ada.accessToken = ada.loginFrom(t, s, inBerlin)
		if got := ada.lastEvaluation(t, s); level != "UNVERIFIED" || got.Factors["geographicAnomaly"] != 0 {
			t.Errorf("another login, nothing learnt: %s, %+v", level, got)
		}
		ada.stepUp(t, e, s)
		ada.trustDevice(t, s)

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
			{address: inFrance, level: "FULL_TRUST"}, // learnt by now
			{address: inHighRisk, level: "LIMITED_TRUST", place: 30},
			{address: inTokyo, level: "LIMITED_TRUST", place: 40},
			{address: "203.0.113.2", level: "HIGH_RISK", place: 40, reputation: 40},
		} {
			level, _ := ada.loginFrom(t, s, step.address)
			got := ada.lastEvaluation(t, s)
			if level != step.level || got.TrustLevel != level || got.Factors["geographicAnomaly"] != step.place ||
				got.Factors["ipReputation"] != step.reputation || got.RiskScore != step.place+step.reputation ||
				len(got.Reasons) != 5 || slices.Contains(got.Unanswered, "geographicAnomaly") != (step.unanswered != "") {
				t.Errorf("%s: %s, %+v; want %+v", step.address, level, got, step)
			}
		}

		// A list that is replaced counts; a wrong one does not, and is told with its line.
		fresh := listed + ".new"
		write(t, fresh, "203.0.113.4\n")
		if err := os.Rename(fresh, listed); err != nil {
			t.Fatal(err)
		}
		s.awaitLog("a changed file was read")
		ada.loginFrom(t, s, "203.0.113.4")
		if got := ada.lastEvaluation(t, s); got.Factors["ipReputation"] != 40 {
			t.Errorf("an address of the new list: %+v", got)
		}
		write(t, listed, "203.0.113.5\nnonsense\n")
		s.awaitLog(listed + ":2: ")
		ada.loginFrom(t, s, "203.0.113.4")
		if got := ada.lastEvaluation(t, s); got.Factors["ipReputation"] != 40 {
			t.Errorf("an address of the list before the wrong one: %+v", got)
		}
	})
}

// awaitLog waits until the service has logged a text.
func (s *service) awaitLog(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(s.process.Log(), text) {
			return
		}
	}
	s.t.Fatalf("the service never logged %q", text)
}
