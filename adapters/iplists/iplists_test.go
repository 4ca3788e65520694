package iplists

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/signals"
	"github.com/tollgate-dev/tollgate/ports/signals/signalstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func writeList(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.txt")
	rewriteList(t, path, lines...)
	return path
}

func rewriteList(t testing.TB, path string, lines ...string) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
}

func TestContract(t *testing.T) {
	signalstest.Reputation(t, func(t *testing.T, ratings signalstest.Ratings) signals.Reputation {
		var c Config
		for name, class := range map[string]risk.AddressClass{
			"hosting": risk.Hosting, "proxy": risk.Proxy, "tor": risk.Tor, "listed": risk.Listed,
		} {
			c.Lists = append(c.Lists, name+"="+writeList(t, ratings[class]...))
		}
		return openLists(t, c)
	})
}

func openLists(t *testing.T, c Config) *Reputation {
	t.Helper()
	r, err := Open(c)
	must.Succeed(t, err)
	return r
}

func rateAddress(r *Reputation, address string) risk.Reputation {
	return r.Rate(context.Background(), netip.MustParseAddr(address))
}

// TestByteOrderMark checks that the mark is ignored at the start of the file, and only there.
func TestByteOrderMark(t *testing.T) {
	for _, begins := range []string{"", "# ", "\r\n"} {
		if r := openLists(t, Config{
			Lists: []string{writeList(t, "\ufeff"+begins+"203.0.113.7", "203.0.113.8")},
		}); rateAddress(r, "203.0.113.8").Class != risk.Listed {
			t.Errorf("%q: the second line is not listed", begins)
		} else if listed := rateAddress(r, "203.0.113.7").Class == risk.Listed; listed != (begins != "# ") {
			t.Errorf("%q: the first line is listed: %v", begins, listed)
		}
	}
	if _, err := Open(Config{Lists: []string{writeList(t, "203.0.113.7", "\ufeff203.0.113.8")}}); err == nil ||
		!strings.Contains(err.Error(), ":2: ") {
		t.Errorf("Open with a mark on the second line returned %v", err)
	}
}

func TestValidLines(t *testing.T) {
	r := openLists(t, Config{Lists: []string{writeList(t,
		"# a comment", "", "  203.0.113.7 # another\r", "198.51.100.9/24", "::ffff:192.0.2.0/120", "::ffff:192.0.3.1",
		"2001:DB8::/32")}})
	for address, want := range map[string]risk.AddressClass{
		"203.0.113.7": risk.Listed, "203.0.113.8": risk.Clean, "198.51.100.1": risk.Listed,
		"192.0.2.255": risk.Listed, "192.0.3.1": risk.Listed, "192.0.3.2": risk.Clean, "2001:db8::7": risk.Listed,
	} {
		if got := rateAddress(r, address); got != (risk.Reputation{State: risk.Known, Class: want}) {
			t.Errorf("%s is %+v, want class %d", address, got, want)
		}
	}
	if got := rateAddress(openLists(t, Config{}), "203.0.113.7"); got != (risk.Reputation{}) {
		t.Errorf("the rating without lists is %+v", got)
	}
	if got := rateAddress(openLists(t, Config{Lists: []string{writeList(t)}}), "203.0.113.7"); got != (risk.Reputation{
		State: risk.Known,
	}) {
		t.Errorf("the rating by an empty list is %+v", got)
	}
}

func TestInvalidLines(t *testing.T) {
	for _, line := range []string{
		"example.com", "203.0.113", "203.0.113.0/33", "203.0.113.7 203.0.113.8", "203.0.113.1-203.0.113.9",
		"::ffff:0:0/95", "/24",
		strings.Repeat("1", maxLine+1),
	} {
		path := writeList(t, "# first", "203.0.113.7", line, "203.0.113.8")
		_, err := Open(Config{Lists: []string{"tor=" + path}})
		if err == nil || !strings.HasPrefix(err.Error(), "IP_REPUTATION_LISTS: "+path+":3: ") ||
			len(err.Error()) > len(path)+200 {
			t.Errorf("%.40q: error %v, want one that names the setting, the file and line 3", line, err)
		}
	}
}

func TestParseSetting(t *testing.T) {
	lists, err := Config{
		Lists: []string{"a.txt", " tor=b=c.txt", "hosting = d", "./x=y.txt", "listed=e", "proxy=f"},
	}.parseLists()
	must.Succeed(t, err)
	want := []listFile{
		{risk.Listed, "a.txt"}, {risk.Tor, "b=c.txt"}, {risk.Listed, "hosting = d"}, {risk.Listed, "./x=y.txt"}, {
			risk.Listed, "e",
		}, {risk.Proxy, "f"},
	}
	for i, l := range lists {
		if l != want[i] {
			t.Errorf("list %d is %+v, want %+v", i, l, want[i])
		}
	}
	for _, wrong := range []string{"spam=a.txt", "clean=a.txt", "=a.txt", "tor=", "", "Tor=a.txt"} {
		if err := (Config{
			Lists: []string{wrong},
		}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "IP_REPUTATION_LISTS: ") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := Open(Config{Lists: []string{"none.txt"}}); err == nil || !strings.Contains(err.Error(), "none.txt") {
		t.Errorf("Open of a missing file returned %v", err)
	}
}

func TestReload(t *testing.T) {
	path := writeList(t, "203.0.113.7")
	r := openLists(t, Config{Lists: []string{"tor=" + path, "proxy=" + path}})
	rewriteList(t, path, "nonsense")
	if err := r.Reload(path); err == nil || rateAddress(r, "203.0.113.7").Class != risk.Tor {
		t.Errorf("Reload of an invalid list: error %v, rating %+v", err, rateAddress(r, "203.0.113.7"))
	}
	rewriteList(t, path, "203.0.113.8")
	if err := r.Reload(path); err != nil || rateAddress(r, "203.0.113.7").Class != risk.Clean ||
		rateAddress(r, "203.0.113.8").Class != risk.Tor {
		t.Errorf("Reload of a changed list: error %v, or a wrong rating", err)
	}
}

// FuzzParse checks that every list is parsed or refused with a line, and that each address that is
// alone on a line is found.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parseList(strings.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), ":") {
				t.Fatalf("the error %v does not name a line", err)
			}
			return
		}
		for line := range strings.Lines(text) {
			if a, err := netip.ParseAddr(strings.TrimSpace(line)); err == nil &&
				!table.Contains(a.Unmap().WithZone("")) {
				t.Fatalf("%s is not in the table", a)
			}
		}
	})
}
