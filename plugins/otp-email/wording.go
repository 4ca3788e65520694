package main

import (
	"embed"
	"errors"
	"fmt"
	html "html/template"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	text "text/template"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

//go:embed templates
var builtIn embed.FS

// maxTemplate bounds a template file, in bytes.
const maxTemplate = 256 << 10

// The endings of the three templates of each kind of message.
const (
	subjectPart = ".subject"
	textPart    = ".txt"
	htmlPart    = ".html"
)

// content is what templates may speak of.
type content struct {
	Product string
	Code    string // a code's only
	Minutes int    // a code's only: for how long it is good, rounded up
	Subject string // a notice's only
	Text    string // a notice's only
}

// Paragraphs are the parts of a notice's text between empty lines, each with its lines.
func (c content) Paragraphs() [][]string {
	var list [][]string
	for paragraph := range strings.SplitSeq(c.Text, "\n\n") {
		list = append(list, strings.Split(paragraph, "\n"))
	}
	return list
}

// words are a message as it is sent.
type words struct{ subject, text, html string }

// sheet is the three templates of one kind of message.
type sheet struct {
	subject, text *text.Template
	html          *html.Template
}

// wording are all templates.
type wording struct{ code, notice sheet }

// newWording reads the templates: those of a folder, if one is given, and the built-in ones for the rest. It fails when one is
// wrong, does not give the code, or has a name that stands for none.
func newWording(folder string) (*wording, error) {
	own, err := fs.Sub(builtIn, "templates")
	if err != nil {
		return nil, err
	}
	from := shelf{own: own}
	if folder != "" {
		from.given = os.DirFS(folder)
		if err := from.known(); err != nil {
			return nil, err
		}
	}
	var w wording
	if w.code, err = from.sheet(sdk.OTP); err != nil {
		return nil, err
	}
	if w.notice, err = from.sheet(sdk.Notice); err != nil {
		return nil, err
	}
	return &w, w.try()
}

// try words a message of each kind.
func (w *wording) try() error {
	const code, told = "7319420", "told"
	c, err := w.of(content{Product: "Tollgate", Code: code, Minutes: 10}, sdk.OTP)
	if err != nil {
		return err
	}
	if !strings.Contains(c.text, code) || !strings.Contains(c.html, code) {
		return errors.New("code.txt and code.html must give {{.Code}}")
	}
	n, err := w.of(content{Product: "Tollgate", Subject: "subject", Text: told}, sdk.Notice)
	if err != nil {
		return err
	}
	if !strings.Contains(n.text, told) || !strings.Contains(n.html, told) {
		return errors.New("notice.txt and notice.html must give {{.Text}}")
	}
	return nil
}

// of words a message.
func (w *wording) of(c content, kind sdk.Kind) (words, error) {
	s := w.code
	if kind == sdk.Notice {
		s = w.notice
	}
	var subject, plain, rich strings.Builder
	err := errors.Join(s.subject.Execute(&subject, c), s.text.Execute(&plain, c), s.html.Execute(&rich, c))
	return words{strings.Join(strings.Fields(subject.String()), " "), plain.String(), rich.String()}, err
}

// shelf is where templates are.
type shelf struct {
	own   fs.FS
	given fs.FS // nil without a folder
}

// known refuses a template whose name is mistyped: it would never be missed.
func (s shelf) known() error {
	entries, err := fs.ReadDir(s.given, ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !slices.Contains([]string{subjectPart, textPart, htmlPart}, path.Ext(name)) {
			continue
		}
		if _, err := fs.Stat(s.own, name); err != nil {
			return fmt.Errorf("%s is not the name of a template", name)
		}
	}
	return nil
}

func (s shelf) sheet(kind sdk.Kind) (sheet, error) {
	name := "code"
	if kind == sdk.Notice {
		name = "notice"
	}
	var (
		all   sheet
		wrong [3]error
	)
	all.subject, wrong[0] = s.plain(name + subjectPart)
	all.text, wrong[1] = s.plain(name + textPart)
	all.html, wrong[2] = s.rich(name + htmlPart)
	return all, errors.Join(wrong[:]...)
}

func (s shelf) plain(name string) (*text.Template, error) {
	source, err := s.read(name)
	if err != nil {
		return nil, err
	}
	t, err := text.New(name).Parse(source)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	return t, nil
}

func (s shelf) rich(name string) (*html.Template, error) {
	source, err := s.read(name)
	if err != nil {
		return nil, err
	}
	t, err := html.New(name).Parse(source)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	return t, nil
}

// read returns the given template of a name, else the built-in one.
func (s shelf) read(name string) (string, error) {
	if s.given != nil {
		source, err := bounded(s.given, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return source, err
		}
	}
	return bounded(s.own, name)
}

func bounded(from fs.FS, name string) (string, error) {
	file, err := from.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read
	source, err := io.ReadAll(io.LimitReader(file, maxTemplate+1))
	if err == nil && len(source) > maxTemplate {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxTemplate)
	}
	return string(source), err
}
