package auditlog

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestDescribe: details are shown in words, and people by their e-mail addresses.
func TestDescribe(t *testing.T) {
	details := audit.Details{
		"riskScore": audit.Number(25.0), "trusted": audit.Flag(true), "actor": audit.Text("7"),
		"action": audit.Text("lock"), "gone": nil, "versions": audit.List{audit.Text("1.0.0"), audit.Text("<b>")},
		"sessionId": audit.Text("9"), "trustLevel": audit.Text("FULL_TRUST"),
		"factors":   audit.Details{"ipReputation": audit.Number(0.0), "failedAttempts": audit.Number(3.0)},
		"ipAddress": audit.Text("192.0.2.1"), "": audit.Text("x"),
		"changes": audit.Details{"state": audit.List{audit.Text("invited"), audit.Text("active")}},
	}
	got, ids, err := describe(details, func(id string) (string, error) { return "ada@example.com, who is " + id, nil })
	want := []site.Field{
		{Name: "", Value: "x"}, {Name: "Done by", Value: "ada@example.com, who is 7"},
		{Name: "Changes, state", Value: "invited → active"},
		{Name: "Score, failed attempts", Value: "3"}, {Name: "Score, network reputation", Value: "0"}, {
			Name: "Gone", Value: "none",
		},
		{Name: "IP address", Value: "192.0.2.1"}, {Name: "Risk score", Value: "25"}, {
			Name: "Trust level", Value: "full trust",
		}, {Name: "Trusted", Value: "yes"},
		{Name: "Versions", Value: "1.0.0, <b>"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %q\nwant %q", err, got, want)
	}
	if want := []site.Field{{Name: "Session", Value: "9"}}; !slices.Equal(ids, want) {
		t.Errorf("the ids are %q, want %q", ids, want)
	}
	scored := audit.Details{
		"factors": audit.Details{"ipReputation": audit.Number(5.0)}, "reasons": audit.Details{
			"ipReputation": audit.Text("a proxy"),
		},
	}
	if got, _, err := describe(scored, nil); err != nil ||
		!slices.Equal(got, []site.Field{{Name: "Score, network reputation", Value: "5 points: a proxy"}}) {
		t.Errorf("got %v, %q for a score with reasons", err, got)
	}
	away := errors.New("away")
	if _, _, err := describe(details, func(string) (string, error) { return "", away }); !errors.Is(err, away) {
		t.Errorf("without accounts: %v", err)
	}
}

// TestEveryEventIsASentence reads the events that the acceptance tests have recorded, of all
// categories and actions.
func TestEveryEventIsASentence(t *testing.T) {
	files, err := filepath.Glob("../../../../test/acceptance/*/testdata/audit/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	line := regexp.MustCompile(`^(\w+) person=\w+ success=(\w+) (\{.*\})$`)
	categories := map[audit.Category]bool{}
	for _, file := range append(files, "../../../../test/acceptance/statuses/testdata/audit.golden") {
		content, err := os.ReadFile(file)
		must.Succeed(t, err)
		for text := range strings.Lines(string(content)) {
			parts := line.FindStringSubmatch(strings.TrimSpace(text))
			if parts == nil {
				continue
			}
			e := audit.Event{Category: audit.Category(parts[1]), Success: parts[2] == "true"}
			must.Succeed(t, json.Unmarshal([]byte(parts[3]), &e.Details))
			categories[e.Category] = true
			wantSentence(t, &e)
		}
	}
	for _, c := range audit.Categories() {
		if !categories[c] {
			t.Errorf("there is no event of %s", c)
		}
	}
}

// wantSentence fails if the event has no sentence.
func wantSentence(t *testing.T, e *audit.Event) {
	t.Helper()
	got := e.Sentence(func(text string) string { return text })
	if strings.HasPrefix(got, strings.ReplaceAll(strings.ToLower(string(e.Category)), "_", " ")) {
		t.Errorf("%s %s is %q", e.Category, e.Action(), got)
	}
}

// TestEveryActionIsASentence reads the actions from the constructors of the core.
func TestEveryActionIsASentence(t *testing.T) {
	action := regexp.MustCompile(`(?:\b[aA]ction: |audit\.Action\(|audit\.Action = |Change\(|\bof\()"([a-z_]+[a-z])"`)
	found := map[string]bool{}
	for _, root := range []string{"../../../../core", "../../../../adapters/rest/adminapi"} {
		err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, parts := range action.FindAllSubmatch(content, -1) {
				found[string(parts[1])] = true
			}
			return err
		})
		must.Succeed(t, err)
	}
	if len(found) < 40 {
		t.Fatalf("only %d actions are found", len(found))
	}
	for name := range found {
		e := audit.Event{Success: true, Details: audit.Details{audit.DetailAction: audit.Text(name)}}
		known := false
		for _, c := range audit.Categories() {
			e.Category = c
			unknown := strings.ReplaceAll(strings.ToLower(string(c)), "_", " ")
			known = known || !strings.HasPrefix(e.Sentence(func(text string) string { return text }), unknown)
		}
		if !known {
			t.Errorf("the action %s has no sentence in core/audit/sentence.go", name)
		}
	}
}

func TestCSVHasNoFormulas(t *testing.T) {
	rows, err := csvRows([]eventLine{{Who: "=1+1", What: `-published "x", y`, From: "@a;=2+2;\t=1\n@b", Success: true}})
	must.Succeed(t, err)
	got, err := site.WriteCSV(rows)
	if want := "time,who,what,from,type,outcome,id,details\n,'=1+1,\"'-published \"\"x\"\", y\",\"'@a;'=2+2;'\t=1\n'@b\",,done,,{}\n"; err != nil ||
		strings.Replace(string(got), "null", "{}", 1) != want {
		t.Errorf("got %s, %v", got, err)
	}
}
