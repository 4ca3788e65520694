// Package proxyserver runs proxies of others with the examples of the documentation.
package proxyserver

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// examples is the folder of the examples, seen from a package of tests.
const examples = "../../../docs/examples/proxies/"

// files are the examples of programs, without their folder.
var files = map[string]string{"nginx": "nginx.conf", "caddy": "Caddyfile"}

// Place is what is in an example in place of its own addresses.
type Place struct {
	Listen   string // host and port of the proxy
	Service  string // the URL of Tollgate
	Upstream string // the URL of the tool server; empty without one
	Key      string // of the proxy at Tollgate
}

// File returns the name of the example of a program.
func File(program string) string { return files[program] }

// Example returns a file of the examples with the addresses of a test.
func Example(t *testing.T, file string, at Place) string {
	t.Helper()
	text, err := os.ReadFile(examples + file)
	must.Succeed(t, err)
	changed := string(text)
	for from, to := range map[string]string{
		"listen 8080": "listen " + at.Listen, "http://:8080": "http://" + at.Listen, "server_name tools.example.com": "server_name 127.0.0.1",
		"tollgate.internal:3000": strings.TrimPrefix(at.Service, "http://"), "weather.internal:8080": strings.TrimPrefix(at.Upstream, "http://"),
		"tgs_of_a_service_account": at.Key,
	} {
		changed = strings.ReplaceAll(changed, from, to)
	}
	return changed
}

// Need returns the path of a program, and skips the test if it is not installed.
func Need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip("needs " + program)
	}
	return path
}

// Start runs nginx or Caddy with a configuration until the test ends, and returns when it listens at an address. It
// skips the test if the program is not installed.
func Start(t *testing.T, program, address, config string) {
	t.Helper()
	path, dir := Need(t, program), t.TempDir()
	file := filepath.Join(dir, files[program])
	arguments := []string{"run", "--adapter", "caddyfile", "--config", file}
	if program == "nginx" {
		config = strings.Replace(config, "http {", "http {\naccess_log off;\n"+temporaryFiles(dir), 1)
		arguments = []string{"-p", dir, "-c", file, "-g", "daemon off; master_process off; error_log stderr; pid " + filepath.Join(dir, "pid") + ";"}
	}
	fixture.WriteFile(t, file, config)
	Run(t, path, dir, address, arguments...)
}

// temporaryFiles lets nginx write only to a folder.
func temporaryFiles(dir string) string {
	var places strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		places.WriteString(kind + "_temp_path " + filepath.Join(dir, kind) + ";\n")
	}
	return places.String()
}

// Run runs a program with its files in a folder until the test ends, and returns when it listens at an address.
func Run(t *testing.T, path, dir, address string, arguments ...string) {
	t.Helper()
	var log bytes.Buffer
	c := exec.Command(path, arguments...)
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	c.Stdout, c.Stderr = &log, &log
	must.Succeed(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // it was killed
		if t.Failed() {
			t.Logf("the log of %s:\n%s", path, log.String())
		}
	})
	await.Until(t, path, func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close() // nothing was sent
		}
		return err == nil
	})
}
