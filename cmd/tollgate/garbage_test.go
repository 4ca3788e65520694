package main

import (
	"runtime"
	"testing"
)

func TestHeapGrowthPercent(t *testing.T) {
	const mebi = 1 << 20
	for inUse, want := range map[uint64]int{
		0: 400, 1: 400, 4 * mebi: 400, 16 * mebi: 400, 32 * mebi: 200, 64 * mebi: 100, 100 * mebi: 60, 128 * mebi: 50, 1 << 40: 50,
	} {
		if got := heapGrowthPercent(inUse); got != want {
			t.Errorf("%d bytes in use: %d %%, want %d", inUse, got, want)
		}
	}
}

func TestAfterEachCollection(t *testing.T) {
	called := make(chan struct{}, 100)
	afterEachCollection(func() {
		select {
		case called <- struct{}{}:
		default:
		}
	})
	for range 3 {
		runtime.GC()
		<-called
	}
}
