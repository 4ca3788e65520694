package iplists

import (
	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// Set provides a Reputation that follows its files.
var Set = wire.NewSet(OpenWatched, wire.Bind(new(signals.Reputation), new(*Reputation)))

// OpenWatched is Open, and reads a list again when its file changes, until the cleanup is called.
func OpenWatched(c Config, log *logrus.Entry) (*Reputation, func(), error) {
	var r *Reputation
	var watched []files.WatchedFile
	for _, path := range c.Files() {
		watched = append(watched, files.WatchedFile{Path: path, Reload: func(p string) error { return r.Reload(p) }})
	}
	watcher := files.NewWatcher(log, watched...) // before the files are read, so that no change is missed
	var err error
	if r, err = Open(c); err != nil {
		return nil, nil, err
	}
	return r, watcher.Start(), nil
}
