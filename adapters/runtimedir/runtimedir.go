// Package runtimedir reads the rules of the rate limit service from a directory
// of YAML files and follows its changes. It checks the form of the files; what
// they say the core checks.
package runtimedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/boundedfile"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Bounds of a directory.
const (
	maxFiles    = 10_000
	maxFileSize = 16 << 20
)

// Directory is a rulesource.Source. It is safe for concurrent use.
type Directory struct {
	config Config
	log    *logrus.Entry
}

// New returns the directory of a configuration. It need not exist yet.
func New(c Config, log *logrus.Entry) *Directory { return &Directory{c, log} }

// Missing reports whether the directory is not there.
func (d *Directory) Missing() bool {
	_, err := os.Stat(d.config.Path())
	return errors.Is(err, fs.ErrNotExist)
}

// Load implements rulesource.Source: every .yaml and .yml file, also in folders
// below, in the order of their paths.
func (d *Directory) Load(ctx context.Context) ([]ruleset.Source, error) {
	found, err := d.readDirectory(ctx)
	if err != nil {
		return nil, err
	}
	return found.sources, nil
}

// Read returns what Load returns, and warnings: of files that are left out because
// of their names, and of what is taken in a file, but looks wrong. Its error is
// fault.NotFound where no file has the name of a rule file.
func (d *Directory) Read(ctx context.Context) ([]ruleset.Source, []string, error) {
	found, err := d.readDirectory(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(found.sources) == 0 {
		text := "there is no rule file in " + d.config.Path() + ": it has no file that ends in .yaml or .yml"
		if len(found.others) > 0 {
			text += " (" + listed(found.others) + ")"
		}
		return nil, nil, fault.New(fault.NotFound, "", text)
	}
	return found.sources, found.warnings(), nil
}

// readDirectory reads the directory.
func (d *Directory) readDirectory(ctx context.Context) (*walker, error) {
	path := d.config.Path()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.NotFound, "", "there is no directory "+path, err)
	}
	w := d.walk(path)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, file := range w.files {
		w.read(file)
	}
	return w, nil
}

func unreadable(path string, err error) ruleset.Source {
	at := ruleset.Position{File: path}
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	return ruleset.Source{At: at, Unread: true, Faults: []ruleset.Fault{{At: at, Rule: "cannot be read: " + err.Error()}}}
}

// walker collects the files of a directory.
type walker struct {
	ignoreDot bool
	seen      map[string]bool // real paths: a link is followed once
	files     []string
	others    []string         // files that rules are not read from because of their names
	doubts    []string         // about files that were read
	folders   []string         // also for watching
	sources   []ruleset.Source // of what cannot be read, then of the files
	again     bool             // reading again may succeed
}

func (d *Directory) walk(path string) *walker {
	w := &walker{ignoreDot: d.config.IgnoreDotFiles, seen: map[string]bool{}}
	w.folder(path)
	return w
}

// read reads one file; one that cannot be read is a source with a fault.
func (w *walker) read(path string) {
	content, err := boundedfile.Read(path, maxFileSize)
	if err != nil {
		w.fail(path, err)
		return
	}
	source, doubts := parse(path, content)
	w.sources, w.doubts = append(w.sources, source), append(w.doubts, doubts...)
	w.doubts = w.doubts[:min(len(w.doubts), maxWarnings)]
}

// warnings returns a sentence for each thing that looks wrong.
func (w *walker) warnings() []string {
	if len(w.others) == 0 {
		return w.doubts
	}
	left := "files whose names do not end in .yaml or .yml are not read as rate limit rules: " + listed(w.others)
	return append([]string{left}, w.doubts...)
}

// maxListed bounds the names of files in one sentence.
const maxListed = 20

// listed joins paths, and counts those beyond the bound.
func listed(paths []string) string {
	if more := len(paths) - maxListed; more > 0 {
		return strings.Join(paths[:maxListed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(paths, ", ")
}

func (w *walker) fail(path string, err error) {
	w.again = w.again || boundedfile.Temporary(err)
	w.sources = append(w.sources, unreadable(path, err))
}

func (w *walker) folder(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		w.fail(path, err)
		return
	}
	w.folders = append(w.folders, path)
	for _, e := range entries {
		if !w.skip(e.Name()) {
			w.entry(filepath.Join(path, e.Name()))
		}
	}
}

// skip leaves out Kubernetes' own folders, ..data and those it points to: what
// is in them is linked from outside.
func (w *walker) skip(name string) bool {
	return strings.HasPrefix(name, "..") || w.ignoreDot && strings.HasPrefix(name, ".")
}

func (w *walker) entry(path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil && !isRules(path): // a broken link that leads nowhere we look
	case err != nil:
		w.fail(path, err)
	case info.IsDir():
		if w.first(path) {
			w.folder(path)
		}
	case info.Mode().IsRegular() && isRules(path) && w.first(path):
		w.file(path)
	case info.Mode().IsRegular() && !isRules(path) && !strings.HasPrefix(filepath.Base(path), "."):
		if len(w.others) < maxFiles {
			w.others = append(w.others, path)
		}
	}
}

func (w *walker) file(path string) {
	if w.files = append(w.files, path); len(w.files) == maxFiles+1 {
		w.fail(path, errors.New("there are more than 10000 files"))
	}
	w.files = w.files[:min(len(w.files), maxFiles)]
}

// first reports whether the path leads where no other did.
func (w *walker) first(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		w.fail(path, err)
		return false
	}
	known := w.seen[target]
	w.seen[target] = true
	return !known
}

func isRules(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".yaml" || ext == ".yml"
}
