// Package iplists rates IP addresses by list files. It implements ports/signals.Reputation, and
// reads a list again when its file changes.
package iplists

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/gaissmai/bart"
	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/ports/signals"
)

// Reputation implements ports/signals.Reputation. It is safe for concurrent use, but only one
// goroutine at a time may call Reload.
type Reputation struct {
	lists  []listFile
	tables []atomic.Pointer[bart.Lite] // of each list
}

// Open reads the lists. If a list cannot be read or has an invalid line, the error names the
// setting, the file and the line.
func Open(c Config) (*Reputation, error) {
	lists, err := c.parseLists()
	if err != nil {
		return nil, err
	}
	r := &Reputation{lists: lists, tables: make([]atomic.Pointer[bart.Lite], len(lists))}
	for _, l := range lists {
		if err := r.Reload(l.path); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Set provides a Reputation that follows its files.
var Set = wire.NewSet(OpenWatched, wire.Bind(new(signals.Reputation), new(*Reputation)))

// OpenWatched is Open, and reads a list again when its file changes, until the cleanup is called.
func OpenWatched(c Config, log *logrus.Entry) (*Reputation, func(), error) {
	return files.OpenWatched(log, c.Files(), func() (*Reputation, error) { return Open(c) })
}

// Reload reads a list again. If it fails, the previous content stays in force.
func (r *Reputation) Reload(file string) error {
	table, err := readTable(file)
	if err != nil {
		return fmt.Errorf("IP_REPUTATION_LISTS: %w", err)
	}
	for i := range r.lists {
		if r.lists[i].path == file {
			r.tables[i].Store(table)
		}
	}
	return nil
}

// Rate implements ports/signals.Reputation. It searches every list and returns the worst class,
// even if a list of a better class has a narrower network.
func (r *Reputation) Rate(_ context.Context, address netip.Addr) risk.Reputation {
	switch {
	case len(r.lists) == 0:
		return risk.Reputation{}
	case !address.IsValid():
		return risk.Reputation{State: risk.Unanswered}
	}
	address = address.Unmap().WithZone("")
	rated := risk.Reputation{State: risk.Known, Class: risk.Clean}
	for i := range r.lists {
		if r.lists[i].class > rated.Class && r.tables[i].Load().Contains(address) {
			rated.Class = r.lists[i].class
		}
	}
	return rated
}
