package files

import (
	"context"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/core/each"
)

// checkInterval is how often a Watcher checks its files. It reads a changed file only when two
// checks in a row find the same state, so that it does not read a file that is still being written.
const checkInterval = time.Second

// WatchedFile is a file, and the function to call when it has changed.
type WatchedFile struct {
	Path   string
	Reload func(path string) error // must keep the previous content if it fails
}

// Watcher reloads files that have changed: that were overwritten or replaced, or to which a link no
// longer leads. It checks them at intervals, which works on every file system.
type Watcher struct {
	files []*watched
	log   *logrus.Entry
}

// watched is a file and what is known about it.
type watched struct {
	WatchedFile
	loaded  State // the state that was read last
	seen    State // the state at the last check
	missing bool  // the file does not exist, and this was logged
	failing bool  // reading the file failed for a temporary reason, and this was logged
}

// NewWatcher returns a Watcher that compares the files with their current state. Call it before the
// files are read for the first time, so that no change is missed.
func NewWatcher(log *logrus.Entry, files ...WatchedFile) *Watcher {
	w := &Watcher{log: log}
	for _, f := range files {
		now := StateOf(f.Path)
		w.files = append(w.files, &watched{WatchedFile: f, loaded: now, seen: now})
	}
	return w
}

// OpenWatched opens what reads some files, and reloads each file that has changed until stop is
// called.
func OpenWatched[R interface{ Reload(path string) error }](
	log *logrus.Entry, paths []string, open func() (R, error),
) (opened R, stop func(), err error) {
	files := each.Map(paths, func(path string) WatchedFile {
		return WatchedFile{Path: path, Reload: func(p string) error { return opened.Reload(p) }}
	})
	w := NewWatcher(log, files...)
	if opened, err = open(); err != nil {
		return opened, nil, err
	}
	return opened, w.Start(), nil
}

// Start watches the files in a new goroutine until stop is called. stop waits for a reload that is
// in progress.
func (w *Watcher) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { w.run(ctx) })
	return func() { cancel(); done.Wait() }
}

func (w *Watcher) run(ctx context.Context) {
	for pause.For(ctx, checkInterval) {
		w.checkFiles()
	}
}

// checkFiles reloads each file that has changed and did not change between the last two checks.
func (w *Watcher) checkFiles() {
	for _, f := range w.files {
		now := StateOf(f.Path)
		stable := now.Equal(f.seen)
		f.seen = now
		if now.IsMissing() {
			w.noteMissing(f)
			continue
		}
		f.missing = false
		if stable && !now.Equal(f.loaded) {
			w.reloadFile(f, now)
		}
	}
}

// reloadFile reads a file, and logs the result.
func (w *Watcher) reloadFile(f *watched, now State) {
	err := f.Reload(f.Path)
	if IsTemporary(err) { // the next check tries again
		if !f.failing {
			w.log.WithError(err).
				Error("a changed file cannot be read now; its previous content stays in use; trying again until it can")
		}
		f.failing = true
		return
	}
	f.loaded, f.failing = now, false // even if the file is refused, so that this is logged once for each change
	if err != nil {
		w.log.WithError(err).Error("a changed file is refused; its previous content stays in use")
		return
	}
	w.log.WithField("file", f.Path).Info("a changed file was read")
}

// noteMissing logs once that a file was removed.
func (w *Watcher) noteMissing(f *watched) {
	if !f.missing {
		w.log.WithField("file", f.Path).Error("a file was removed; its previous content stays in use")
	}
	f.missing, f.loaded = true, State{}
}

// State identifies the file at a path, its length and its time of modification. The zero value
// means that there is no file.
type State struct{ info fs.FileInfo }

// StateOf returns the state of a path. It is the zero value if the file does not exist or cannot be
// examined.
func StateOf(path string) State {
	info, err := os.Stat(path)
	if err != nil {
		return State{}
	}
	return State{info}
}

// IsMissing reports whether there was no file.
func (s State) IsMissing() bool { return s.info == nil }

// Equal reports whether two states are of the same, unchanged file. A link that leads to another
// file is a change, even if that file has the same length and time.
func (s State) Equal(other State) bool {
	if s.IsMissing() || other.IsMissing() {
		return s.IsMissing() && other.IsMissing()
	}
	a, b := s.info, other.info
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
