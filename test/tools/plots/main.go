// Command plots draws the pictures of docs/ratelimit-algorithms.md: which calls of one caller each algorithm
// admits. The decisions are those of the service, with counters in the process, at the times of the
// picture.
package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// folder has the pictures; it is a path from the folder of the module.
const folder = "../../docs/ratelimit"

// algorithms have a picture each, with the title.
var algorithms = map[ratelimit.Algorithm]string{
	ratelimit.FixedWindow:   "fixed_window, 60 per minute",
	ratelimit.SlidingWindow: "sliding_window, 60 per minute",
	ratelimit.TokenBucket:   "token_bucket, 60 per minute, burst 20",
}

var (
	grey = color.RGBA{R: 0xc4, G: 0xc8, B: 0xcf, A: 0xff}
	blue = color.RGBA{R: 0x1f, G: 0x5f, B: 0xbf, A: 0xff}
	red  = color.RGBA{R: 0xc6, G: 0x2d, B: 0x2d, A: 0xff}
)

func main() {
	for a := range algorithms {
		if err := writePicture(a); err != nil {
			fmt.Fprintln(os.Stderr, "plots:", err)
			os.Exit(1)
		}
	}
}

func pictureName(a ratelimit.Algorithm) string { return filepath.Join(folder, a.String()+".png") }

func writePicture(a ratelimit.Algorithm) error {
	picture, err := drawPicture(a)
	if err != nil {
		return err
	}
	f, err := os.Create(pictureName(a))
	if err != nil {
		return fmt.Errorf("create a picture: %w", err)
	}
	if _, err := (vgimg.PngCanvas{Canvas: picture}).WriteTo(f); err != nil {
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	return nil
}

// drawPicture draws the calls of each second, and below them the sums of a minute.
func drawPicture(a ratelimit.Algorithm) (*vgimg.Canvas, error) {
	calls, err := simulateCalls(a)
	if err != nil {
		return nil, err
	}
	seconds, err := plotSeconds(calls)
	if err != nil {
		return nil, err
	}
	seconds.Title.Text = algorithms[a]
	minutes, err := plotMinutes(calls)
	if err != nil {
		return nil, err
	}
	picture := vgimg.NewWith(vgimg.UseWH(22*vg.Centimeter, 12*vg.Centimeter), vgimg.UseDPI(96),
		vgimg.UseBackgroundColor(color.White))
	rows := [][]*plot.Plot{{seconds}, {minutes}}
	margin := vg.Points(8)
	canvases := plot.Align(rows, draw.Tiles{
		Rows: 2, Cols: 1, PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: margin, PadY: margin,
	}, draw.New(picture))
	for i, row := range rows {
		row[0].Draw(canvases[i][0])
	}
	return picture, nil
}

// plotSeconds plots the calls of each second and those that were admitted.
func plotSeconds(calls []call) (*plot.Plot, error) {
	p := newPlot("calls in a second", 6, 1)
	var made, admitted plotter.XYs
	for at := time.Duration(0); at < duration; at += time.Second {
		m, a := countIn(calls, at, at+time.Second)
		for _, x := range [...]float64{at.Seconds(), (at + time.Second).Seconds()} { // a step
			made, admitted = append(made, plotter.XY{X: x, Y: float64(m)}),
				append(admitted, plotter.XY{X: x, Y: float64(a)})
		}
	}
	return p, addAreas(p, made, admitted)
}

// plotMinutes plots how many calls were made and admitted in the minute before each time, and the
// limit.
func plotMinutes(calls []call) (*plot.Plot, error) {
	p := newPlot("calls in the last minute", 240, 60)
	var made, admitted plotter.XYs
	for at := time.Duration(0); at <= duration; at += time.Second / 2 {
		m, a := countIn(calls, at-time.Minute, at)
		made = append(made, plotter.XY{X: at.Seconds(), Y: float64(m)})
		admitted = append(admitted, plotter.XY{X: at.Seconds(), Y: float64(a)})
	}
	if err := addAreas(p, made, admitted); err != nil {
		return nil, err
	}
	limit, err := plotter.NewLine(plotter.XYs{{X: 0, Y: perMinute}, {X: duration.Seconds(), Y: perMinute}})
	if err != nil {
		return nil, fmt.Errorf("plot the limit: %w", err)
	}
	limit.Color, limit.Width, limit.Dashes = red, vg.Points(1.2), []vg.Length{vg.Points(5), vg.Points(3)}
	p.Add(limit)
	p.Legend.Add("limit", limit)
	return p, nil
}

// newPlot returns an empty plot over the time in minutes.
func newPlot(what string, most, step float64) *plot.Plot {
	p := plot.New()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, duration.Seconds(), 0, most
	p.Y.Label.Text = what
	p.X.Tick.Marker = evenTicks{20, func(at float64) string {
		return fmt.Sprintf("%d:%02d", int(at)/60, int(at)%60)
	}}
	p.Y.Tick.Marker = evenTicks{step, func(n float64) string { return fmt.Sprintf("%.0f", n) }}
	p.Legend.Top, p.Legend.Left, p.Legend.Padding, p.Legend.ThumbnailWidth = true, true, vg.Points(2), vg.Points(18)
	for _, style := range []*text.Style{
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.Y.Label.TextStyle, &p.Legend.TextStyle, &p.Title.TextStyle,
	} {
		style.Font.Variant, style.Font.Size = "Sans", vg.Points(9)
	}
	p.Title.TextStyle.Font.Size = vg.Points(11)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 0xec}, color.Gray{Y: 0xec}
	p.Add(grid)
	return p
}

// addAreas adds the calls that were made and, in front of them, those that were admitted.
func addAreas(p *plot.Plot, made, admitted plotter.XYs) error {
	for _, area := range []struct {
		name   string
		points plotter.XYs
		fill   color.Color
	}{{"made", made, grey}, {"admitted", admitted, blue}} {
		first, last := area.points[0].X, area.points[len(area.points)-1].X
		outline := append(plotter.XYs{{X: first}}, append(area.points, plotter.XY{X: last})...)
		polygon, err := plotter.NewPolygon(outline)
		if err != nil {
			return fmt.Errorf("plot the calls %s: %w", area.name, err)
		}
		polygon.Color, polygon.LineStyle.Width = area.fill, 0
		p.Add(polygon)
		p.Legend.Add(area.name, polygon)
	}
	return nil
}

// evenTicks are ticks at the multiples of a step.
type evenTicks struct {
	step   float64
	format func(float64) string
}

// Ticks implements plot.Ticker.
func (t evenTicks) Ticks(least, most float64) (all []plot.Tick) {
	for at := least; at <= most; at += t.step {
		all = append(all, plot.Tick{Value: at, Label: t.format(at)})
	}
	return all
}
