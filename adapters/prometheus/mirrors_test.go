package prometheus

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
)

func TestMirrors(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newReports(registry)
	at := time.Unix(1_800_000_000, 0)
	m.Report(mirroring.Listed{Mirrors: []mirror.Mirror{
		{Name: "new"}, {Name: "gone"},
		{Name: "corp", State: mirror.State{LastSuccess: at, FailingSince: at.Add(time.Hour), Servers: 7}},
	}})
	m.Report(mirroring.Listed{Mirrors: []mirror.Mirror{
		{Name: "new"}, {
			Name: "corp", State: mirror.State{LastSuccess: at, FailingSince: at.Add(time.Hour), Servers: 7},
		},
	}})
	m.Report(mirroring.Synced{Name: "corp"})
	m.Report(mirroring.SyncFailed{Name: "corp", Err: errDefect})
	m.Report(mirroring.SyncFailed{Err: errDefect}) // no registry was read
	checkMetrics(t, registry, map[string]float64{
		"tollgate_mirror_last_success_timestamp_seconds corp": 1_800_000_000,
		"tollgate_mirror_servers corp":                        7, "tollgate_mirror_failing corp": 1,
		"tollgate_mirror_reads_total succeeded": 1, "tollgate_mirror_reads_total failed": 1,
	})
}

// TestRemovedMirrorsVanish checks that a mirror has its gauges, also with the value 0, as long as
// it is listed and no longer.
func TestRemovedMirrorsVanish(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newReports(registry)
	gone := mirror.Mirror{
		Name: "gone", State: mirror.State{LastSuccess: time.Unix(1, 0), FailingSince: time.Unix(2, 0), Servers: 3},
	}
	for _, listed := range [][]string{
		{}, {"gone", "new"}, {"new"}, {},
		{"gone"}, // a mirror of the same name is added again
	} {
		var all []mirror.Mirror
		for _, name := range listed {
			one := gone
			if one.Name = mirror.Name(name); name == "new" {
				one.State = mirror.State{}
			}
			all = append(all, one)
		}
		m.Report(mirroring.Listed{Mirrors: all})
		samples := allSamples(t, registry)
		for _, gauge := range []string{
			"tollgate_mirror_last_success_timestamp_seconds", "tollgate_mirror_servers", "tollgate_mirror_failing",
		} {
			for _, name := range []string{"gone", "new"} {
				if _, shown := samples[gauge+" "+name]; shown != slices.Contains(listed, name) {
					t.Errorf("after a list of %q, %s of %s is shown: %t", listed, gauge, name, shown)
				}
			}
		}
	}
}
