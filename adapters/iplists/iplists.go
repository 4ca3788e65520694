// Package iplists tells how addresses are spoken of from list files. It answers ports/signals.Reputation; when files have
// changed, somebody else tells it.
package iplists

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/gaissmai/bart"

	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// Reputation answers ports/signals.Reputation. It is safe for concurrent use; Reload is called by one goroutine at a time.
type Reputation struct {
	lists  []list
	tables []atomic.Pointer[bart.Lite] // of each list
}

// Open reads the lists. One that cannot be read, or has a wrong line, is an error that names the setting, the file and the line.
func Open(c Config) (*Reputation, error) {
	lists, err := c.lists()
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

// Reload reads a file of the settings again. When it fails, what was read before stays in force.
func (r *Reputation) Reload(file string) error {
	table, err := read(file)
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

// Rate answers ports/signals.Reputation. Every list is asked: a wide network in a bad list weighs more than a narrow one in a
// better list.
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
