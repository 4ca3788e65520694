package maxmind_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/maxmind"
)

func TestOpenWatchedNamesSettingOfMissingFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.mmdb")
	for variable, c := range map[string]maxmind.Config{
		"GEOIP_CITY_DB": {CityDB: missing},
		"GEOIP_ASN_DB":  {ASNDB: missing},
	} {
		_, _, err := maxmind.OpenWatched(c, logrus.NewEntry(logrus.New()))
		if err == nil || !strings.HasPrefix(err.Error(), variable+": ") || !strings.Contains(err.Error(), missing) {
			t.Errorf("OpenWatched = %v, want an error of %s that names %s", err, variable, missing)
		}
	}
}
