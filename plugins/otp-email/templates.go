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

// maxTemplate is the size limit of a template file, in bytes.
const maxTemplate = 256 << 10

// The file extensions of the three templates of each kind of message.
const (
	subjectPart = ".subject"
	textPart    = ".txt"
	htmlPart    = ".html"
)

// templateData holds the fields that templates may use.
type templateData struct {
	Product string
	Code    string // only of a code
	Minutes int    // only of a code: the time until it expires, rounded up
	Subject string // only of a notice
	Text    string // only of a notice
	Link    string // only of a notice, optional: a line of the text
}

// Paragraphs returns the paragraphs of a notice's text, each as a list of lines. Empty lines
// separate paragraphs.
func (c templateData) Paragraphs() [][]string {
	var list [][]string
	for paragraph := range strings.SplitSeq(c.Text, "\n\n") {
		list = append(list, strings.Split(paragraph, "\n"))
	}
	return list
}

// renderedMessage is the text of a message after the templates are applied.
type renderedMessage struct{ subject, text, html string }

// templateSet holds the three templates of one kind of message.
type templateSet struct {
	subject, text *text.Template
	html          *html.Template
}

// messageTemplates holds the templates of both kinds of message.
type messageTemplates struct{ code, notice templateSet }

// loadTemplates loads the templates of folder, and the built-in template for each one that the
// folder does not contain; an empty folder means only the built-in ones. It returns an error if a
// template is malformed, leaves out the code or the text, or has an unknown name.
func loadTemplates(folder string) (*messageTemplates, error) {
	own, err := fs.Sub(builtIn, "templates")
	if err != nil {
		return nil, err
	}
	from := templateFiles{builtIn: own}
	if folder != "" {
		from.custom = os.DirFS(folder)
		if err := from.checkNames(); err != nil {
			return nil, err
		}
	}
	var w messageTemplates
	if w.code, err = from.loadSet(sdk.OTP); err != nil {
		return nil, err
	}
	if w.notice, err = from.loadSet(sdk.Notice); err != nil {
		return nil, err
	}
	return &w, w.checkFields()
}

// checkFields renders a code and a notice. It returns an error if the code or the text of the
// notice is missing from the result.
func (w *messageTemplates) checkFields() error {
	const code, notice = "7319420", "notice text"
	c, err := w.render(templateData{Product: "Tollgate", Code: code, Minutes: 10}, sdk.OTP)
	if err != nil {
		return err
	}
	if !strings.Contains(c.text, code) || !strings.Contains(c.html, code) {
		return errors.New("code.txt and code.html must contain {{.Code}}")
	}
	n, err := w.render(templateData{Product: "Tollgate", Subject: "subject", Text: notice}, sdk.Notice)
	if err != nil {
		return err
	}
	if !strings.Contains(n.text, notice) || !strings.Contains(n.html, notice) {
		return errors.New("notice.txt and notice.html must contain {{.Text}}")
	}
	return nil
}

// render applies the templates of a kind of message to c.
func (w *messageTemplates) render(c templateData, kind sdk.Kind) (renderedMessage, error) {
	s := w.code
	if kind == sdk.Notice {
		s = w.notice
	}
	var subject, plain, rich strings.Builder
	err := errors.Join(s.subject.Execute(&subject, c), s.text.Execute(&plain, c), s.html.Execute(&rich, c))
	return renderedMessage{strings.Join(strings.Fields(subject.String()), " "), plain.String(), rich.String()}, err
}

// templateFiles holds the folders of the template files.
type templateFiles struct {
	builtIn fs.FS
	custom  fs.FS // nil without a folder
}

// checkNames returns an error if the custom folder contains a template file with an unknown name. A
// mistyped name would otherwise not be noticed, because the built-in template would be used.
func (s templateFiles) checkNames() error {
	entries, err := fs.ReadDir(s.custom, ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !slices.Contains([]string{subjectPart, textPart, htmlPart}, path.Ext(name)) {
			continue
		}
		if _, err := fs.Stat(s.builtIn, name); err != nil {
			return fmt.Errorf("%s is not the name of a template: use code or notice with .subject, .txt or .html", name)
		}
	}
	return nil
}

func (s templateFiles) loadSet(kind sdk.Kind) (templateSet, error) {
	name := "code"
	if kind == sdk.Notice {
		name = "notice"
	}
	var (
		all   templateSet
		wrong [3]error
	)
	subject, plain, rich := name+subjectPart, name+textPart, name+htmlPart
	all.subject, wrong[0] = loadTemplate(s, subject, text.New(subject).Parse)
	all.text, wrong[1] = loadTemplate(s, plain, text.New(plain).Parse)
	all.html, wrong[2] = loadTemplate(s, rich, html.New(rich).Parse)
	return all, errors.Join(wrong[:]...)
}

func loadTemplate[T any](from templateFiles, name string, parse func(source string) (T, error)) (t T, err error) {
	source, err := from.readSource(name)
	if err != nil {
		return t, err
	}
	if t, err = parse(source); err != nil {
		return t, fmt.Errorf("parse: %w", err)
	}
	return t, nil
}

// readSource returns the custom template with that name, or the built-in one if there is no custom
// one.
func (s templateFiles) readSource(name string) (string, error) {
	if s.custom != nil {
		source, err := readBounded(s.custom, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return source, err
		}
	}
	return readBounded(s.builtIn, name)
}

func readBounded(from fs.FS, name string) (string, error) {
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
