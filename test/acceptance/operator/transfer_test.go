package operator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// importResult is the output of `registry import --output json`.
type importResult struct {
	Taken, Skipped, Refused, Unfinished int
	Records                             []struct{ Verdict, Server, Version, Origin, Reason string }
}

func (m importResult) want(t *testing.T, taken, skipped, refused int) {
	t.Helper()
	if m.Taken != taken || m.Skipped != skipped || m.Refused != refused {
		t.Fatalf("import is %+v, want %d taken, %d skipped, %d refused", m, taken, skipped, refused)
	}
}

func importRegistry(t *testing.T, e *fixture.Environment, args ...string) importResult {
	t.Helper()
	var m importResult
	out := e.RunCommand(t, "", append([]string{"registry", "import", "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return m
}

// newSampleExport returns an export of another registry: servers with several versions and every
// status. Some versions are the latest by another rule than Tollgate's.
func newSampleExport(t *testing.T, servers int) string {
	t.Helper()
	var records []any
	at := time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)
	stamp := func(hours int) string { return at.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339Nano) }
	for s := range servers {
		for v := range 1 + s%4 {
			at = at.Add(61*time.Minute + 123*time.Microsecond)
			meta := map[string]any{
				"status": "active", "publishedAt": stamp(0), "updatedAt": stamp(v), "isLatest": v == 0,
			}
			switch (s + v) % 5 {
			case 1:
				meta["status"], meta["statusMessage"], meta["statusChangedAt"] = "deprecated",
					"use <another> one", stamp(v)
			case 2:
				meta["status"] = "deleted"
			}
			records = append(records, map[string]any{
				"server": fixture.NewServerDocument(fmt.Sprintf("org.example/server-%d", s),
					fmt.Sprintf("%d.%d.0", v, s)),
				"_meta": map[string]any{fixture.OfficialKey: meta, "org.example/other": true},
			})
		}
	}
	text, err := json.MarshalIndent(map[string]any{
		"servers": records, "metadata": map[string]any{"count": len(records)},
	}, "", " ")
	must.Succeed(t, err)
	return string(text)
}

// TestTransferRoundTrip checks that a second import changes nothing, and that an export creates the
// same registry elsewhere, byte for byte.
func TestTransferRoundTrip(t *testing.T) {
	elsewhere := fixture.NewEnvironments(t)
	slices.Reverse(elsewhere) // from one kind of database to the other, if there are two
	for i, e := range fixture.NewEnvironments(t) {
		t.Run(e.Name, func(t *testing.T) {
			s := e.Start(t)
			file := filepath.Join(e.Dir, "sample.json")
			fixture.WriteFile(t, file, newSampleExport(t, 60))
			importRegistry(t, e, "--strict", file).want(t, 150, 0, 0)
			first := e.RunCommand(t, "", "registry", "export")
			importRegistry(t, e, "--strict", file).want(t, 0, 150, 0)
			wantImportAudited(t, e, 150)
			if again := e.RunCommand(t, "", "registry", "export", "-"); again != first {
				t.Error("a second import changed the registry")
			}
			wantImported(t, s)

			export := filepath.Join(e.Dir, "export.json")
			e.RunCommand(t, "", "registry", "export", export)
			if text, err := os.ReadFile(export); err != nil || string(text) != first {
				t.Errorf("the exported file differs from the output: %v", err)
			}
			other := elsewhere[i]
			importRegistry(t, other, "--strict", export).want(t, 150, 0, 0)
			if back := other.RunCommand(t, "", "registry", "export"); back != first {
				t.Error("the export of an import differs from what was imported")
			}
		})
	}
}

// wantImportAudited checks that there is an event by the operator for each imported version, and one
// for all of them.
func wantImportAudited(t *testing.T, e *fixture.Environment, versions int) {
	t.Helper()
	var events []struct {
		Details struct{ Action, Actor, ServerName, Version, PartOf string }
	}
	e.ReadCommand(t, &events, "audit", "search", "--type", "REGISTRY_CHANGE", "--limit", "0")
	seen := map[string]bool{}
	for _, event := range events {
		if d := event.Details; d.Action == "import" && d.Actor == "operator" && d.PartOf != "" {
			seen[d.ServerName+"@"+d.Version] = true
		}
	}
	if len(events) != versions+1 || len(seen) != versions || !seen["org.example/server-3@3.3.0"] {
		t.Errorf("the audit log has %d events, of %d versions", len(events), len(seen))
	}
}

// wantImported checks the imported versions through the running service.
func wantImported(t *testing.T, s *fixture.Service) {
	t.Helper()
	var list fixture.ServerPage
	apiclient.Call(t, "GET", fixture.ServerURL(s, "org.example/server-3", "/versions?include_deleted=true"), nil).
		WantStatus(t, http.StatusOK).Decode(t, &list)
	var got []string
	for _, r := range list.Servers {
		m := r.Meta[fixture.OfficialKey]
		got = append(got,
			fmt.Sprint(r.Server["version"], " ", m.Status, " ", m.IsLatest, " ", m.PublishedAt != m.UpdatedAt))
	}
	want := []string{
		"3.3.0 deprecated true true", "2.3.0 active false true", "1.3.0 active false true", "0.3.0 active false false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("versions are %q, want %q", got, want)
	}
	if m := list.Servers[0].Meta[fixture.OfficialKey]; !strings.HasPrefix(m.PublishedAt, "2025-03-04T") ||
		!strings.HasSuffix(m.PublishedAt, "Z") {
		t.Errorf("the publication time is %s, want the recorded one", m.PublishedAt)
	}
}

// TestTransferFromRegistry copies a whole running registry over its API.
func TestTransferFromRegistry(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		file := filepath.Join(e.Dir, "sample.json")
		fixture.WriteFile(t, file, newSampleExport(t, 100))
		s := e.Start(t)
		importRegistry(t, e, file).want(t, 250, 0, 0)
		copied := fixture.NewEnvironment(t, "copy")
		importRegistry(t, copied, "--strict", s.API+"/v0.1/servers").want(t, 250, 0, 0)
		if copied.RunCommand(t, "", "registry", "export") != e.RunCommand(t, "", "registry", "export") {
			t.Error("the copy differs from the registry")
		}
		importRegistry(t, copied, "--strict", s.API+"/v0.1/servers?search=server-99&include_deleted=false&limit=1").
			want(t, 0, 3, 0)
		_, told, code := copied.TryCommand(t, "", "registry", "import", s.API+"/v0.1/nothing")
		if code != 1 || !strings.Contains(told, "404") {
			t.Errorf("exit %d, %s, want 1 and the status", code, told)
		}
	})
}

// TestTransferAtOnce runs several imports of the same servers while a service runs. Each version is
// imported once.
func TestTransferAtOnce(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		file := filepath.Join(e.Dir, "sample.json")
		fixture.WriteFile(t, file, newSampleExport(t, 80))
		var imports [3]importResult
		var all sync.WaitGroup
		for i := range imports {
			all.Go(func() {
				out, told, code := e.TryCommand(t, "", "registry", "import", "--output", "json", file)
				if err := json.Unmarshal([]byte(out), &imports[i]); err != nil || code != 0 {
					t.Errorf("exit %d, %v: %s%s", code, err, out, told)
				}
			})
		}
		all.Wait()
		taken := 0
		for _, m := range imports {
			taken += m.Taken
			if m.Refused != 0 || m.Taken+m.Skipped != 200 {
				t.Errorf("import is %+v", m)
			}
		}
		var list fixture.ServerPage
		apiclient.Call(t, "GET", s.API+"/v0.1/servers?version=latest&include_deleted=true&limit=100", nil).WantStatus(t,
			http.StatusOK).Decode(t, &list)
		if taken != 200 || len(list.Servers) != 80 {
			t.Errorf("%d versions were taken and %d are latest, want 200 and 80", taken, len(list.Servers))
		}
	})
}

// TestTransferKilled kills an import in the middle. Another one continues: nothing is missing and
// nothing is there twice, in the registry and in the audit log.
func TestTransferKilled(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		file := filepath.Join(e.Dir, "sample.json")
		fixture.WriteFile(t, file, newSampleExport(t, 400))
		killed := exec.Command(filepath.Join(fixture.BinDir, "tollgate"), "registry", "import", file)
		killed.Env = e.Environ
		must.Succeed(t, killed.Start())
		await.Until(t, "the import has stored a server", func() bool {
			return apiclient.Call(t, "GET", fixture.ServerURL(s, "org.example/server-1", "/versions/latest"),
				nil).Status == http.StatusOK
		})
		_ = killed.Process.Kill() // it may have ended already
		_ = killed.Wait()         // likewise
		stored := strings.Count(e.RunCommand(t, "", "registry", "export"), `"server":`)
		importRegistry(t, e, "--strict", file).want(t, 1000-stored, stored, 0)
		wantImportAudited(t, e, 1000)
	})
}
