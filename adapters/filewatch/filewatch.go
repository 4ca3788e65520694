// Package filewatch tells when files have changed: overwritten in place, replaced by a rename, or through a link that leads
// elsewhere. It looks at them now and then, or when it is asked, which works on every file system. What is in them is not its
// business.
package filewatch

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/boundedfile"
)

// every is how often files are looked at. A changed one is read when it looks the same twice in a row, so that one that is being
// written is not read halfway.
const every = time.Second

// File is a file and what is to be done when it has changed.
type File struct {
	Path   string
	Reload func(path string) error // keeps what was read before when it fails
}

// Watcher watches files. It is used by one goroutine.
type Watcher struct {
	files []*watched
	log   *logrus.Entry
}

type watched struct {
	File
	read    State // what was read last
	seen    State // what was there at the last look
	absent  bool  // logged already
	failing bool  // reading it failed for a reason that may pass, which was logged
}

// New notes what the files are now; it is called before they are read for the first time, so that no change is missed.
func New(log *logrus.Entry, files ...File) *Watcher {
	w := &Watcher{log: log}
	for _, f := range files {
		now := Look(f.Path)
		w.files = append(w.files, &watched{File: f, read: now, seen: now})
	}
	return w
}

// Start watches in a goroutine of its own until stop is called. stop returns when a reload that is
// under way has ended.
func (w *Watcher) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { w.Run(ctx) })
	return func() { cancel(); done.Wait() }
}

// Run watches until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			w.look()
		}
	}
}

// look reads again what has changed and is at rest.
func (w *Watcher) look() {
	for _, f := range w.files {
		now := Look(f.Path)
		atRest := now.Same(f.seen)
		f.seen = now
		if now.Missing() {
			w.miss(f)
			continue
		}
		f.absent = false
		if !atRest || now.Same(f.read) {
			continue
		}
		err := f.Reload(f.Path)
		if boundedfile.Temporary(err) { // it is read again at the next look
			if !f.failing {
				w.log.WithError(err).Error("a changed file cannot be read now; its previous content stays in use; trying again until it can")
			}
			f.failing = true
			continue
		}
		f.read, f.failing = now, false // also when it is refused, which is logged once until the file changes again
		if err != nil {
			w.log.WithError(err).Error("a changed file is refused; its previous content stays in use")
			continue
		}
		w.log.WithField("file", f.Path).Info("a changed file was read")
	}
}

func (w *Watcher) miss(f *watched) {
	if !f.absent {
		w.log.WithField("file", f.Path).Error("a file was removed; its previous content stays in use")
	}
	f.absent, f.read = true, State{}
}
