package operator

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/test/must"
)

// alarmKind is a kind that the program does not have.
var alarmKind = kinds.Kind{
	Name: "fireAlarm", List: "fireAlarms", Fields: []kinds.Field{
		{Name: "name", Required: true, Column: "NAME"},
		{Name: "room", Required: true, Column: "ROOM"},
		{Name: "level", Required: true, Usage: "how loud", Options: kinds.Words("low", "high"), Column: "LEVEL"},
		{Name: "wardens", Shape: kinds.Texts, Usage: "who comes", Column: "WARDENS"},
		{Name: "bells", Shape: kinds.Number, Usage: "how many", Default: "2"},
		{Name: "silent", Shape: kinds.Flag, Usage: "without bells"},
		{Name: "testedAt", Control: kinds.ControlEnd, Usage: "last test", Column: "TESTED"},
		{Name: "pin", Secret: true, Usage: "read the pin from standard input"},
		{Name: "doors", Shape: kinds.Objects, Usage: "door that it opens", Column: "DOORS", Inner: []kinds.Field{
			{Name: "floor", Shape: kinds.Number}, {Name: "side", Required: true, Column: "SIDE"},
		}},
		{Name: "note"},
	},
}

// alarms is a service with objects of any kind, which it takes as they are.
type alarms map[string]object

func (a alarms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, one := strings.CutPrefix(r.URL.Path, "/admin/v1/fire-alarms/")
	stored, found := a[name]
	var answer any = stored
	switch {
	case !one:
		list := []object{}
		for _, o := range a {
			list = append(list, o)
		}
		answer = object{"fireAlarms": list, "metadata": object{}}
	case r.Method == http.MethodPut && found && r.Header.Get("If-None-Match") != "":
		w.WriteHeader(http.StatusPreconditionFailed)
		answer = object{"error": "stale", "message": "stale"}
	case r.Method == http.MethodPut:
		given := object{"name": name, "managedBy": "ada", "pin": nil}
		_ = json.NewDecoder(r.Body).Decode(&given) // a body that is wrong is no body
		a[name], answer = given, given
	case !found:
		w.WriteHeader(http.StatusNotFound)
		answer = object{"error": "resource_not_found", "message": "no"}
	case r.Method == http.MethodDelete:
		delete(a, name)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Etag", `"1"`)
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// alarmSite runs the commands of the kind with some texts at a service.
type alarmSite struct {
	url   string
	texts kindTexts
	kept  alarms
}

func newAlarmSite(t *testing.T, texts kindTexts) *alarmSite {
	t.Helper()
	s := &alarmSite{texts: texts, kept: alarms{}}
	server := httptest.NewServer(s.kept)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *alarmSite) run(stdin, line string) (string, error) {
	var out strings.Builder
	p := cli.Process{
		Environ: []string{person.TokenVariable + "=token", person.ServerVariable + "=" + s.url},
		Stdin:   strings.NewReader(stdin), Stdout: &out, Stderr: io.Discard,
	}
	root := &cobra.Command{Use: "tollgate", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(newKind(p, &alarmKind, s.texts).newGroup())
	root.SetArgs(strings.Fields(line))
	root.SetOut(&out)
	err := root.Execute()
	return out.String(), err
}

// TestKind: the commands of a kind are those of its description, also without any text.
func TestKind(t *testing.T) {
	s := newAlarmSite(t, kindTexts{})
	for _, step := range []struct{ line, want string }{
		{
			`fire-alarm set a hall --level high --warden eve,bob --tested-at 2090-01-31T12:00:00.5Z --pin-stdin --door {"side":"left"}`,
			"NAME ROOM LEVEL WARDENS TESTED DOORS MANAGED BY a hall high eve, bob 31 Jan 2090 left ada",
		},
		{"fire-alarm show a -o json", `[ { "name": "a", "room": "hall", "level": "high", "wardens": [ "eve", "bob" ], ` +
			`"testedAt": "2090-01-31T12:00:00Z", "doors": [ { "side": "left" } ], "managedBy": "ada", "bells": 2, "silent": false, "note": "" } ]`},
		{"fire-alarm list -o wide", "NAME ROOM LEVEL WARDENS TESTED DOORS MANAGED BY BELLS SILENT NOTE " +
			"a hall high eve, bob 2090-01-31T12:00:00Z left ada 2 false"},
		{"fire-alarm remove a", ""},
		{"fire-alarm list", "NAME ROOM LEVEL WARDENS TESTED DOORS MANAGED BY"},
	} {
		out, err := s.run("1234", step.line)
		must.Succeed(t, err)
		if got := strings.Join(strings.Fields(out), " "); got != step.want {
			t.Errorf("%s: %s", step.line, got)
		}
	}
	help, err := s.run("", "fire-alarm set --help")
	must.Succeed(t, err)
	for _, text := range []string{
		"Add a fire alarm, or change the one with its name", "set NAME ROOM --level LEVEL", "--bells int", "(default 2)",
		"--pin-stdin", "--warden strings", "tollgate fire-alarm set example ROOM --level LEVEL",
	} {
		if !strings.Contains(help, text) {
			t.Errorf("the help does not have %q: %s", text, help)
		}
	}
	if words, _ := s.run("", "__complete fire-alarm set a hall --level="); !strings.Contains(words, "low\nhigh\n") {
		t.Errorf("completion: %s", words)
	}
}

// TestKindErrors: commands of a kind refuse wrong use, objects that are missing and those that exist.
func TestKindErrors(t *testing.T) {
	s := newAlarmSite(t, kindTexts{add: true})
	for _, step := range []struct{ line, want string }{
		{"fire-alarm add a hall --level low", ""},
		{"fire-alarm add a hall --level low", "there is a fire alarm a already: remove it first"},
		{"fire-alarm add b hall", `required flag(s) "level" not set`},
		{"fire-alarm add b --level low", "accepts 2 arg(s), received 1"},
		{"fire-alarm add b hall --level low --door x", "--door: invalid character 'x' looking for beginning of value"},
		{`fire-alarm add b hall --level low --door {"x":1}`, `--door: json: unknown field "x"`},
		{"fire-alarm add b hall --level low --bells many", `invalid argument "many" for "--bells" flag: strconv.ParseInt: parsing "many": invalid syntax`},
		{"fire-alarm remove b", "there is no fire alarm with the name \"b\""},
	} {
		got := ""
		if _, err := s.run("", step.line); err != nil {
			got = err.Error()
		}
		if got != step.want {
			t.Errorf("%s: %s", step.line, got)
		}
	}
}

// TestRevise: a kind whose objects are revised keeps the fields whose flags are not given.
func TestRevise(t *testing.T) {
	s := newAlarmSite(t, kindTexts{revise: true})
	for _, line := range []string{"fire-alarm set a hall --level high --warden eve", "fire-alarm set a attic --level low --silent"} {
		_, err := s.run("", line)
		must.Succeed(t, err)
	}
	a := s.kept["a"]
	wardens, _ := a["wardens"].([]any)
	if a["room"] != "attic" || a["level"] != "low" || a["silent"] != true || !slices.Equal(wardens, []any{"eve"}) {
		t.Errorf("the object is %v", a)
	}
	if out, err := s.run("", "fire-alarm show b"); err == nil || err.Error() != "there is no fire alarm with the name \"b\"" {
		t.Errorf("another object: %v, %s", err, out)
	}
}
