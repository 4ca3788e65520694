package service

import (
	"runtime"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
)

func TestHeapGrowthPercent(t *testing.T) {
	const mebi = 1 << 20
	for _, c := range []struct {
		inUse, withPointers uint64
		want                int
	}{
		{0, 0, 400},
		{1, 1, 400},
		{4 * mebi, 4 * mebi, 400},
		{16 * mebi, 0, 400},
		{32 * mebi, 0, 200},
		{64 * mebi, mebi, 100},
		{100 * mebi, 10 * mebi, 60},
		{128 * mebi, 0, 50},
		{1 << 40, 0, 50},
		{50 * mebi, 40 * mebi, 320}, // 100,000 rules
		{64 * mebi, 64 * mebi, 400},
		{128 * mebi, 128 * mebi, 200},
		{1 << 40, 1 << 40, 50},
	} {
		if got := heapGrowthPercent(c.inUse, c.withPointers); got != c.want {
			t.Errorf("%d bytes in use, %d with pointers: %d %%, want %d", c.inUse, c.withPointers, got, c.want)
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
	for range 3 { // a collection may come before the next call is set up
		await.Until(t, "a call", func() bool {
			runtime.GC()
			select {
			case <-called:
				return true
			default:
				return false
			}
		})
	}
}
