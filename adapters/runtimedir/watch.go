package runtimedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Watch collects changes until nothing has changed for quietTime (contract L-33), but at most for
// maxGathering.
const (
	quietTime    = 100 * time.Millisecond
	maxGathering = 2 * time.Second
)

// If files could not be read or watched, Watch retries although nothing has changed. The wait
// between retries doubles from firstRetry to longestRetry.
const (
	firstRetry   = 250 * time.Millisecond
	longestRetry = 5 * time.Second
)

// Watch implements rulesource.Source. It waits for a directory that does not exist, and keeps the
// loaded rules if the directory is removed; it logs both once. If files cannot be read or changes
// cannot be watched for a reason that may pass, for example too few file descriptors or inotify
// watches, Watch reads the directory again at intervals.
func (d *Directory) Watch(ctx context.Context, apply func([]ruleset.Source) error) error {
	r := watchState{directory: d, apply: apply}
	for {
		// The watch starts before the files are read, so that no change is missed.
		w, err := d.openWatch()
		r.logWatchError(err)
		temporary, loadErr := r.loadAndApply(ctx)
		if loadErr != nil {
			return errors.Join(unlessDone(ctx, loadErr), w.Close())
		}
		r.changed = w.waitForChangeOrRetry(ctx, r.nextRetry(temporary || err != nil))
		_ = w.Close() // the next round opens a new watch
		select {
		case <-ctx.Done():
			return nil
		default:
		}
	}
}

// watchState is the state that Watch keeps between its rounds.
type watchState struct {
	directory *Directory
	apply     func([]ruleset.Source) error

	changed   bool             // a change started this round, not a retry
	missing   bool             // the directory does not exist, and this was logged
	unwatched bool             // changes cannot be watched, and this was logged; a retry is due
	retry     time.Duration    // the wait before the next retry; otherwise 0
	applied   []ruleset.Source // the result of the last round, to compare a retry with; nil if no retry is due
	warned    []string         // the warnings of the last round
}

// loadAndApply loads the directory and applies the result. If a retry loads the same as before, it
// is not applied, so that each refused configuration is reported once. temporary reports whether a
// later attempt to read may succeed without a change.
func (r *watchState) loadAndApply(ctx context.Context) (temporary bool, err error) {
	found, err := r.directory.readDirectory(ctx)
	switch {
	case err == nil:
		r.missing = false
		r.logNewWarnings(found.listWarnings())
		isNew := r.changed || r.applied == nil || !reflect.DeepEqual(found.sources, r.applied)
		temporary, sources := found.temporary, found.sources
		r.applied = nil
		if temporary || r.unwatched { // a retry follows
			r.applied = sources
		}
		// Sources may be large. Nothing refers to them while they are applied, except r.applied, so
		// that their memory can be freed as soon as they are compiled.
		if isNew {
			_ = r.apply(sources) // the caller reports an error
		}
		return temporary, nil
	case !fault.Is(err, fault.NotFound):
		return false, err
	case !r.missing:
		r.missing = true
		r.directory.log.WithField("directory", r.directory.config.Path()).
			Warn("the directory of rate limit rules does not exist; waiting for it")
	}
	r.applied = nil
	return false, nil
}

// logNewWarnings logs the warnings that the last round did not have.
func (r *watchState) logNewWarnings(warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(r.warned, w) {
			r.directory.log.Warn(w)
		}
	}
	r.warned = warnings
}

// logWatchError logs once that changes cannot be watched, and once that they can be watched again.
func (r *watchState) logWatchError(err error) {
	line := r.directory.log.WithField("directory", r.directory.config.Path())
	switch {
	case err != nil && !r.unwatched:
		line.WithError(err).
			Warn("changes of rate limit rules cannot be watched; the files are read every few seconds until they can")
	case err == nil && r.unwatched:
		line.Info("changes of rate limit rules are watched again")
	}
	r.unwatched = err != nil
}

// nextRetry returns the wait before the next retry, or 0 if no retry is needed.
func (r *watchState) nextRetry(needed bool) time.Duration {
	if !needed {
		r.retry = 0
		return 0
	}
	r.retry = min(max(2*r.retry, firstRetry), longestRetry)
	return r.retry
}

// unlessDone returns err, or nil if the context has ended.
func unlessDone(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// changeWatch watches all paths whose changes can affect the result of Load. A nil changeWatch
// reports no change.
type changeWatch struct {
	*fsnotify.Watcher
	contents map[string]bool // folders in which every change is relevant
	links    map[string]bool // paths of which only a change of the path itself is relevant
}

// openWatch starts to watch the directory.
func (d *Directory) openWatch() (*changeWatch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", d.config.Path(), err)
	}
	w := &changeWatch{Watcher: watcher, contents: map[string]bool{}, links: map[string]bool{}}
	if err := w.addAll(d); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	return w, nil
}

// addAll watches the folders of the directory, the targets of links in it, and the parent folders
// if they are configured or needed.
func (w *changeWatch) addAll(d *Directory) error {
	path := d.config.Path()
	if _, err := os.Stat(path); err != nil || d.config.WatchRoot {
		if err := w.addParents(path); err != nil {
			return err
		}
	}
	found := d.walkFiles(path)
	if found.temporary {
		return errors.New("watch " + path + ": not all folders can be read")
	}
	for _, folder := range found.folders {
		w.contents[folder] = true
		if err := w.addFolder(folder); err != nil {
			return err
		}
	}
	return w.addLinkTargets(found.files)
}

// addLinkTargets watches the files that links lead to, in their own folders.
func (w *changeWatch) addLinkTargets(files []string) error {
	for _, file := range files {
		target, err := filepath.EvalSymlinks(file)
		if err != nil || target == file {
			continue
		}
		w.links[target] = true
		if folder := filepath.Dir(target); !w.contents[folder] {
			if err := w.addFolder(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// addParents watches each parent folder of the path for the next element of the path, which may be
// a link that is replaced, or may be created later.
func (w *changeWatch) addParents(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("watch the parent folders of %s: %w", path, err)
	}
	for parent := filepath.Dir(path); parent != path; path, parent = parent, filepath.Dir(parent) {
		w.links[path] = true
		if err := w.addFolder(parent); err != nil {
			return err
		}
	}
	return nil
}

// addFolder watches a folder. It ignores a folder that does not exist or cannot be read, because
// the watch of its parent reports when that changes.
func (w *changeWatch) addFolder(folder string) error {
	err := w.Add(folder)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return fmt.Errorf("watch %s: %w", folder, err)
}

// Close ends the watch.
func (w *changeWatch) Close() error {
	if w == nil {
		return nil
	}
	return w.Watcher.Close() //nolint:wrapcheck // this method replaces the embedded one
}

// waitForChangeOrRetry waits for a change and returns true after the changes have stopped. It
// returns false if ctx ends or the retry is due; a retry of 0 is never due.
func (w *changeWatch) waitForChangeOrRetry(ctx context.Context, retry time.Duration) bool {
	var due <-chan time.Time
	if retry > 0 {
		due = time.After(retry)
	}
	if w == nil {
		select {
		case <-ctx.Done():
		case <-due:
		}
		return false
	}
	return w.waitForChange(ctx, due)
}

func (w *changeWatch) waitForChange(ctx context.Context, due <-chan time.Time) bool {
	var calm, enough <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due:
			return calm != nil
		case e := <-w.Events:
			if !w.isRelevant(e) {
				continue
			}
			calm = time.After(quietTime)
			if enough == nil {
				enough = time.After(maxGathering)
			}
		case _, ok := <-w.Errors: // events may have been lost
			if !ok {
				return true
			}
			calm = time.After(quietTime)
		case <-calm:
			return true
		case <-enough:
			return true
		}
	}
}

// isRelevant reports whether an event can affect the result of Load.
func (w *changeWatch) isRelevant(e fsnotify.Event) bool {
	return w.links[e.Name] || w.contents[filepath.Dir(e.Name)] || w.contents[e.Name]
}
