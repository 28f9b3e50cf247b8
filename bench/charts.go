package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// chart describes a picture of the figures with its name (figure.Chart).
type chart struct {
	name, title, x, y string
	logX, logY        bool
}

// charts returns the charts of the benchmark's report: their titles and axes, without values.
func charts() []chart {
	return []chart{
		{name: chartWorkers, title: "Throughput by workers, server answers in 20 ms", x: "workers", y: "operations per second", logX: true, logY: true},
		{name: chartDelay, title: "Added latency by server delay, one worker", x: "server delay (ms)", y: "added at p50 (µs)"},
		{name: chartLive, title: "Begin by live records, 64 writers", x: "live records (thousands)", y: "begins per second"},
	}
}

// drawCharts draws each chart with figures in the report, as an SVG file in the folder dir; "" draws none.
func drawCharts(r *report, dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range charts() {
		lines, names := c.lines(r)
		if len(names) == 0 {
			continue
		}
		if err := c.draw(lines, names, filepath.Join(dir, c.name+".svg")); err != nil {
			return fmt.Errorf("chart %s: %w", c.name, err)
		}
	}
	return nil
}

// lines returns the points of each line, in order of x, by the figures' names, and these names in order of appearance: none if the report has no figure of the
// chart.
func (c *chart) lines(r *report) (map[string]plotter.XYs, []string) {
	lines := map[string]plotter.XYs{}
	var names []string
	for _, s := range r.Sections {
		for _, f := range s.Figures {
			if f.Chart != c.name || (c.logY && f.Median <= 0) { // a logarithmic axis has no place for zero
				continue
			}
			if lines[f.Name] == nil {
				names = append(names, f.Name)
			}
			lines[f.Name] = append(lines[f.Name], plotter.XY{X: f.X, Y: f.Median})
		}
	}
	for _, l := range lines {
		slices.SortFunc(l, func(a, b plotter.XY) int { return int(a.X - b.X) })
	}
	return lines, names
}

// draw writes the chart to a file at path. The extension of path sets the format. lines has the points of each line by its name, names their order in the
// legend.
func (c *chart) draw(lines map[string]plotter.XYs, names []string, path string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.Padding, p.Legend.Padding = vg.Points(8), vg.Points(3)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, name := range names {
		line, points, err := plotter.NewLinePoints(lines[name])
		if err != nil {
			return err
		}
		line.Color, points.Color = plotutil.Color(i), plotutil.Color(i)
		line.Dashes, points.Shape = plotutil.Dashes(i), plotutil.Shape(i)
		line.Width = vg.Points(1.5)
		p.Add(line, points)
		p.Legend.Add(name, line, points)
	}
	c.axes(p, lines)
	return p.Save(22*vg.Centimeter, 14*vg.Centimeter, path)
}

// axes sets scales and marks, with room for the legend above the lines: for that the upper end of y is raised.
func (c *chart) axes(p *plot.Plot, lines map[string]plotter.XYs) {
	p.X.Tick.Marker = plot.ConstantTicks(ticks(lines))
	if c.logX {
		p.X.Scale = plot.LogScale{}
	}
	if !c.logY {
		p.Y.Min, p.Y.Max = 0, p.Y.Max*1.5
		return
	}
	p.Y.Scale = plot.LogScale{}
	p.Y.Max *= 4
	var marks []plot.Tick
	for decade := 1.0; decade < p.Y.Max; decade *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if v := step * decade; v >= p.Y.Min && v <= p.Y.Max {
				marks = append(marks, plot.Tick{Value: v, Label: number(v)})
			}
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(marks)
}

// ticks returns a mark for each x of the lines.
func ticks(lines map[string]plotter.XYs) []plot.Tick {
	var xs []float64
	for _, l := range lines {
		for _, p := range l {
			xs = append(xs, p.X)
		}
	}
	slices.Sort(xs)
	var marks []plot.Tick
	for _, x := range slices.Compact(xs) {
		marks = append(marks, plot.Tick{Value: x, Label: number(x)})
	}
	return marks
}
