package iplists_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/iplists"
)

func TestOpenWatchedNamesSettingOfMissingFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.txt")
	_, _, err := iplists.OpenWatched(iplists.Config{Lists: []string{"tor=" + missing}}, logrus.NewEntry(logrus.New()))
	if err == nil || !strings.HasPrefix(err.Error(), "IP_REPUTATION_LISTS: ") ||
		!strings.Contains(err.Error(), missing) {
		t.Errorf("OpenWatched = %v, want an error of IP_REPUTATION_LISTS that names %s", err, missing)
	}
}
