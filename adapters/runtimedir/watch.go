package runtimedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Changes are gathered until nothing has changed for quiet (decisions 3.4), but
// no longer than patience.
const (
	quiet    = 100 * time.Millisecond
	patience = 2 * time.Second
)

// Watch implements rulesource.Source. A directory that is not there is awaited;
// one that goes away leaves what was loaded. Either is told once.
func (d *Directory) Watch(ctx context.Context, apply func([]ruleset.Source) error) error {
	for missing := false; ; {
		// What changes while this round reads is seen by this round's watch.
		w, err := d.open()
		if err != nil {
			return err
		}
		sources, err := d.Load(ctx)
		switch {
		case err == nil:
			missing = false
			_ = apply(sources) // whoever applies reports what it refuses
		case !fault.Is(err, fault.NotFound):
			return errors.Join(unlessDone(ctx, err), w.Close())
		case !missing:
			missing = true
			d.log.WithField("directory", d.config.Path()).Warn("the directory of rate limit rules is not there, and is awaited")
		}
		changed := w.wait(ctx)
		if err := w.Close(); err != nil {
			return fmt.Errorf("watch %s: %w", d.config.Path(), err)
		}
		if !changed {
			return nil
		}
	}
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

// watch is a watch over all that can change what Load returns.
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

// wait returns true once something has changed and it is quiet again, false
// when ctx is done.
func (w *watch) wait(ctx context.Context) bool {
	var calm, enough <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
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
