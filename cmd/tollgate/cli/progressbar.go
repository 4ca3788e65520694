package cli

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
)

// barRefreshInterval is the minimum time between two updates of the bar.
const barRefreshInterval = 100 * time.Millisecond

// newBar returns a line that shows a number of done and of all things, which is -1 if it is
// unknown. It is nil if the writer is not a terminal.
func newBar(w io.Writer, total int64, unit progressbar.Option) *progressbar.ProgressBar {
	if !IsTerminal(w) {
		return nil
	}
	return progressbar.NewOptions64(total, unit,
		progressbar.OptionSetWriter(w), progressbar.OptionFullWidth(), progressbar.OptionSetDescription("reading"),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(barRefreshInterval),
	)
}

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
	_, total := source.Progress()
	return &ProgressBar{line: newBar(w, total, progressbar.OptionShowBytes(true)), source: source}
}

// Update moves the bar to the progress of its source.
func (b *ProgressBar) Update() {
	if b.line != nil {
		done, _ := b.source.Progress()
		_ = b.line.Set64(done) // the command continues without the bar
	}
}

// Finish removes the bar.
func (b *ProgressBar) Finish() { finishBar(b.line) }

func finishBar(line *progressbar.ProgressBar) {
	if line != nil {
		_ = line.Finish() // the result follows anyway
	}
}

// CountBar shows how far the read of another registry is. It is shown only on a terminal.
type CountBar struct {
	line    *progressbar.ProgressBar // nil if the output is not a terminal
	storing bool
}

// NewCountBar returns a bar for the read of a registry.
func NewCountBar(w io.Writer) *CountBar {
	return &CountBar{line: newBar(w, -1, progressbar.OptionShowCount())}
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
func (b *CountBar) Finish() { finishBar(b.line) }
