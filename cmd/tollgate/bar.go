package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// barInterval is how long a bar stays as it is at least.
const barInterval = 100 * time.Millisecond

// bar shows how far a command has come, on a terminal only.
type bar struct {
	line   *progressbar.ProgressBar // nil where there is no terminal
	source progress
}

// progress is what a bar shows: what was done, and what there is in all; -1
// when nobody knows.
type progress interface {
	Progress() (done, all int64)
}

func newBar(w io.Writer, source progress) *bar {
	if !isTerminal(w) {
		return &bar{}
	}
	_, all := source.Progress()
	return &bar{
		line: progressbar.NewOptions64(all,
			progressbar.OptionSetWriter(w), progressbar.OptionShowBytes(true), progressbar.OptionFullWidth(),
			progressbar.OptionSetDescription("reading"), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(barInterval),
		),
		source: source,
	}
}

// move brings the bar to where its source is.
func (b *bar) move() {
	if b.line != nil {
		done, _ := b.source.Progress()
		_ = b.line.Set64(done) // a bar that cannot be shown is no reason to stop
	}
}

// finish takes the bar away.
func (b *bar) finish() {
	if b.line != nil {
		_ = b.line.Finish() // likewise
	}
}
