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
	if err != nil {
		t.Fatal(err)
	}
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

func TestTransferGoesOnPastBadRecords(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.Environ = append(e.Environ, "REMOTE_URL_UNIQUE=true")
		s := e.Start(t)
		record := func(doc map[string]any) string {
			text, err := json.Marshal(map[string]any{"server": doc})
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		empty, stolen := fixture.NewServerDocument("org.example/empty", "1.0.0"),
			fixture.NewServerDocument("org.example/thief", "1.0.0")
		empty["repository"] = map[string]any{}
		stolen["remotes"] = fixture.NewServerDocument("org.example/good", "1.0.0")["remotes"]
		dir := filepath.Join(e.Dir, "in")
		if err := os.MkdirAll(filepath.Join(dir, "more"), 0o700); err != nil {
			t.Fatal(err)
		}
		fixture.WriteFile(t, filepath.Join(dir, "1.json"), `{"servers":[`+strings.Join([]string{
			record(fixture.NewServerDocument("org.example/good", "1.0.0")), `{"server": nonsense}`, record(empty),
			record(stolen),
			record(fixture.NewServerDocument("org.example/good", "2.0.0")),
		}, ",")+`]}`)
		fixture.WriteFile(t, filepath.Join(dir, "2.json"),
			`{"servers":[`+record(fixture.NewServerDocument("org.example/cut", "1.0.0")))
		alone, err := json.Marshal(fixture.NewServerDocument("org.example/alone", "1.0.0"))
		if err != nil {
			t.Fatal(err)
		}
		fixture.WriteFile(t, filepath.Join(dir, "more", "server.json"), string(alone))

		out, told, code := e.TryCommand(t, "", "registry", "import", dir)
		if code != 1 || !strings.Contains(told, "1 file could not be read to the end") {
			t.Errorf("exit %d, %s, want 1 for the file that is cut", code, told)
		}
		for _, want := range []string{
			"org.example/empty@1.0.0", "repository.url is required", "org.example/thief@1.0.0",
			"belongs to another server",
			"1.json, record 2", "2.json", "ends in the middle of its JSON", "total 4",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("the table does not contain %q:\n%s", want, out)
			}
		}
		apiclient.Call(t, "GET", fixture.ServerURL(s, "org.example/alone", "/versions/latest"), nil).WantStatus(t,
			http.StatusOK)
		apiclient.Call(t, "GET", fixture.ServerURL(s, "org.example/empty", "/versions/latest"), nil).WantStatus(t,
			http.StatusNotFound)

		one := filepath.Join(dir, "1.json")
		if _, told, code := e.TryCommand(t, "", "registry", "import", one); code != 0 || told != "" {
			t.Errorf("exit %d, %q, want 0 and no bar where there is no terminal", code, told)
		}
		if _, told, code := e.TryCommand(t, "", "registry", "import", "--strict", one); code != 1 ||
			!strings.Contains(told, "records were refused") {
			t.Errorf("exit %d, %q of a strict import, want 1", code, told)
		}
		importRegistry(t, e, "--lenient", one).want(t, 1, 2, 2)
		if !strings.Contains(e.RunCommand(t, "", "registry", "export"), `"name":"org.example/empty"`) {
			t.Error("a lenient import takes no document that breaks a rule")
		}

		other := fixture.NewServerDocument("org.example/alone", "1.0.0")
		other["title"] = "Another"
		out, _, code = e.TryCommand(t, record(other), "registry", "import", "-")
		if code != 1 || !strings.Contains(out, "cannot be replaced") {
			t.Errorf("exit %d of another document for a version, want 1: %s", code, out)
		}
		if _, told, code := e.TryCommand(t, "", "registry", "import", filepath.Join(dir, "missing.json")); code != 1 ||
			!strings.Contains(told, "missing.json") {
			t.Errorf("exit %d, %s, want the missing file named", code, told)
		}
	})
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
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
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

func TestRegistryValidate(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	e.Environ = append(e.Environ, "DATA_DIR=/nowhere/to/be/written") // no records are needed
	good, err := json.Marshal(fixture.NewServerDocument("com.example/weather", "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(e.Dir, "server.json")
	fixture.WriteFile(t, file, string(good))
	warned := `{"name":"com.example/weather","description":"Forecasts","version":"1.0.0"}`
	bad := `{"name":"weather","description":"Forecasts","version":"^1.0.0","colour":1}`

	out, told, code := e.TryCommand(t, warned, "registry", "validate", file, "-")
	if code != 0 || told != "" || !strings.Contains(out, "warning") || strings.Count(out, "ok") != 2 {
		t.Errorf("exit %d, %q of two good documents: %s", code, told, out)
	}
	out, told, code = e.TryCommand(t, bad, "registry", "validate", "--output", "json", file, "-", "missing.json")
	var verdicts []struct {
		File   string
		Valid  bool
		Issues []map[string]string
	}
	if err := json.Unmarshal([]byte(out), &verdicts); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != 1 || !strings.Contains(told, "2 of 3 documents are not valid") || !verdicts[0].Valid ||
		verdicts[1].Valid || verdicts[2].Valid {
		t.Errorf("exit %d, %q: %s", code, told, out)
	}
	s := fixture.NewEnvironment(t, "api").Start(t)
	var answer struct{ Issues []map[string]string }
	apiclient.Call(t, "POST", s.API+"/v0.1/validate", bad).WantStatus(t, http.StatusOK).Decode(t, &answer)
	if got, want := fmt.Sprint(verdicts[1].Issues), fmt.Sprint(answer.Issues); got != want {
		t.Errorf("the command finds %s, the API %s", got, want)
	}
	if out, _, code := e.TryCommand(t, "[]", "registry", "validate", "-"); code != 1 ||
		!strings.Contains(out, "must be a JSON object") {
		t.Errorf("exit %d of what is no document: %s", code, out)
	}
}
