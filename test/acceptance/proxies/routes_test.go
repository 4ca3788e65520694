package proxies

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/proxyserver"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// The hosts of routes.
const (
	allowedHost = "allowed.example"
	deniedHost  = "denied.example"
)

// routes are the tool servers of a proxy that states no names, by host and path. Those of the first host
// whose path is empty or /b may be called.
var routes = []struct{ name, host, path string }{
	{"com.example/root", allowedHost, ""}, {"com.example/b", allowedHost, "/b"}, {"com.example/a", allowedHost, "/a"},
	{"com.example/org", allowedHost, "/@org/b"}, {"com.example/upper", allowedHost, "/Upper"}, {"com.example/denied", deniedHost, ""},
}

// upgraded is what a server answers which a request for another protocol has reached.
const upgraded = "an upgrade"

var mayCall = []string{"com.example/root", "com.example/b"}

// TestRoutedAsDecided sends raw requests to real proxies which route by address: each that gets through
// must reach the server that was decided, which is one that may be called.
func TestRoutedAsDecided(t *testing.T) {
	for _, program := range []string{"nginx", "caddy"} {
		t.Run(program, func(t *testing.T) {
			proxyserver.Need(t, program)
			s := startSite(t, fixture.NewEnvironment(t, "embedded"))
			address := net.JoinHostPort("127.0.0.1", instance.FreePort())
			_, port, _ := net.SplitHostPort(address)
			for _, r := range routes {
				s.publish(t, r.name, "http://"+r.host+":"+port+r.path+"/")
			}
			s.setRule(t, "no-danger", object{"order": 1, "effect": "deny", "subjects": []string{"anyone"}, "servers": []string{"com.example/b"}, "tools": []string{"danger"}})
			s.setRule(t, "some", object{"subjects": []string{"anyone"}, "servers": mayCall})
			proxyserver.Start(t, program, address, s.routing(t, program, proxyserver.File(program), address, startBackends(t)))
			for _, one := range mayCall {
				fixture.AwaitFresh(t, one, func() bool { return sendRaw(t, address, "GET "+pathOf(one)+"/mcp", allowedHost+":"+port) == one })
			}
			sendAll(t, address, port)
		})
	}
}

func pathOf(name string) string {
	return routes[slices.IndexFunc(routes, func(r struct{ name, host, path string }) bool { return r.name == name })].path
}

// sendAll sends attacks: targets and hosts of which a proxy and Tollgate could disagree.
func sendAll(t *testing.T, address, port string) {
	t.Helper()
	hosts := []string{allowedHost + ":" + port, "ALLOWED.example", deniedHost + ":" + port, deniedHost + ".:" + port, deniedHost + ":0" + port,
		"DENIED.example:443", allowedHost + "@" + deniedHost + ":" + port, deniedHost + ":" + port + "\r\nHost: " + allowedHost + ":" + port}
	var targets []string
	for _, path := range []string{
		"/mcp", "/b/mcp", "/a/mcp", "/a", "/@org/b/mcp", "/%40org/b/mcp", "/%40org%2Fb/mcp", "/x/../@org/b/mcp", "/./@org/b/mcp", "//@org/b/mcp",
		"/b/../a/mcp", "/b/%2e%2e/a/mcp", "/b/.%2E/a/mcp", "/b/..;/a/mcp", "/b/;/../a/mcp", "/b/..%3b/a/mcp", "/b/%252e%252e/a/mcp", "/b/..%2fa/mcp",
		"/b/..\\a/mcp", "/b/..%5ca/mcp", "/a;x=1/mcp", "/;/a/mcp", "/A/mcp", "/A", "/B/mcp", "/upper/mcp", "/UPPER/mcp", "/Upper/mcp", "/@ORG/b/mcp", "/%61/mcp", "/%41/mcp",
		"/a%2Fmcp", "/a%00/mcp", "/a#/b", "/b#/../a", "/b?/../a", "/a?/b", "/a/./mcp", "/a//mcp", "/a%20/mcp", "/b/mcp/../../a/mcp", "/%2e/a/mcp", "/%2fa/mcp",
		"/b%2f..%2fa/mcp", "/b/%c0%ae%c0%ae/a/mcp", "/b/\u2025/a/mcp", "/\uff41/mcp", "/..", "/b/..", "b", "a/mcp",
	} {
		targets = append(targets, path)
		if strings.HasPrefix(path, "/") {
			targets = append(targets, "http://"+deniedHost+":"+port+path, "HTTP://"+allowedHost+path)
		}
	}
	targets = append(targets, "*", deniedHost+":"+port, "http://"+allowedHost+"@"+deniedHost+":"+port+"/mcp", "http://"+deniedHost+":"+port+"\\@"+allowedHost+"/mcp")
	reached, methods := map[string]int{}, []string{"GET", "POST", "OPTIONS", "DELETE", "get"}
	for i, target := range targets {
		for j, host := range hosts {
			server := sendRaw(t, address, methods[(i+j)%len(methods)]+" "+target, host)
			if reached[server]++; server != "" && !slices.Contains(mayCall, server) && methods[(i+j)%len(methods)] != "OPTIONS" {
				t.Errorf("%s %s with the host %q reached %s", methods[(i+j)%len(methods)], target, host, server)
			}
		}
	}
	t.Logf("reached were %v", reached)
	for _, upgrade := range []string{"websocket", "h2c"} {
		if server := sendRaw(t, address, "GET /b/mcp", allowedHost+":"+port, "Connection: Upgrade", "Upgrade: "+upgrade); server == upgraded {
			t.Errorf("an upgrade to %s is forwarded", upgrade)
		}
	}
	for _, forged := range []string{
		"X-Tollgate-Server: com.example/root", "X-Original-URL: http://" + allowedHost + ":" + port + "/mcp", "X-Forwarded-Uri: /b/mcp",
		"X-Forwarded-Host: " + allowedHost + ":" + port, "X-Forwarded-Host: " + allowedHost, "X-Forwarded-Method: OPTIONS", "X-Original-Method: OPTIONS",
		"Connection: x-tollgate-server, x-original-url, x-forwarded-host", "X-Rewrite-URL: /b", "Forwarded: host=" + allowedHost,
	} {
		if server := sendRaw(t, address, "GET /a/mcp", allowedHost+":"+port, forged); server != "" {
			t.Errorf("with %s: %s", forged, server)
		}
	}
}

// startBackends runs a tool server for each route, which answers with its name, and returns their addresses
// by the names.
func startBackends(t *testing.T) map[string]string {
	t.Helper()
	addresses := map[string]string{}
	for _, r := range routes {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, got *http.Request) {
			name := r.name
			if got.Header.Get("Upgrade") != "" {
				name = upgraded
			}
			w.Header().Set("X-Reached", name)
		}))
		t.Cleanup(s.Close)
		addresses[r.name] = s.Listener.Addr().String()
	}
	return addresses
}

// routing returns the example of a proxy with the routes, and without the name of a server.
func (s *site) routing(t *testing.T, program, file, address string, backends map[string]string) string {
	t.Helper()
	text := s.readExample(t, file, address, "http://127.0.0.1:1")
	if program == "nginx" {
		server := between(t, text, "  server {\n    listen", "\n  }\n")
		location := between(t, server, "    location /weather/ {", "\n    }\n")
		var servers strings.Builder
		for _, host := range []string{allowedHost, deniedHost} {
			var locations strings.Builder
			for _, r := range routes {
				if r.host == host {
					locations.WriteString(strings.NewReplacer("/weather/", r.path+"/", "com.example/weather", `""`, "http://weather", "http://"+backends[r.name]).Replace(location))
				}
			}
			servers.WriteString(strings.NewReplacer(location, locations.String(), "server_name 127.0.0.1", "server_name "+host).Replace(server))
		}
		return strings.Replace(text, server, servers.String(), 1)
	}
	site := between(t, text, "http://"+address+" {", "\n}\n")
	route := between(t, site, "\troute /weather/* {", "\n\t}\n")
	_, port, _ := net.SplitHostPort(address)
	var sites strings.Builder
	for _, host := range []string{allowedHost, deniedHost} {
		var all strings.Builder
		for _, r := range routes {
			if r.host == host {
				all.WriteString("\thandle " + r.path + "/* {\n" + strings.NewReplacer("route /weather/*", "route",
					"\t\t\theader_up x-tollgate-server com.example/weather\n", "", "reverse_proxy 127.0.0.1:1", "reverse_proxy "+backends[r.name],
				).Replace(route) + "\t}\n")
			}
		}
		sites.WriteString(strings.NewReplacer(route, all.String(), "http://"+address+" {", fmt.Sprintf("http://%s:%s {\n\tbind 127.0.0.1", host, port)).Replace(site))
	}
	return strings.Replace(text, site, sites.String(), 1)
}

// between returns the part of a text from its beginning to its end, with both.
func between(t *testing.T, text, begin, end string) string {
	t.Helper()
	i := strings.Index(text, begin)
	j := strings.Index(text[max(i, 0):], end)
	if i < 0 || j < 0 {
		t.Fatalf("the example has no %q", begin)
	}
	return text[i : i+j+len(end)]
}

// sendRaw sends a request as it is written, and returns the server that it reached; empty for none.
func sendRaw(t *testing.T, address, line, host string, more ...string) string {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	must.Succeed(t, err)
	defer func() { _ = connection.Close() }() // the response was read
	header := line + " HTTP/1.1\r\nConnection: close\r\n"
	if host != "" {
		header += "Host: " + host + "\r\n"
	}
	for _, one := range more {
		header += one + "\r\n"
	}
	_, err = io.WriteString(connection, header+"\r\n")
	must.Succeed(t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil { // the proxy hangs up
		return ""
	}
	defer response.Body.Close()
	return response.Header.Get("X-Reached")
}
