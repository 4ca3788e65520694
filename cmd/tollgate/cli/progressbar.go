package cli

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
)

// barRefreshInterval is the minimum time between two updates of the bar.
const barRefreshInterval = 100 * time.Millisecond

// ProgressBar shows the progress of a command. It is shown only on a terminal.
type ProgressBar struct {
	line   *progressbar.ProgressBar // nil if the output is not a terminal
	source progressSource
}

// progressSource reports how many bytes are done, and how many there are in total: -1 if unknown.
type progressSource interface {
	Progress() (done, total int64)
}

// NewProgressBar returns a bar for the progress of a source.
func NewProgressBar(w io.Writer, source progressSource) *ProgressBar {
	if !IsTerminal(w) {
		return &ProgressBar{}
	}
	_, total := source.Progress()
	return &ProgressBar{
		line: progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w), progressbar.OptionShowBytes(true), progressbar.OptionFullWidth(),
			progressbar.OptionSetDescription("reading"), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(barRefreshInterval),
		),
		source: source,
	}
}

// Update moves the bar to the progress of its source.
func (b *ProgressBar) Update() {
	if b.line != nil {
		done, _ := b.source.Progress()
		_ = b.line.Set64(done) // the command continues without the bar
	}
}

// Finish removes the bar.
func (b *ProgressBar) Finish() {
	if b.line != nil {
		_ = b.line.Finish() // the result follows anyway
	}
}

// CountBar shows how far the read of another registry is. It is shown only on a terminal.
type CountBar struct {
	line    *progressbar.ProgressBar // nil if the output is not a terminal
	storing bool
}

// NewCountBar returns a bar for the read of a registry.
func NewCountBar(w io.Writer) *CountBar {
	if !IsTerminal(w) {
		return &CountBar{}
	}
	return &CountBar{line: progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(w), progressbar.OptionShowCount(), progressbar.OptionFullWidth(),
		progressbar.OptionSetDescription("reading"), progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(barRefreshInterval),
	)}
}

// Observe moves the bar.
func (b *CountBar) Observe(p mirroring.Progress) {
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

// Finish removes the bar.
func (b *CountBar) Finish() {
	if b.line != nil {
		_ = b.line.Finish() // the result follows anyway
	}
}
