package site

import (
	"html/template"
	"io"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// TestErrorsOfTemplates checks that an error of a name that a template reads keeps its kind, so
// that the page of the error has the right status.
func TestErrorsOfTemplates(t *testing.T) {
	t.Parallel()
	page := template.Must(template.New("page").Parse("{{range .}}{{$.NameOf .}}{{end}}"))
	if err := page.Execute(io.Discard, unavailableNames{"ada"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the error is %v", err)
	}
}

type unavailableNames []string

func (unavailableNames) NameOf(any) (string, error) {
	return "", fault.New(fault.Unavailable, "the database is away")
}

// TestInitials checks the letters for names and e-mail addresses.
func TestInitials(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ada@example.com": "AD", "ada.lovelace@example.com": "AL", "x@example.com": "X", "read-wiki": "RW", "Customer relations": "CR",
		"a-b-c": "AB", "élan": "ÉL", "...": "", "": "", "24": "24",
	} {
		if got := initials(name); got != want {
			t.Errorf("initials(%q) = %q, want %q", name, got, want)
		}
	}
}
