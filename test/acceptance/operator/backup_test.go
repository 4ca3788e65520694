package operator

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestBackupAndRestore runs the commands of docs/backup.md: the first block for a database while
// the service runs, the second after it has stopped, with the same folder or an empty database.
// Changes made after the backup are gone; everything else exists.
func TestBackupAndRestore(t *testing.T) {
	content, err := os.ReadFile("../../../docs/backup.md")
	must.Succeed(t, err)
	chapters := map[string]string{"embedded": "## SQLite", "production": "## PostgreSQL"}
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		if e.Shared {
			requireDump(t)
		}
		_, chapter, _ := strings.Cut(string(content), chapters[e.Name]+"\n")
		chapter, _, _ = strings.Cut(chapter, "\n## ")
		blocks := fixture.ShellBlock.FindAllStringSubmatch(chapter, -1)
		if len(blocks) != 2 {
			t.Fatalf("the chapter has %d blocks of commands", len(blocks))
		}
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com", "publish *")
		importRegistry(t, e, writeSample(t, e, 5))
		kept := e.RunCommand(t, "", "registry", "export")
		runShell(t, e, blocks[0][1])
		e.NewPerson(t, "late@example.com")
		s.Stop()
		if e.Shared {
			e.Environ = append(e.Environ, "DATABASE_URL="+postgrestest.NewEmpty(t))
		}
		if printed := runShell(t, e, blocks[1][1]); !strings.Contains(printed, "applied") ||
			strings.Contains(printed, "pending") {
			t.Errorf("the restored database has the migrations\n%s", printed)
		}
		s = e.Start(t)
		if export := e.RunCommand(t, "", "registry", "export"); export != kept {
			t.Error("the restored registry differs")
		}
		ada.Login(t, s)
		late := map[string]any{"email": "late@example.com", "password": fixture.Password, "deviceInfo": ada.Device}
		apiclient.Call(t, "POST", s.API+"/auth/login", late).WantStatus(t, http.StatusUnauthorized)
	})
}

// requireDump skips the test if PostgreSQL's tools are not installed.
func requireDump(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
}

func writeSample(t *testing.T, e *fixture.Environment, servers int) string {
	t.Helper()
	file := filepath.Join(e.Dir, "sample.json")
	fixture.WriteFile(t, file, newSampleExport(t, servers))
	return file
}

// runShell runs commands of a document in the environment's folder and returns their output.
func runShell(t *testing.T, e *fixture.Environment, commands string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = e.Dir, append(append([]string{}, e.Environ...), "PATH="+fixture.BinDir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return string(out)
}

// TestInstancesStartTogether starts several instances at once with an empty database: one of them
// creates the schema, and all serve. An instance that may not create it fails with an error.
func TestInstancesStartTogether(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.EmptyDatabase(t)
		forbidden := append(append([]string{}, e.Environ...), "MIGRATE_ON_START=false")
		if one, err := instance.Start(filepath.Join(fixture.BinDir, "tollgate"), forbidden, e.Command); err == nil {
			one.Kill()
			t.Fatal("a service started without a schema")
		} else if !strings.Contains(err.Error(), "run 'tollgate migrate'") {
			t.Errorf("without a schema the service ends with %v", err)
		}
		const instances = 3
		started, logs := make(chan error, instances), make(chan string, instances)
		for range instances {
			go func() {
				one, err := instance.Start(filepath.Join(fixture.BinDir, "tollgate"), e.Environ, e.Command)
				if err == nil {
					list, listErr := apiclient.TryCall("GET", "http://"+one.API+"/v0.1/servers", nil)
					if listErr == nil && list.Status != http.StatusOK {
						listErr = fmt.Errorf("a list of servers is %d", list.Status)
					}
					err = errors.Join(listErr, one.Stop())
					logs <- one.Log()
				}
				started <- err
			}()
		}
		for range instances {
			if err := <-started; err != nil {
				t.Error(err)
			}
		}
		close(logs)
		applied := 0
		for log := range logs {
			applied += strings.Count(log, `"0001_registry"`)
		}
		if applied != 1 {
			t.Errorf("%d logs report the first migration, want one", applied)
		}
		if status := e.RunCommand(t, "", "migrate", "status"); strings.Contains(status, "pending") ||
			!strings.Contains(status, "0001_registry") {
			t.Errorf("afterwards the migrations are\n%s", status)
		}
	})
}
