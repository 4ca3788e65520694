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

// Changes are gathered until nothing has changed for quiet (contract L-33), but no longer than
// patience.
const (
	quiet    = 100 * time.Millisecond
	patience = 2 * time.Second
)

// How long Watch waits before it reads again what could not be read or watched,
// although nothing has changed: the time doubles from the first wait to the
// longest one.
const (
	firstRetry   = 250 * time.Millisecond
	longestRetry = 5 * time.Second
)

// Watch implements rulesource.Source. It waits for a directory that is not
// there, and keeps what was loaded from one that goes away; both are logged
// once. While files cannot be read, or changes cannot be watched, for want of
// descriptors, of inotify watches or of anything else that may come back, it
// reads the directory again and again.
func (d *Directory) Watch(ctx context.Context, apply func([]ruleset.Source) error) error {
	r := reader{directory: d, apply: apply}
	for {
		// What changes while this round reads is seen by this round's watch.
		w, err := d.open()
		r.noteWatch(err)
		again, loadErr := r.read(ctx)
		if loadErr != nil {
			return errors.Join(unlessDone(ctx, loadErr), w.Close())
		}
		r.changed = w.wait(ctx, r.retryAfter(again || err != nil))
		_ = w.Close() // it is not used again, and nothing was written
		select {
		case <-ctx.Done():
			return nil
		default:
		}
	}
}

// reader is the state of Watch between its rounds.
type reader struct {
	directory *Directory
	apply     func([]ruleset.Source) error

	changed   bool             // a change began this round, not the time for a retry
	missing   bool             // the directory is not there, which was logged
	unwatched bool             // changes cannot be watched, which was logged
	retry     time.Duration    // the wait before the next retry; 0 for none
	applied   []ruleset.Source // what a retry is compared with; nil while none is due
	warned    []string         // the warnings of the last round
}

// read loads the directory and applies what it finds. A retry that finds the
// same as before applies nothing, so that each refused configuration is reported
// once. It reports whether something may become readable by itself.
func (r *reader) read(ctx context.Context) (again bool, err error) {
	found, err := r.directory.readDirectory(ctx)
	switch {
	case err == nil:
		r.missing = false
		r.warn(found.warnings())
		if r.changed || r.applied == nil || !reflect.DeepEqual(found.sources, r.applied) {
			_ = r.apply(found.sources) // the caller reports what it refuses
		}
		r.applied = found.sources
		return found.again, nil
	case !fault.Is(err, fault.NotFound):
		return false, err
	case !r.missing:
		r.missing = true
		r.directory.log.WithField("directory", r.directory.config.Path()).Warn("the directory of rate limit rules does not exist; waiting for it")
	}
	r.applied = nil
	return false, nil
}

// warn logs the warnings that are not among those of the last round.
func (r *reader) warn(warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(r.warned, w) {
			r.directory.log.Warn(w)
		}
	}
	r.warned = warnings
}

// noteWatch logs once that changes cannot be watched, and once that they can
// again.
func (r *reader) noteWatch(err error) {
	line := r.directory.log.WithField("directory", r.directory.config.Path())
	switch {
	case err != nil && !r.unwatched:
		line.WithError(err).Warn("changes of rate limit rules cannot be watched; the files are read every few seconds until they can")
	case err == nil && r.unwatched:
		line.Info("changes of rate limit rules are watched again")
	}
	r.unwatched = err != nil
}

// retryAfter returns how long to wait for a change before the next retry, 0 for
// ever.
func (r *reader) retryAfter(needed bool) time.Duration {
	if !needed {
		r.retry, r.applied = 0, nil // which may be large
		return 0
	}
	r.retry = min(max(2*r.retry, firstRetry), longestRetry)
	return r.retry
}

// unlessDone returns no error once watching has been ended.
func unlessDone(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// watch is a watch over all that can change what Load returns. A nil watch sees
// no change.
type watch struct {
	*fsnotify.Watcher
	contents map[string]bool // folders of which every change counts
	links    map[string]bool // paths of which only a change of themselves counts
}

func (d *Directory) open() (*watch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", d.config.Path(), err)
	}
	w := &watch{Watcher: watcher, contents: map[string]bool{}, links: map[string]bool{}}
	if err := w.cover(d); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	return w, nil
}

func (w *watch) cover(d *Directory) error {
	path := d.config.Path()
	if _, err := os.Stat(path); err != nil || d.config.WatchRoot {
		if err := w.coverWay(path); err != nil {
			return err
		}
	}
	found := d.walk(path)
	if found.again {
		return errors.New("watch " + path + ": not all folders can be read")
	}
	for _, folder := range found.folders {
		w.contents[folder] = true
		if err := w.add(folder); err != nil {
			return err
		}
	}
	return w.coverTargets(found.files)
}

// coverTargets watches the files that links lead to, where they are.
func (w *watch) coverTargets(files []string) error {
	for _, file := range files {
		target, err := filepath.EvalSymlinks(file)
		if err != nil || target == file {
			continue
		}
		w.links[target] = true
		if folder := filepath.Dir(target); !w.contents[folder] {
			if err := w.add(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// coverWay watches each folder on the way to the path for the next part of the
// way: it may be a link that is swapped, or not be there yet.
func (w *watch) coverWay(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("watch the way to %s: %w", path, err)
	}
	for parent := filepath.Dir(path); parent != path; path, parent = parent, filepath.Dir(parent) {
		w.links[path] = true
		if err := w.add(parent); err != nil {
			return err
		}
	}
	return nil
}

// add leaves out what is not there, or may not be read: the folder above tells
// when that changes.
func (w *watch) add(folder string) error {
	err := w.Add(folder)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return fmt.Errorf("watch %s: %w", folder, err)
}

// Close ends the watch.
func (w *watch) Close() error {
	if w == nil {
		return nil
	}
	return w.Watcher.Close() //nolint:wrapcheck // this is the watcher's own method
}

// wait returns true once something has changed and it is quiet again, false
// when ctx is done or the time for a retry has come; 0 is never.
func (w *watch) wait(ctx context.Context, retry time.Duration) bool {
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

func (w *watch) waitForChange(ctx context.Context, due <-chan time.Time) bool {
	var calm, enough <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due:
			return calm != nil
		case e := <-w.Events:
			if !w.counts(e) {
				continue
			}
			calm = time.After(quiet)
			if enough == nil {
				enough = time.After(patience)
			}
		case _, ok := <-w.Errors: // events may have been lost
			if !ok {
				return true
			}
			calm = time.After(quiet)
		case <-calm:
			return true
		case <-enough:
			return true
		}
	}
}

func (w *watch) counts(e fsnotify.Event) bool {
	return w.links[e.Name] || w.contents[filepath.Dir(e.Name)] || w.contents[e.Name]
}
