package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// barRefreshInterval is the minimum time between two updates of the bar.
const barRefreshInterval = 100 * time.Millisecond

// progressBar shows the progress of a command. It is shown only on a terminal.
type progressBar struct {
	line   *progressbar.ProgressBar // nil if the output is not a terminal
	source progressSource
}

// progressSource reports how many bytes are done, and how many there are in total: -1 if unknown.
type progressSource interface {
	Progress() (done, total int64)
}

func newProgressBar(w io.Writer, source progressSource) *progressBar {
	if !isTerminal(w) {
		return &progressBar{}
	}
	_, total := source.Progress()
	return &progressBar{
		line: progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w), progressbar.OptionShowBytes(true), progressbar.OptionFullWidth(),
			progressbar.OptionSetDescription("reading"), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(barRefreshInterval),
		),
		source: source,
	}
}

// update moves the bar to the progress of its source.
func (b *progressBar) update() {
	if b.line != nil {
		done, _ := b.source.Progress()
		_ = b.line.Set64(done) // the command continues without the bar
	}
}

// finish removes the bar.
func (b *progressBar) finish() {
	if b.line != nil {
		_ = b.line.Finish() // the result follows anyway
	}
}
