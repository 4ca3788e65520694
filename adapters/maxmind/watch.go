package maxmind

import (
	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/filewatch"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// Set provides a Geography that follows its files.
var Set = wire.NewSet(OpenWatched, wire.Bind(new(signals.Geography), new(*Geography)))

// OpenWatched is Open, and reads a database again when its file changes, until the cleanup is
// called.
func OpenWatched(c Config, log *logrus.Entry) (*Geography, func(), error) {
	var g *Geography
	var files []filewatch.File
	for _, path := range c.Files() {
		files = append(files, filewatch.File{Path: path, Reload: func(p string) error { return g.Reload(p) }})
	}
	watcher := filewatch.New(log, files...) // before the files are read, so that no change is missed
	var err error
	if g, err = Open(c); err != nil {
		return nil, nil, err
	}
	return g, watcher.Start(), nil
}
