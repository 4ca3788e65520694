package site

import (
	"bytes"
	"mime/multipart"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestIsLocal(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"/console/": true, "/console/account?done=session": true, "/console/servers/com.example/a": true,
		"": false, "/": false, "/v0.1/servers": false, "//console/": false, "https://console/": false,
		"/console":      false,
		"/console/../x": false, "/console/a/..": false, `/console/\x`: false, "/console/\nx": false,
		"/console/%zz": false, "console/": false,
		"/console/%2e%2e/x": false, "javascript:/console/": false,
	} {
		if got := isLocal(address); got != want {
			t.Errorf("isLocal(%q) is %t", address, got)
		}
	}
}

func TestIsThisMachine(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "localhost:3000": true, "127.0.0.1": true, "127.0.0.1:80": true, "[::1]": true,
		"[::1]:3000": true,
		"":           false, "localhost.example.com": false, "127.0.0.2": false, "0.0.0.0": false,
		"example.com:3000": false,
		"[::2]:80":         false,
	} {
		if got := isThisMachine(host); got != want {
			t.Errorf("isThisMachine(%q) is %t", host, got)
		}
	}
}

func TestFirstLanguage(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "de": "de", "de-DE,de;q=0.9": "de-DE", "fr;q=0.5, en": "fr", " it , en": "it",
	} {
		if got := firstLanguage(header); got != want {
			t.Errorf("firstLanguage(%q) is %q, want %q", header, got, want)
		}
	}
}

// TestDeviceReasons checks that each reason of the score for a device has words for its owner.
func TestDeviceReasons(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range []risk.Device{
		{}, {Confirmed: true}, {Confirmed: true, Proven: true}, {Confirmed: true, Trusted: true}, {
			Trusted: true, Proven: true,
		},
	} {
		a := risk.Assess(authtest.Weights(), risk.Signals{Device: d})
		if _, known := deviceReasons[a.Reasons[risk.DeviceFamiliarity]]; a.Factors[risk.DeviceFamiliarity] > 0 &&
			!known {
			t.Errorf("there are no words for %q", a.Reasons[risk.DeviceFamiliarity])
		}
		seen[a.Reasons[risk.DeviceFamiliarity]] = true
	}
	for reason := range deviceReasons {
		if !seen[reason] {
			t.Errorf("%q is no reason of the score", reason)
		}
	}
	got := DescribeReasons([]assessment.Reason{
		{Factor: risk.GeographicAnomaly, Points: 9, Text: "FR is not a usual country"},
	}, auth.FullTrust)
	if !slices.Equal(got, []string{"Place: FR is not a usual country."}) {
		t.Errorf("the reasons are %q", got)
	}
}

func TestParseMultipart(t *testing.T) {
	t.Parallel()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	field := func(name, value string) {
		part, err := w.CreateFormField(name)
		must.Succeed(t, err)
		_, _ = part.Write([]byte(value)) // a buffer never fails to write
	}
	field("document", "line 1\r\nline 2\rline 3\n")
	field("twice", "a")
	field("twice", "b")
	for name, file := range map[string]string{"file": "server.json", "none": ""} {
		part, err := w.CreateFormFile(name, file)
		must.Succeed(t, err)
		_, _ = part.Write([]byte(file))
	}
	must.Succeed(t, w.Close())
	form, err := parseMultipart(body.Bytes(), w.Boundary())
	must.Succeed(t, err)
	if form.Get("document") != "line 1\nline 2\nline 3\n" || !slices.Equal(form["twice"], []string{"a", "b"}) ||
		form.Get("file") != "server.json" || form.Has("none") {
		t.Errorf("the form is %q", form)
	}
	for _, wrong := range []string{
		"", "x",
		strings.Repeat("--"+w.Boundary()+"\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n", maxFields+1),
	} {
		if _, err := parseMultipart([]byte(wrong), w.Boundary()); !fault.Is(err, fault.Invalid) {
			t.Errorf("a form of %d bytes: %v", len(wrong), err)
		}
	}
}

// TestStaticFiles checks that the script is small, and that neither it nor the style names another
// site.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	const maxScript = 5 << 10
	if len(scriptFile) > maxScript {
		t.Errorf("the script has %d bytes", len(scriptFile))
	}
	for _, file := range [][]byte{styleFile, scriptFile} {
		for _, other := range []string{"http:", "https:", "@import", "url("} {
			if bytes.Contains(file, []byte(other)) {
				t.Errorf("a file has %s:\n%.200s", other, file)
			}
		}
	}
}

func FuzzForms(f *testing.F) {
	f.Add([]byte("a=1&b=%20"), "x")
	f.Add([]byte("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n"), "x")
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		for _, parse := range []func() (map[string][]string, error){
			func() (map[string][]string, error) { form, err := parseURLEncoded(body); return form, err },
			func() (map[string][]string, error) { form, err := parseMultipart(body, boundary); return form, err },
		} {
			form, err := parse()
			if err != nil && !fault.Is(err, fault.Invalid) {
				t.Errorf("the error is %v", err)
			}
			for name, values := range form {
				for _, v := range values {
					if strings.Contains(v, "\r") {
						t.Errorf("%q has %q", name, v)
					}
				}
			}
		}
	})
}
