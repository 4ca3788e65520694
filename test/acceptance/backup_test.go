package acceptance

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/instance"
)

// TestBackupAndRestore runs the commands of docs/backup.md as they are written:
// the first of a database's chapter while the service runs, the second after
// it has stopped, on the same folder or on an empty database. What came between
// is gone, all else is there.
func TestBackupAndRestore(t *testing.T) {
	content, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	chapters := map[string]string{"embedded": "## SQLite", "production": "## PostgreSQL"}
	each(t, func(t *testing.T, e *environment) {
		if e.shared {
			requireDump(t)
		}
		_, chapter, _ := strings.Cut(string(content), chapters[e.name]+"\n")
		chapter, _, _ = strings.Cut(chapter, "\n## ")
		blocks := shellBlock.FindAllStringSubmatch(chapter, -1)
		if len(blocks) != 2 {
			t.Fatalf("the chapter has %d blocks of commands", len(blocks))
		}
		s := e.start(t)
		ada := e.newPerson(t, "ada@example.com", "publish *")
		e.importing(t, writeSample(t, e, 5))
		kept := e.tollgate(t, "", "registry", "export")
		e.shell(t, blocks[0][1])
		e.newPerson(t, "late@example.com")
		s.stop()
		if e.shared {
			e.environ = append(e.environ, "DATABASE_URL="+newDatabase(t))
		}
		if printed := e.shell(t, blocks[1][1]); !strings.Contains(printed, "applied") || strings.Contains(printed, "pending") {
			t.Errorf("the restored database has the migrations\n%s", printed)
		}
		s = e.start(t)
		if export := e.tollgate(t, "", "registry", "export"); export != kept {
			t.Error("the restored registry differs")
		}
		ada.login(t, s)
		late := map[string]any{"email": "late@example.com", "password": password, "deviceInfo": ada.device}
		call(t, "POST", s.api+"/auth/login", late).want(t, http.StatusUnauthorized)
	})
}

// requireDump skips where PostgreSQL's tools are missing.
func requireDump(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
}

func writeSample(t *testing.T, e *environment, servers int) string {
	t.Helper()
	file := filepath.Join(e.dir, "sample.json")
	write(t, file, sample(t, servers))
	return file
}

// shell runs commands of a document in the environment's folder and returns
// what they print.
func (e *environment) shell(t *testing.T, commands string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = e.dir, append(append([]string{}, e.environ...), "PATH="+built+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return string(out)
}

// TestInstancesStartTogether starts several at once on a database without a
// schema: one of them makes it, and all serve. One that may not make it ends
// with a sentence.
func TestInstancesStartTogether(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		forbidden := append(append([]string{}, e.environ...), "MIGRATE_ON_START=false")
		if one, err := instance.Start(filepath.Join(built, "tollgate"), forbidden, e.command); err == nil {
			one.Kill()
			t.Fatal("a service started without a schema")
		} else if !strings.Contains(err.Error(), "run 'tollgate migrate'") {
			t.Errorf("without a schema the service ends with %v", err)
		}
		const instances = 3
		started, logs := make(chan error, instances), make(chan string, instances)
		for range instances {
			go func() {
				one, err := instance.Start(filepath.Join(built, "tollgate"), e.environ, e.command)
				if err == nil {
					list, listErr := try("GET", "http://"+one.API+"/v0.1/servers", nil)
					if listErr == nil && list.status != http.StatusOK {
						listErr = fmt.Errorf("a list of servers is %d", list.status)
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
			t.Errorf("%d logs tell of the first migration, want one", applied)
		}
		if status := e.tollgate(t, "", "migrate", "status"); strings.Contains(status, "pending") || !strings.Contains(status, "0001_registry") {
			t.Errorf("afterwards the migrations are\n%s", status)
		}
	})
}
