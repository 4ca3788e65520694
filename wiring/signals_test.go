package wiring

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/iplists"
	"github.com/tollgate-dev/tollgate/adapters/maxmind"
)

// TestMissingFiles wants a configured file that is not there to stop the start, by the name of its setting.
func TestMissingFiles(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for variable, c := range map[string]struct {
		places maxmind.Config
		lists  iplists.Config
	}{
		"GEOIP_CITY_DB":       {places: maxmind.Config{CityDB: none}},
		"GEOIP_ASN_DB":        {places: maxmind.Config{ASNDB: none}},
		"IP_REPUTATION_LISTS": {lists: iplists.Config{Lists: []string{"tor=" + none}}},
	} {
		_, _, err := openSignals(t.Context(), c.places, c.lists, logrus.NewEntry(logrus.New()))
		if err == nil || !strings.HasPrefix(err.Error(), variable+": ") || !strings.Contains(err.Error(), none) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}
