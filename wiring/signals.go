package wiring

import (
	"context"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/filewatch"
	"github.com/tollgate-dev/tollgate/adapters/iplists"
	"github.com/tollgate-dev/tollgate/adapters/maxmind"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// addressSignals are what is known of addresses.
type addressSignals struct {
	Geography  signals.Geography
	Reputation signals.Reputation
}

// openSignals reads the files of the settings, and again when they change, until the cleanup is called.
func openSignals(ctx context.Context, places maxmind.Config, lists iplists.Config, log *logrus.Entry) (addressSignals, func(), error) {
	var geography *maxmind.Geography
	var reputation *iplists.Reputation
	var files []filewatch.File
	for _, path := range places.Files() {
		files = append(files, filewatch.File{Path: path, Reload: func(p string) error { return geography.Reload(p) }})
	}
	for _, path := range lists.Files() {
		files = append(files, filewatch.File{Path: path, Reload: func(p string) error { return reputation.Reload(p) }})
	}
	watcher := filewatch.New(log, files...) // before they are read
	var err error
	if geography, err = maxmind.Open(places); err != nil {
		return addressSignals{}, nil, err
	}
	if reputation, err = iplists.Open(lists); err != nil {
		return addressSignals{}, nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { watcher.Run(watching) })
	return addressSignals{geography, reputation}, func() { stop(); done.Wait() }, nil
}
