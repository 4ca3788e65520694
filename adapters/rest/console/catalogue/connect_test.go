package catalogue

import (
	"os"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestLinksOfPublishers checks which addresses of a publisher are links: those of web pages whose host is not written to look
// like another one.
func TestLinksOfPublishers(t *testing.T) {
	for address, host := range map[string]string{
		"https://example.com/docs": "example.com", "http://example.com": "example.com", "https://github.com@evil.example/": "",
		"https://a:b@evil.example/": "", "javascript:alert(1)": "", "https:///docs": "", "//example.com": "", "ftp://example.com/": "",
	} {
		link := newLink(address)
		if (link != nil) != (host != "") || link != nil && link.Host != host {
			t.Errorf("%s is the link %+v, want the host %q", address, link, host)
		}
	}
}

// TestProgramsAreAsDocumented checks that the page says what the documentation of clients says: each
// file, and each setting.
func TestProgramsAreAsDocumented(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		if p.List == "" {
			continue
		}
		page, err := os.ReadFile("../../../../docs/clients/" + string(p.List) + ".md")
		must.Succeed(t, err)
		wanted := []string{p.Setting}
		for _, place := range p.Places {
			wanted = append(wanted, "| "+place.System+" | `"+place.File+"` |")
		}
		for _, text := range wanted {
			if !strings.Contains(string(page), text) {
				t.Errorf("%s: the documentation does not have %s", p.Name, text)
			}
		}
	}
}
