package tools

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func sourceFields(change audit.Details) audit.Details {
	f := audit.Details{
		"name": audit.Text("weather"), "server": audit.Text("com.example/weather"), "remote": audit.Text("HTTPS://Weather.example:443/mcp"),
		"headers": audit.Details{"Authorization": audit.Text("Bearer sesame")},
	}
	for name, v := range change {
		f[name] = v
	}
	return f
}

// TestRemoteSources checks what is a remote source, and that no error repeats a value.
func TestRemoteSources(t *testing.T) {
	t.Parallel()
	s, err := ParseRemoteSource(sourceFields(nil))
	if err != nil || s.Remote != "https://weather.example/mcp" || s.Headers["Authorization"] != "Bearer sesame" {
		t.Errorf("the source is %+v, %v", s, err)
	}
	header := func(name, value string) audit.Value { return audit.Details{name: audit.Text(value)} }
	for field, values := range map[string][]audit.Value{
		"name":   {nil, audit.Text("A")},
		"server": {nil, audit.Text("com.example/*")},
		"remote": {
			nil, audit.Text("http://weather.example/mcp"), audit.Text("https://a:b@weather.example/mcp"), audit.Text("https://{tenant}.example/mcp"),
			audit.Text("wss://weather.example/mcp"), audit.Text("https://" + strings.Repeat("a", 2048)),
		},
		"headers": {
			audit.Details{}, header("", "sesame"), header("X Y", "sesame"), header("X-Key: sesame", "x"), header("Host", "sesame"), header("content-LENGTH", "7"),
			header("Mcp-Session-Id", "sesame"), header("Proxy-Authorization", "sesame"), header("X", ""), header("X", " sesame"), header("X", "ses\name"),
			header("X", "sésame"), header("X", strings.Repeat("s", 4097)), audit.Details{"X": audit.Text("sesame"), "x": audit.Text("sesame")},
		},
	} {
		for _, v := range values {
			_, err := ParseRemoteSource(sourceFields(audit.Details{field: v}))
			if f, _ := fault.As(err); !fault.Is(err, fault.Invalid) || f.Field != field || strings.Contains(err.Error(), "sesame") {
				t.Errorf("%s %v: %v", field, v, err)
			}
		}
	}
	for _, u := range []string{"http://localhost:8080/mcp", "http://127.0.0.1/mcp", "https://weather.example/mcp?a=b"} {
		if _, err := ParseRemoteSource(sourceFields(audit.Details{"remote": audit.Text(u)})); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}

// TestStoredSources checks that a source is read as it was stored, without its headers in clear.
func TestStoredSources(t *testing.T) {
	t.Parallel()
	s, err := ParseRemoteSource(sourceFields(nil))
	must.Succeed(t, err)
	s.Sealed = []byte{0, 255}
	stored := s.StoredFields()
	if stored["headers"] != nil {
		t.Errorf("stored is %v", stored)
	}
	s.Headers = nil
	if got, err := ReadRemoteSource(stored); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("read is %+v, %v, want %+v", got, err, s)
	}
}
