package main

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/test/must"
)

// maxPicture is the size in bytes that a picture may have.
const maxPicture = 150 << 10

// TestPictures: the pictures in the documentation are those that the command draws. A few pixels
// may differ, because processors round differently.
func TestPictures(t *testing.T) {
	for a := range algorithms {
		name := filepath.Join("..", pictureName(a))
		f, err := os.Open(name)
		must.Succeed(t, err)
		kept, err := png.Decode(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if info, err := f.Stat(); err != nil || info.Size() > maxPicture {
			t.Errorf("%s has %d bytes, want at most %d (%v)", name, info.Size(), maxPicture, err)
		}
		_ = f.Close() // it was only read
		picture, err := drawPicture(a)
		must.Succeed(t, err)
		drawn, differ := picture.Image(), 0
		size := drawn.Bounds()
		if kept.Bounds() != size {
			t.Fatalf("%s has the size %v, want %v: run make plots", name, kept.Bounds(), size)
		}
		for x := size.Min.X; x < size.Max.X; x++ {
			for y := size.Min.Y; y < size.Max.Y; y++ {
				r1, g1, b1, _ := kept.At(x, y).RGBA()
				r2, g2, b2, _ := drawn.At(x, y).RGBA()
				if [3]uint32{r1, g1, b1} != [3]uint32{r2, g2, b2} {
					differ++
				}
			}
		}
		if differ > size.Dx()*size.Dy()/1000 {
			t.Errorf("%s is out of date, %d pixels differ: run make plots", name, differ)
		}
	}
}

// TestCallsInPictures: the pictures show what the page says about them.
func TestCallsInPictures(t *testing.T) {
	for a, want := range map[ratelimit.Algorithm]struct{ mostInMinute, silence int }{
		ratelimit.FixedWindow:   {120, 47}, // twice the limit, and then nothing until the next window
		ratelimit.SlidingWindow: {99, 9},
		ratelimit.TokenBucket:   {79, 0},
	} {
		calls, err := simulateCalls(a)
		must.Succeed(t, err)
		most, silence, last := 0, 0, time.Duration(-1)
		for _, c := range calls {
			_, admitted := countIn(calls, c.at, c.at+time.Minute)
			most = max(most, admitted)
			if c.admitted {
				last = c.at
			} else if last >= 0 {
				silence = max(silence, int((c.at - last).Seconds()))
			}
		}
		if most != want.mostInMinute || silence != want.silence {
			t.Errorf("%v admits %d calls in a minute and nothing for %d s, want %d and %d", a, most, silence,
				want.mostInMinute, want.silence)
		}
	}
}
