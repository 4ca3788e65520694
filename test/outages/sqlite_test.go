package outages

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver of the service's database file

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// openFile opens the service's database file, as another program would.
func openFile(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "tollgate.db")+"?_pragma=busy_timeout(10000)")
	must.Succeed(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() }) // the test is over
	return db
}

// TestFileLocked has another process hold the write lock. Writers get an error after a bound,
// including those that wait in the queue, and reads continue.
func TestFileLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startService(t, "ENVIRONMENT=embedded", "DATA_DIR="+dir, "DATABASE_STATEMENT_TIMEOUT=2s", "AUTH_RATE_LIMIT=0",
		"REGISTRY_RATE_LIMIT=0")
	s.wantAll("before", s.failLogins(4), http.StatusUnauthorized)
	other := openFile(t, dir)
	_, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must.Succeed(t, err)
	doWithin(t, "a crowd", soon, func() { s.wantAll("locked", s.failLogins(crowd), http.StatusServiceUnavailable) })
	s.wantAll("reads meanwhile", s.callInParallel(serversPath, crowd), http.StatusOK)
	if status, body := getPage(t, "http://"+s.API+"/ready"); status != http.StatusOK {
		t.Errorf("/ready while another process writes: %d %s", status, body)
	}
	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	must.Succeed(t, err)
	s.wantAll("afterwards", s.failLogins(4), http.StatusUnauthorized)
}

const (
	email    = "somebody@example.com"
	password = "Correct-Horse-7-Battery"
)

// TestDiskFull fills the disk of the database file. Signed-in people can read, readiness reports
// that writes fail, a service that starts then can read too, and all works again when there is
// space.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := mountSmallDisk(t)
	environ := []string{"ENVIRONMENT=embedded", "DATA_DIR=" + dir}
	s := startProcess(t, environ...)
	runCommand(t, environ, password, "user", "add", "--email", email, "--name", "Somebody", "--password-stdin")
	token := s.signIn()
	// After a minute, the next request would store the time of the session's last use.
	old := openFile(t, dir)
	_, err := old.ExecContext(t.Context(), "UPDATE sessions SET last_activity = last_activity - 120000000")
	must.Succeed(t, err)
	must.Succeed(t, old.Close())
	ready := func(want int) func() bool {
		return func() bool {
			status, _ := getPage(t, "http://"+s.API+"/ready")
			return status == want
		}
	}
	await.Until(t, "ready", ready(http.StatusOK))
	filler := fillDisk(t, dir)

	await.Until(t, "/ready that says so", ready(http.StatusServiceUnavailable))
	await.Until(t, "a line of the log", func() bool {
		return strings.Contains(s.Log(), "the database cannot be written")
	})
	wantReads := func(what string) {
		t.Helper()
		s.wantAll(what, s.callInParallel(serversPath, 4), http.StatusOK)
		if status := s.readSession(token); status != http.StatusOK {
			t.Errorf("%s: a signed-in read is answered %d", what, status)
		}
	}
	wantReads("full")
	s.wantAll("writes", s.failLogins(4), http.StatusServiceUnavailable)
	wantReads("full, after a write")

	s.Kill()
	s = startService(t, environ...)
	wantReads("started on a full disk")

	must.Succeed(t, os.Remove(filler))
	await.Until(t, "ready with room", ready(http.StatusOK))
	s.wantAll("writes with room", s.failLogins(4), http.StatusUnauthorized)
	wantReads("with room")
}

// mountSmallDisk mounts a file system of a few mebibytes and returns its folder.
func mountSmallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=6m,mode=0700"); err != nil {
		t.Skipf("a small file system needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fillDisk writes a file until the disk is full, and returns its name.
func fillDisk(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	must.Succeed(t, err)
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	must.Succeed(t, f.Close())
	return name
}

// signIn returns an access token.
func (s *service) signIn() string {
	s.t.Helper()
	r, err := http.Post("http://"+s.API+"/auth/login", "application/json",
		strings.NewReader(`{"email":"`+email+`","password":"`+password+`","deviceInfo":{}}`))
	must.Succeed(s.t, err)
	defer func() { _ = r.Body.Close() }() // it was read
	var answer struct {
		AccessToken string `json:"accessToken"`
	}
	text, err := io.ReadAll(r.Body)
	must.Succeed(s.t, err)
	if err := json.Unmarshal(text, &answer); err != nil || answer.AccessToken == "" {
		s.t.Fatalf("login: %d %s", r.StatusCode, text)
	}
	return answer.AccessToken
}

// readSession reads the token's session and returns the status.
func (s *service) readSession(token string) int {
	s.t.Helper()
	q, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.API+"/auth/session", http.NoBody)
	must.Succeed(s.t, err)
	q.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Timeout: time.Minute}
	r, err := client.Do(q)
	must.Succeed(s.t, err)
	_ = r.Body.Close() // the status is what counts
	return r.StatusCode
}
