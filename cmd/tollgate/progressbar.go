package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
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

// countBar shows how far the read of another registry is. It is shown only on a terminal.
type countBar struct {
	line    *progressbar.ProgressBar // nil if the output is not a terminal
	storing bool
}

func newCountBar(w io.Writer) *countBar {
	if !isTerminal(w) {
		return &countBar{}
	}
	return &countBar{line: progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(w), progressbar.OptionShowCount(), progressbar.OptionFullWidth(),
		progressbar.OptionSetDescription("reading"), progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(barRefreshInterval),
	)}
}

// observe moves the bar.
func (b *countBar) observe(p mirroring.Progress) {
	switch {
	case b.line == nil:
	case p.Applied == 0:
		_ = b.line.Set(p.Read) // the command continues without the bar
	default:
		if !b.storing {
			b.storing = true
			b.line.ChangeMax(p.Read)
			b.line.Describe("storing")
		}
		_ = b.line.Set(p.Applied) // likewise
	}
}

// finish removes the bar.
func (b *countBar) finish() {
	if b.line != nil {
		_ = b.line.Finish() // the result follows anyway
	}
}
