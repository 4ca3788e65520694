package registryapi_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

// readPaths returns the paths of the three reads below both prefixes.
func readPaths() []string {
	var list []string
	for _, prefix := range []string{"/v0.1", "/v0"} {
		list = append(list, prefix+"/servers", prefix+"/servers/com.example%2Fserver/versions",
			prefix+"/servers/com.example%2Fserver/versions/latest")
	}
	return list
}

func TestReadsHaveEntityTags(t *testing.T) {
	r := record(t, "com.example/server", "1.0.0")
	servers := newServers(t, r)
	url := serve(t, registryapi.Config{}, servers, nil)
	for _, path := range readPaths() {
		fresh := call(t, "GET", url+path, "")
		tag := fresh.header.Get("ETag")
		if fresh.status != 200 || tag == "" || fresh.header.Get("Vary") != "Accept-Encoding" ||
			fresh.header.Get("Cache-Control") != "public, max-age=5, stale-while-revalidate=60, stale-if-error=86400" {
			t.Errorf("%s: %d %v", path, fresh.status, fresh.header)
		}
		for _, method := range []string{"GET", "HEAD"} {
			a := call(t, method, url+path, "", "If-None-Match", `"other", W/`+tag)
			if a.status != http.StatusNotModified || a.body != "" {
				t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
			}
			for name, want := range map[string]string{
				"ETag": tag, "Access-Control-Allow-Origin": "*", "X-RateLimit-Limit": "10000",
				"Vary":         "Accept-Encoding",
				"Content-Type": "", "Content-Encoding": "",
			} {
				if got := a.header.Get(name); got != want {
					t.Errorf("%s %s: %s is %q, want %q", method, path, name, got, want)
				}
			}
		}
	}
	before := call(t, "GET", url+readPaths()[2], "").header.Get("ETag")
	r.StatusMessage = "changed"
	servers.save(t, r)
	if a := call(t, "GET", url+readPaths()[2], "", "If-None-Match", before); a.status != 200 ||
		a.header.Get("ETag") == before {
		t.Errorf("a changed version has status %d and ETag %s", a.status, a.header.Get("ETag"))
	}
}

func TestEntityTagsOfFailuresAndWrites(t *testing.T) {
	r := record(t, "com.example/server", "1.0.0+build")
	servers, s := newServers(t, r), &writerStub{records: []registry.Record{r}}
	servers.err = fault.New(fault.NotFound, "server not found")
	url := serve(t, registryapi.Config{}, servers, s)
	for _, path := range readPaths() {
		a := call(t, "GET", url+path, "", "If-None-Match", "*", "Accept-Encoding", "gzip")
		if a.status != 404 || a.header.Get("ETag") != "" || a.header.Get("Content-Encoding") != "" || a.body == "" {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
	}
	servers.err = nil
	read := call(t, "GET", url+"/v0.1"+onePath, "").header.Get("ETag")
	for name, w := range writes() {
		want := read
		if name == "all" {
			want = ""
		}
		a := call(t, w.method, url+"/v0.1"+w.path, "{}", "If-None-Match", "*", "Accept-Encoding", "gzip")
		if a.status != 200 || a.header.Get("ETag") != want || a.header.Get("Content-Encoding") != "" || a.body == "" {
			t.Errorf("%s: %d %v, want ETag %s", name, a.status, a.header, want)
		}
	}
}

func TestLongReadsAreCompressed(t *testing.T) {
	servers := newServers(t)
	for i := range 20 {
		r := record(t, "com.example/server", fmt.Sprintf("1.0.%d", i))
		r.Latest, r.PublishedAt = i == 0, r.PublishedAt.Add(time.Duration(i)*time.Second)
		servers.save(t, r)
	}
	url := serve(t, registryapi.Config{}, servers, nil)
	for _, path := range readPaths() {
		long := !strings.HasSuffix(path, "latest")
		plain := call(t, "GET", url+path, "", "Accept-Encoding", "gzip;q=0")
		compressed := call(t, "GET", url+path, "", "Accept-Encoding", "br, gzip")
		if plain.header.Get("Content-Encoding") != "" || (compressed.header.Get("Content-Encoding") == "gzip") != long {
			t.Fatalf("%s: %v, %v", path, plain.header, compressed.header)
		}
		if (plain.header.Get("ETag") != compressed.header.Get("ETag")) != long {
			t.Errorf("%s: ETags %s, %s", path, plain.header.Get("ETag"), compressed.header.Get("ETag"))
		}
		if long && decompress(t, compressed.body) != plain.body {
			t.Errorf("%s: the decompressed body differs", path)
		}
		head := call(t, "HEAD", url+path, "", "Accept-Encoding", "gzip")
		if head.header.Get("Content-Length") != fmt.Sprint(len(compressed.body)) {
			t.Errorf("HEAD %s: Content-Length %s, want %d", path, head.header.Get("Content-Length"),
				len(compressed.body))
		}
	}
}

func decompress(t *testing.T, body string) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader([]byte(body)))
	must.Succeed(t, err)
	plain, err := io.ReadAll(z)
	must.Succeed(t, err)
	return string(plain)
}
