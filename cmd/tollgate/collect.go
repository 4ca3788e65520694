package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
)

const (
	// seldom is how much the heap grows between two collections of garbage, in
	// percent of what is in use.
	seldom = 400
	// room bounds that growth in bytes, as long as it is more than half of what
	// is in use.
	room = 64 << 20
)

// collectSeldom trades memory for time unless GOGC says what it is to be: the
// service keeps little between requests, and at Go's own default it would
// collect garbage dozens of times a second under load. A process that keeps much,
// such as a million counters, would pay for that with several times as much, so
// its heap grows by less.
func collectSeldom(environ []string) {
	if slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		return
	}
	debug.SetGCPercent(seldom)
	set := seldom
	afterEachCollection(func() {
		inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(inUse)
		if wanted := growth(inUse[0].Value.Uint64()); wanted != set {
			debug.SetGCPercent(wanted)
			set = wanted
		}
	})
}

// growth returns by how many percent the heap may grow, from the bytes in use. It
// goes in steps of 10 percent, since each change stops the process for a moment.
func growth(inUse uint64) int {
	if inUse <= room*100/seldom {
		return seldom
	}
	return int(max(room, inUse/2)*10/inUse) * 10 //nolint:gosec // less than seldom
}

// afterEachCollection calls do whenever garbage has been collected, for as long as
// the process runs: with each collection goes an object that nobody holds.
func afterEachCollection(do func()) {
	type nobody struct{ _ *nobody }
	runtime.AddCleanup(&nobody{}, func(do func()) {
		do()
		afterEachCollection(do)
	}, do)
}
