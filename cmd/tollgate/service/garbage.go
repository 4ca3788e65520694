package service

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
)

const (
	// maxHeapGrowthPercent is how much the heap may grow between two garbage collections, in
	// percent of the memory in use.
	maxHeapGrowthPercent = 400
	// maxHeapGrowthBytes limits the growth in bytes, while it is more than half of the memory in
	// use and more than maxHeapGrowthPercent of the memory with pointers.
	maxHeapGrowthBytes = 64 << 20
	// maxScanGrowthBytes limits the growth because of memory with pointers.
	maxScanGrowthBytes = 256 << 20
)

// relaxGarbageCollection lets the heap grow more than Go's default between two collections, unless
// GOGC is set. The service keeps little memory between requests, and with Go's default it would
// collect garbage dozens of times a second under load. A process that keeps a lot of memory, for
// example a million counters, would need several times as much; its heap may grow by less. But the
// more of that memory has pointers, for example that of 100,000 rules, the longer a collection
// takes and the more rarely it should happen.
func relaxGarbageCollection(environ []string) {
	if slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		return
	}
	debug.SetGCPercent(maxHeapGrowthPercent)
	set := maxHeapGrowthPercent
	afterEachCollection(func() {
		sizes := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
		metrics.Read(sizes)
		if wanted := heapGrowthPercent(sizes[0].Value.Uint64(), sizes[1].Value.Uint64()); wanted != set {
			debug.SetGCPercent(wanted)
			set = wanted
		}
	})
}

// heapGrowthPercent returns by how many percent the heap may grow, given the bytes in use and those
// of them that are in objects with pointers. The result is a multiple of 10, because each change of
// the setting stops the process for a moment.
func heapGrowthPercent(inUse, withPointers uint64) int {
	if inUse <= maxHeapGrowthBytes*100/maxHeapGrowthPercent {
		return maxHeapGrowthPercent
	}
	forPointers := min(withPointers*maxHeapGrowthPercent/100, maxScanGrowthBytes)
	return int(max(maxHeapGrowthBytes, inUse/2, forPointers)*10/inUse) *
		10 //nolint:gosec // at most maxHeapGrowthPercent
}

// afterEachCollection calls do after every garbage collection, until the process ends. It creates
// an unreferenced object, whose cleanup runs with the next collection.
func afterEachCollection(do func()) {
	type sentinel struct{ _ *sentinel }
	runtime.AddCleanup(&sentinel{}, func(do func()) {
		do()
		afterEachCollection(do)
	}, do)
}
