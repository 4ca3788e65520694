// Package runtimedir reads the rules of the rate limit service from a directory of YAML files and
// follows its changes. It checks the form of the files; core/ratelimit/ruleset checks the rules.
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

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Limits of a directory.
const (
	maxFiles    = 10_000
	maxFileSize = 16 << 20
)

// Directory is the rule directory. It implements rulesource.Source and is safe for concurrent use.
type Directory struct {
	config Config
	log    *logrus.Entry
}

// New returns the Directory for a configuration. The directory need not exist yet.
func New(c Config, log *logrus.Entry) *Directory { return &Directory{c, log} }

// Expected implements rulesource.Source: rules are expected if the directory exists.
func (d *Directory) Expected() bool {
	_, err := os.Stat(d.config.Path())
	return !errors.Is(err, fs.ErrNotExist)
}

// Load implements rulesource.Source. It reads every .yaml and .yml file in the directory and in the
// folders below it, ordered by path.
func (d *Directory) Load(ctx context.Context) ([]ruleset.Source, error) {
	found, err := d.readDirectory(ctx)
	if err != nil {
		return nil, err
	}
	return found.sources, nil
}

// Read returns the result of Load, and warnings: about files that are ignored because of their
// names, and about content that is accepted but probably wrong. The error is fault.NotFound if no
// file has the name of a rule file.
func (d *Directory) Read(ctx context.Context) ([]ruleset.Source, []string, error) {
	found, err := d.readDirectory(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(found.sources) == 0 {
		text := "there is no rule file in " + d.config.Path() + ": the name of a rule file must end in .yaml or .yml"
		if len(found.ignored) > 0 {
			text += "; rename these files if they contain rules: " + joinPaths(found.ignored)
		}
		return nil, nil, fault.New(fault.NotFound, text)
	}
	return found.sources, found.listWarnings(), nil
}

// readDirectory finds the rule files of the directory and reads them. The error is fault.NotFound
// if the directory does not exist.
func (d *Directory) readDirectory(ctx context.Context) (*walker, error) {
	path := d.config.Path()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.NotFound, "there is no directory "+path, err)
	}
	w := d.walkFiles(path)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, file := range w.files {
		w.readFile(file)
	}
	return w, nil
}

// unreadableSource returns a source whose fault is that the file or folder cannot be read.
func unreadableSource(path string, err error) ruleset.Source {
	at := ruleset.Position{File: path}
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	return ruleset.Source{
		At: at, Unread: true, Faults: []ruleset.Fault{{At: at, Rule: "cannot be read: " + err.Error()}},
	}
}

// walker finds the files of a directory and keeps what was read from them.
type walker struct {
	ignoreDot bool
	seen      map[string]bool // targets of links, so that each is visited once
	files     []string
	ignored   []string         // files that are ignored because of their names
	warnings  []string         // warnings about files that were read
	folders   []string         // to watch
	sources   []ruleset.Source // of folders and files that cannot be read, then of the files
	temporary bool             // a later attempt to read may succeed
}

func (d *Directory) walkFiles(path string) *walker {
	w := &walker{ignoreDot: d.config.IgnoreDotFiles, seen: map[string]bool{}}
	w.walkFolder(path)
	return w
}

// readFile reads one file. If it cannot be read, the result is a source with a fault.
func (w *walker) readFile(path string) {
	content, err := files.Read(path, maxFileSize)
	if err != nil {
		w.addUnreadable(path, err)
		return
	}
	source, warnings := parseFile(path, content)
	w.sources, w.warnings = append(w.sources, source), append(w.warnings, warnings...)
	w.warnings = w.warnings[:min(len(w.warnings), maxWarnings)]
}

// listWarnings returns a sentence for each thing that is probably wrong.
func (w *walker) listWarnings() []string {
	if len(w.ignored) == 0 {
		return w.warnings
	}
	unread := "files whose names do not end in .yaml or .yml are not read as rate limit rules: " + joinPaths(w.ignored)
	return append([]string{unread}, w.warnings...)
}

// maxListed is the maximum number of file names in one sentence.
const maxListed = 20

// joinPaths joins the first maxListed paths, and adds the number of the others.
func joinPaths(paths []string) string {
	if more := len(paths) - maxListed; more > 0 {
		return strings.Join(paths[:maxListed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(paths, ", ")
}

func (w *walker) addUnreadable(path string, err error) {
	w.temporary = w.temporary || files.IsTemporary(err)
	w.sources = append(w.sources, unreadableSource(path, err))
}

func (w *walker) walkFolder(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		w.addUnreadable(path, err)
		return
	}
	w.folders = append(w.folders, path)
	for _, e := range entries {
		if !w.isSkipped(e.Name()) {
			w.walkEntry(filepath.Join(path, e.Name()))
		}
	}
}

// isSkipped reports whether the entry with a name is ignored. Names that begin with ".." are always
// ignored: in a mounted ConfigMap, Kubernetes keeps the files in such folders, and links next to
// these folders lead to the same files.
func (w *walker) isSkipped(name string) bool {
	return strings.HasPrefix(name, "..") || w.ignoreDot && strings.HasPrefix(name, ".")
}

func (w *walker) walkEntry(path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil && !isRuleFile(path): // a broken link that is not a rule file
	case err != nil:
		w.addUnreadable(path, err)
	case info.IsDir():
		if w.isFirstVisit(path) {
			w.walkFolder(path)
		}
	case info.Mode().IsRegular() && isRuleFile(path) && w.isFirstVisit(path):
		w.addFile(path)
	case info.Mode().IsRegular() && !isRuleFile(path) && !strings.HasPrefix(filepath.Base(path), "."):
		if len(w.ignored) < maxFiles {
			w.ignored = append(w.ignored, path)
		}
	}
}

func (w *walker) addFile(path string) {
	if w.files = append(w.files, path); len(w.files) == maxFiles+1 {
		w.addUnreadable(path, fmt.Errorf("the directory has more than %d rule files", maxFiles))
	}
	w.files = w.files[:min(len(w.files), maxFiles)]
}

// isFirstVisit reports whether the target of a path was not visited before.
func (w *walker) isFirstVisit(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		w.addUnreadable(path, err)
		return false
	}
	known := w.seen[target]
	w.seen[target] = true
	return !known
}

func isRuleFile(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".yaml" || ext == ".yml"
}

// Compile reads the rules of the directory as the service would, and returns them with warnings
// about rules that are accepted, but look wrong. The error is ruleset.Faults if rules are wrong,
// and fault.NotFound if there is no rule file.
func (d *Directory) Compile(ctx context.Context, o ruleset.Options) (*ruleset.Set, []string, error) {
	sources, warnings, err := d.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	set, err := ruleset.Compile(sources, o)
	return set, warnings, err
}

// Config names the folder of the files (contract L-33).
type Config struct {
	Root           string `env:"RUNTIME_ROOT" envDefault:"/srv/runtime_data/current" desc:"root of the rate limit configuration, often a symbolic link that is replaced on a change"`
	Subdirectory   string `env:"RUNTIME_SUBDIRECTORY" desc:"a folder below RUNTIME_ROOT"`
	AppDirectory   string `env:"RUNTIME_APPDIRECTORY" envDefault:"config" desc:"the folder with the YAML files, below the other two"`
	IgnoreDotFiles bool   `env:"RUNTIME_IGNOREDOTFILES" envDefault:"false" desc:"ignore files and folders whose names begin with a dot"`
	WatchRoot      bool   `env:"RUNTIME_WATCH_ROOT" envDefault:"true" desc:"watch for a replaced RUNTIME_ROOT, in addition to changed files; false = watch only the files"`
}

// Validate returns an error that names the setting that is wrong.
func (c Config) Validate() error {
	if c.Root == "" {
		return errors.New("RUNTIME_ROOT must not be empty")
	}
	return nil
}

// Path returns the folder of the rule files.
func (c Config) Path() string {
	return filepath.Join(c.Root, c.Subdirectory, c.AppDirectory)
}
