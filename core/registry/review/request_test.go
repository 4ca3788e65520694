package review_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

func TestParseReason(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("é", review.MaxReason)
	for text, want := range map[string]string{" For maps.\n": "For maps.", longest: longest} {
		if got, err := review.ParseReason(text); got != want || err != nil {
			t.Errorf("ParseReason(%.20q) is %.20q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " \n", longest + "é", "a\x00", "\xff"} {
		if _, err := review.ParseReason(text); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "reason ") {
			t.Errorf("ParseReason(%.20q): %v", text, err)
		}
	}
}

func TestParseSource(t *testing.T) {
	t.Parallel()
	longest := "https://example.com/" + strings.Repeat("a", review.MaxSource-len("https://example.com/"))
	for _, text := range []string{"https://example.com/server.json?ref=main", "http://example.com", longest} {
		if got, err := review.ParseSource(text); got != text || err != nil {
			t.Errorf("ParseSource(%.40q) is %.40q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "https://", "ftp://example.com/a", "file:///etc/passwd", "https:example.com", "https://a@example.com/",
		"https://example.com/a b", "https://example.com/#a", "https://exämple.com/", longest + "a",
	} {
		if _, err := review.ParseSource(text); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "serverName: ") {
			t.Errorf("ParseSource(%.40q): %v", text, err)
		}
	}
}
