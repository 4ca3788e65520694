package tools

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// everything returns the program of @modelcontextprotocol/server-everything.
func everything(t *testing.T) string {
	t.Helper()
	suite := os.Getenv("TEST_MCP")
	if suite == "" {
		t.Skip("needs the packages of npm: run the test by test/servers/with.sh, or set TEST_MCP")
	}
	return filepath.Join(filepath.Dir(suite), "../../server-everything/dist/index.js")
}

// startEverything starts the server with streamable HTTP, and returns its URL.
func startEverything(t *testing.T) string {
	t.Helper()
	port := instance.FreePort()
	c := exec.Command("node", everything(t), "streamableHttp")
	c.Env = append(os.Environ(), "PORT="+port)
	must.Succeed(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // it was killed
	})
	url := "http://127.0.0.1:" + port + "/mcp"
	await.Until(t, "the server", func() bool {
		response, err := http.Get(url)
		if err == nil {
			_ = response.Body.Close() // it has nothing of use
		}
		return err == nil
	})
	return url
}

// TestServerEverything takes the tools of the server with all that MCP has, unmodified: the service asks it by
// streamable HTTP, and a job records the same tools of its package by standard streams. They are approved, do not
// differ, and are found by what a tool says.
func TestServerEverything(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		url := startEverything(t)
		s := openSite(t, e, byHand...)
		d := newDocument("1.0.0")
		d["remotes"] = []any{map[string]any{"type": "streamable-http", "url": url}}
		d["packages"] = []any{map[string]any{
			"registryType": "npm", "identifier": "@modelcontextprotocol/server-everything", "version": "2026.8.31",
			"transport": map[string]any{"type": "stdio"},
		}}
		s.call(t, "POST", "/v0.1/publish", d, s.ada.Bearer()...).WantStatus(t, http.StatusOK)
		s.call(t, "POST", askPath("1.0.0"), nil, s.rita.Bearer()...).WantStatus(t, http.StatusOK)

		folder := t.TempDir()
		script := fmt.Sprintf("#!/bin/sh\nexec node '%s' stdio\n", everything(t))
		must.Succeed(t, os.WriteFile(filepath.Join(folder, "npx"), []byte(script), 0o700))
		var made struct{ Token string }
		s.call(t, "POST", "/admin/v1/me/tokens", map[string]any{"name": "job", "scopes": []string{"registry:publish"}}, s.ada.Bearer()...).
			WantStatus(t, http.StatusCreated).Decode(t, &made)
		job := fixture.NewPublisher(t, s.ada)
		job.Environ = append(job.Environ, "PATH="+folder+":"+os.Getenv("PATH"), "TOLLGATE_TOKEN="+made.Token)
		record := []string{"tools", "record", server + "@1.0.0", "--package", "0", "--server", s.API}
		job.Run(t, 2, "", append(record, "--diff")...) // none is approved
		job.Run(t, 0, "", record...)
		job.Run(t, 0, "", append(record, "--diff")...)

		all, _ := s.read(t, "1.0.0")
		if len(all) != 2 || all[0].Source != "asked" || all[1].Source != "recorded" || all[0].State != "approved" || all[1].State != "approved" {
			t.Fatalf("the lists are %+v", all)
		}
		if len(all[0].Tools) < 5 || all[0].Mark != all[1].Mark {
			t.Errorf("%d tools were asked for, and %d were recorded, or they differ", len(all[0].Tools), len(all[1].Tools))
		}
		word := strings.Fields(all[0].Tools[0].Description)[0]
		await.Until(t, "the search by a word of a tool", func() bool {
			response, err := http.Get(s.API + "/console/?q=" + word + "+" + all[0].Tools[0].Name)
			must.Succeed(t, err)
			page, err := io.ReadAll(response.Body)
			must.Succeed(t, errors.Join(err, response.Body.Close()))
			return strings.Contains(string(page), server)
		})
	})
}
