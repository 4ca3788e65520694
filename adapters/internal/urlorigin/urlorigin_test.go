package urlorigin_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/internal/urlorigin"
)

func TestOf(t *testing.T) {
	for given, want := range map[string]string{
		"https://tools.example.com":            "https://tools.example.com",
		"https://tools.example.com/":           "https://tools.example.com",
		"https://tools.example.com/a/b?c=d#e":  "https://tools.example.com",
		"HTTPS://Tools.Example.COM":            "https://tools.example.com",
		"https://tools.example.com:443":        "https://tools.example.com",
		"https://tools.example.com:0443/":      "https://tools.example.com",
		"https://tools.example.com:":           "https://tools.example.com",
		"https://tools.example.com:80":         "https://tools.example.com:80",
		"http://tools.example.com:80":          "http://tools.example.com",
		"http://tools.example.com:443":         "http://tools.example.com:443",
		"http://localhost:8080":                "http://localhost:8080",
		"http://127.0.0.1:8080/x":              "http://127.0.0.1:8080",
		"https://[2001:DB8:0::1]":              "https://[2001:db8::1]",
		"https://[2001:db8::1]:443":            "https://[2001:db8::1]",
		"http://[::1]:8080/":                   "http://[::1]:8080",
		"":                                     "",
		"tools.example.com":                    "",
		"//tools.example.com":                  "",
		"ftp://tools.example.com":              "",
		"https://":                             "",
		"https://:443":                         "",
		"https:tools.example.com":              "",
		"https://user:pass@tools.example.com/": "",
		"https://tools.example.com:65536":      "",
		"https://tools.example.com:0":          "",
		"https://tools.example.com:x":          "",
		"https://[fe80::1%25eth0]":             "",
		"https://tools example.com":            "",
	} {
		got, err := urlorigin.Of(given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Of(%q) = %q, %v; want %q", given, got, err, want)
		}
	}
}
