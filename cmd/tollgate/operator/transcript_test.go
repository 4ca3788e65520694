package operator_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// transcript is a file of testdata: commands, and what each prints. Lines that begin with # are notes
// on the command below them, a line with < is its standard input. After "-- NAME --" follow files of
// the folder DIR. A note "with NAME=VALUE" at the beginning is a setting.
type transcript struct {
	path     string
	settings []string
	commands []command
	files    string // as the transcript has them
}

// command is a command of a transcript.
type command struct{ notes, line, stdin string }

// readTranscripts returns the transcripts in a folder of testdata.
func readTranscripts(t *testing.T, folder string) (all []transcript) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no transcripts: %v", folder, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parseTranscript(path, string(text)))
	}
	return all
}

func parseTranscript(path, text string) transcript {
	s, notes := transcript{path: path}, ""
	text, files, _ := strings.Cut(text, "\n-- ")
	if files != "" {
		s.files = "\n-- " + files
	}
	for line := range strings.Lines(text) {
		last := max(len(s.commands)-1, 0)
		switch kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); kind {
		case "#":
			if notes += line; strings.HasPrefix(rest, "with ") {
				s.settings = append(s.settings, strings.TrimPrefix(rest, "with "))
			}
		case "$":
			s.commands, notes = append(s.commands, command{notes, rest, ""}), ""
		case "<":
			s.commands[last].stdin += rest + "\n"
		}
	}
	return s
}

// name returns the name of the transcript.
func (s *transcript) name() string { return strings.TrimSuffix(filepath.Base(s.path), ".txt") }

// writeFiles writes the files of the transcript into a folder.
func (s *transcript) writeFiles(t *testing.T, folder string) {
	t.Helper()
	for _, file := range strings.Split(s.files, "\n-- ")[1:] {
		name, content, _ := strings.Cut(file, " --\n")
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		fixture.WriteFile(t, path, content+"\n")
	}
}

// compare fails the test unless the transcript has the outputs of its commands. With -update it
// writes them.
func (s *transcript) compare(t *testing.T, outputs []string) {
	t.Helper()
	var got strings.Builder
	for i, c := range s.commands {
		got.WriteString(c.notes + "$ " + c.line + "\n")
		for line := range strings.Lines(c.stdin) {
			got.WriteString("< " + line)
		}
		got.WriteString(outputs[i] + "\n")
	}
	text := strings.TrimSuffix(got.String(), "\n") + s.files
	if *fixture.Update {
		fixture.WriteFile(t, s.path, text)
		return
	}
	want, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if text == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i := range gotLines {
		if i >= len(wantLines) || gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d: the commands print\n%s", s.path, i+1, strings.Join(gotLines[max(0, i-6):min(i+9, len(gotLines))], "\n"))
		}
	}
	t.Fatalf("%s is longer than what the commands print", s.path)
}

// place is where the commands of a transcript run.
type place struct {
	*fixture.Environment
	words []string // of transcripts, each with what it stands for here
	more  []string // the last arguments of each command
}

// outcome is what a command has done.
type outcome struct {
	stdout, stderr string
	code           int
}

// String returns the outcome as a transcript has it.
func (o outcome) String() string {
	text := o.stdout
	for line := range strings.Lines(o.stderr) {
		text += "! " + line
	}
	if o.code != 0 {
		text += "! exit code " + strconv.Itoa(o.code) + "\n"
	}
	return text
}

// run runs the commands of a transcript.
func (p *place) run(t *testing.T, s *transcript) []outcome {
	t.Helper()
	outcomes, id := make([]outcome, len(s.commands)), ""
	known := strings.NewReplacer(p.words...)
	for i, c := range s.commands {
		args := append(splitWords(known.Replace(strings.ReplaceAll(c.line, " ID", " "+id))), p.more...)
		stdout, stderr, code := p.TryCommand(t, known.Replace(c.stdin), args...)
		id = cmp.Or(anID.FindString(stdout), id)
		outcomes[i] = outcome{p.settle(stdout), p.settle(stderr), code}
	}
	return outcomes
}

// splitWords returns the words of a line. What is in single quotes is one word.
func splitWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

var (
	anID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}`)
	varies = regexp.MustCompile(anID.String() + `|tg[ps]_[0-9A-Za-z]{8,}|20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z|` +
		`[A-Za-z0-9_=-]{30,}`)
	actors = regexp.MustCompile(`\boperator\b|\bboss@example\.com\b`)
	spaces = regexp.MustCompile(`([^ \n]) +`)
)

// settle replaces what differs from run to run, and who has acted.
func (p *place) settle(text string) string {
	for i := 0; i+1 < len(p.words); i += 2 {
		text = strings.ReplaceAll(text, p.words[i+1], p.words[i])
	}
	text = actors.ReplaceAllString(varies.ReplaceAllString(text, "…"), "ACTOR")
	return strings.ReplaceAll(spaces.ReplaceAllString(text, "$1 "), " \n", "\n")
}
