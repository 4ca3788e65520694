package main

import (
	"fmt"
	"image/png"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/tollgate-dev/tollgate/core/auth/replay"
)

// The size of the plot: two panels next to each other.
const (
	panelWidth  = 11 * vg.Centimeter
	panelHeight = 8.5 * vg.Centimeter
	columns     = 2
)

// leastShare is the least share of challenged logins that the plot shows.
const leastShare = .001

// drawPlot writes a PNG with a panel for each class of attacks: the share of attacks that a scorer
// catches, by the share of legitimate logins that it challenges.
func drawPlot(file string, streams [][]login, all []scorer) error {
	labels := attackLabels(streams)
	rows := (len(labels) + columns - 1) / columns
	panels := make([][]*plot.Plot, rows)
	for r := range panels {
		panels[r] = make([]*plot.Plot, columns)
	}
	for i, attack := range labels {
		p, err := newPanel(attack, streams, all)
		if err != nil {
			return err
		}
		panels[i/columns][i%columns] = p
	}
	canvas := vgimg.NewWith(vgimg.UseWH(columns*panelWidth, vg.Length(rows)*panelHeight), vgimg.UseDPI(104))
	tiles := draw.Tiles{
		Rows: rows, Cols: columns, PadX: vg.Centimeter / 2, PadY: vg.Centimeter / 2, PadTop: vg.Centimeter / 4,
		PadRight: vg.Centimeter / 2,
	}
	for r, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		for c := range row {
			if panels[r][c] != nil {
				panels[r][c].Draw(row[c])
			}
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(out, canvas.Image()); err != nil {
		_ = out.Close() // the first error counts
		return fmt.Errorf("write %s: %w", file, err)
	}
	return out.Close()
}

// newPanel returns the panel of a class of attacks.
func newPanel(attack string, streams [][]login, all []scorer) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = strings.ReplaceAll(attack, "_", " ")
	p.X.Label.Text, p.Y.Label.Text = "legitimate logins that are challenged", "attacks that are caught"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = leastShare, 1, 0, 1
	p.Legend.Top, p.Legend.Left = attack == "very_targeted", attack == "very_targeted"
	p.Legend.ThumbnailWidth = vg.Points(24)
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label,
		&p.Legend.TextStyle,
	} {
		style.Font.Variant, style.Font.Size = "Sans", vg.Points(9)
	}
	p.Add(plotter.NewGrid())
	for i, s := range all {
		line, err := plotter.NewLine(curve(attack, streams, s))
		if err != nil {
			return nil, fmt.Errorf("curve of %s: %w", s.name, err)
		}
		line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(i), vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(s.name, line)
	}
	return p, nil
}

// curve returns the share of attacks that are caught by the share of legitimate logins that are
// challenged, over all streams.
func curve(attack string, streams [][]login, s scorer) plotter.XYs {
	attacks, legit := []float64{}, []float64{}
	for i, stream := range streams {
		c := classify(stream, s.streams[i], func(s score) float64 { return s.value })
		attacks, legit = append(attacks, c[attack]...), append(legit, c[replay.LegitimateLabel]...)
	}
	return thresholds(attacks, legit)
}
