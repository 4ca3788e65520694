package registryapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// bigRegistry has many servers, whose documents it makes when they are read.
type bigRegistry struct {
	registrystore.SnapshotReader
	servers int
}

// List implements registrystore.ServerReader. It ignores all of the query but the position.
func (b bigRegistry) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	first := 0
	if q.AfterName != "" {
		number, err := strconv.Atoi(q.AfterName[strings.LastIndex(q.AfterName, "-")+1:])
		if err != nil {
			return registrystore.Page{}, err
		}
		first = number + 1
	}
	last := min(first+q.Limit, b.servers)
	page := registrystore.Page{More: last < b.servers}
	for i := first; i < last; i++ {
		r, err := newServerRecord(i)
		if err != nil {
			return registrystore.Page{}, err
		}
		page.Records = append(page.Records, r)
	}
	return page, ctx.Err()
}

func newServerRecord(i int) (registry.Record, error) {
	name, err := registry.ParseName(fmt.Sprintf("com.example.team/some-tool-server-%07d", i))
	if err != nil {
		return registry.Record{}, err
	}
	version, err := registry.ParseVersion("1.0.0")
	if err != nil {
		return registry.Record{}, err
	}
	entry := fmt.Sprintf(
		`"packages":[{"registryType":"npm","identifier":"@team-%d/tool-%d","version":"1.%d.%d","transport":{"type":"stdio"}}]`, i*7919, i, i%17, i%31)
	if i%2 == 0 {
		entry = fmt.Sprintf(`"remotes":[{"type":"streamable-http","url":"https://tool-%d.example%d.com/mcp/%x"}]`, i,
			i%97, i*104729)
	}
	document := fmt.Sprintf(`{"name":%q,"description":"Answers question %d","version":"1.0.0",%s}`, name,
		i*31337, entry)
	return registry.Record{
		Release:  registry.Release{Name: name, Version: version, Status: registry.StatusActive, Latest: true},
		Document: []byte(document),
	}, nil
}

// serveBigRegistry serves a registry with many servers, and returns the address of its allow lists.
func serveBigRegistry(t *testing.T, servers int) string {
	t.Helper()
	cfg := registryapi.Config{Cache: readcache.Config{Bytes: 64 << 20}}
	return serve(t, cfg, bigRegistry{servers: servers}, nil) + "/registries/all/allowlist/"
}

// Variables of the process that wantMemory starts, and the number of servers for a
// longer run: 300000 need at most 300 MiB.
const (
	memoryChild      = "TEST_MEMORY_CHILD"
	allowListServers = "TEST_ALLOWLIST_SERVERS"
	usualServers     = 10_000
)

// maxMemory is how much memory all of a process may need that serves the lists of so many servers:
// 64 MiB for the process itself and what the collector of garbage needs, and 300 MiB for 300,000
// servers with it.
func maxMemory(servers int) int { return (64 + 236*servers/300_000) << 10 }

// TestMemoryOfAllowLists sends the lists of all formats at once, each twice, after many requests
// that were aborted, in a process of its own, and wants that it never has more memory than a small
// share of what it sends.
func TestMemoryOfAllowLists(t *testing.T) {
	servers := usualServers
	if n, err := strconv.Atoi(os.Getenv(allowListServers)); err == nil {
		servers = n
	}
	if os.Getenv(memoryChild) != "" {
		readAllLists(t, servers)
		return
	}
	wantMemory(t, maxMemory(servers))
}

// wantMemory runs the test again, in a process of its own that writes its status, and wants that it
// needs at most so many KiB.
func wantMemory(t *testing.T, most int) {
	t.Helper()
	if runtime.GOOS != "linux" || hasRaceDetector() {
		t.Skip("the memory of the process is read as Linux has it, without the race detector")
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v") //nolint:gosec // this program
	child.Env = append(os.Environ(), memoryChild+"=1", "GOGC=100")                               // as a service has it
	said, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	_, rest, _ := strings.Cut(string(said), "VmHWM:")
	var kibibytes int
	if _, err := fmt.Sscanf(rest, "%d kB", &kibibytes); err != nil {
		t.Fatalf("no VmHWM in %s", said)
	}
	t.Logf("%d MiB", kibibytes>>10)
	if kibibytes > most {
		t.Errorf("the process needs %d MiB, want at most %d", kibibytes>>10, most>>10)
	}
}

func hasRaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// readAllLists is what the process of TestMemoryOfAllowLists does.
func readAllLists(t *testing.T, servers int) {
	address := serveBigRegistry(t, servers)
	for range 20 {
		abortRequest(t, address+"kiro.json")
	}
	var all sync.WaitGroup
	for range 2 {
		for _, f := range allowlist.Formats() {
			all.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+f.File(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Accept-Encoding", "identity")
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				n, err := io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if err != nil || response.StatusCode != 200 || n != response.ContentLength || n < int64(servers)*40 {
					t.Errorf("%s: status %d, %d bytes, %v", f, response.StatusCode, n, err)
				}
				t.Logf("%s: %d MB", f, n/1_000_000)
			})
		}
	}
	all.Wait()
	status, err := os.ReadFile("/proc/self/status")
	must.Succeed(t, err)
	t.Log(string(status))
}

// abortRequest sends a request and closes the connection at once.
func abortRequest(t *testing.T, address string) {
	t.Helper()
	must.Succeed(t, sendRequest(t, address).Close())
}

// sendRequest sends a request over a connection of its own, which it returns.
func sendRequest(t *testing.T, address string) net.Conn {
	t.Helper()
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
	must.Succeed(t, err)
	if _, err := fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host); err != nil {
		t.Fatal(err)
	}
	return c
}

// endlessServers are read until the context ends.
type endlessServers struct {
	registrystore.SnapshotReader
	began, ended atomic.Int64
}

func (s *endlessServers) List(ctx context.Context, _ registrystore.Query) (registrystore.Page, error) {
	s.began.Add(1)
	<-ctx.Done()
	s.ended.Add(1)
	return registrystore.Page{}, ctx.Err()
}

// countBusyGoroutines returns the number of goroutines without the workers of the server that wait
// for a connection, which it keeps for some time.
func countBusyGoroutines() (n int) {
	stacks := make([]byte, 4<<20)
	for stack := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
		if !bytes.Contains(stack, []byte("fasthttp.(*workerPool)")) || bytes.Contains(stack, []byte("serveConn")) {
			n++
		}
	}
	return n
}

// TestAbortedAllowLists: a list is not compiled any more when the last client has closed its
// connection, and nothing of the requests is left.
func TestAbortedAllowLists(t *testing.T) {
	servers := &endlessServers{}
	address := serve(t, registryapi.Config{}, servers, nil) + "/registries/all/allowlist/"
	answered := sendRequest(t, address+"missing.json") // the first server starts goroutines that stay
	if _, err := io.Copy(io.Discard, answered); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, answered.Close())
	before := countBusyGoroutines()
	for range 40 {
		abortRequest(t, address+"claude.json")
		abortRequest(t, address+"kiro.json")
	}
	await.Until(t, "nothing is left of the requests", func() bool {
		return servers.began.Load() > 0 && servers.began.Load() == servers.ended.Load() &&
			countBusyGoroutines() <= before
	})
}
