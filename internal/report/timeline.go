package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The drawing is laid out in the user units of its viewBox.
const (
	timelineRight   = 16.0
	timelineRow     = 26.0
	timelineRowThin = 11.0 // from lanesThin lanes on, a burst has many
	timelineAxis    = 4.0  // below the lanes; the axis stands above them
	lanesThin       = 20
	lanesMax        = 128
)

// canvas is the width of a drawing, and of the column of lane names in it.
type canvas struct {
	width, label float64
	nameMax      int // runes of a lane's name
}

// wide returns the measures of a drawing for wide screens.
func wide() canvas { return canvas{width: 960, label: 132, nameMax: 20} }

// narrow returns the measures of a drawing for small screens.
func narrow() canvas { return canvas{width: 340, label: 62, nameMax: 9} }

// timeline is the requests of one case on a time axis, ready to be drawn.
type timeline struct {
	canvas
	Class   string // of the drawing: wide or narrow
	Width   float64
	Height  float64
	Bottom  float64
	Lanes   []lane
	Ticks   []tick
	Caption string
	More    int // exchanges left out of the drawing
}

type lane struct {
	Name, Short string
	Y, Middle   float64
	Thin, Odd   bool
	H           float64
	Bars        []bar
}

type bar struct {
	X, Y, W, H    float64
	Class         string
	Label, Anchor string
	LabelX        float64
	LabelClass    string
	Title, Href   string
	Noted         bool
}

type tick struct {
	X     float64
	Label string
}

// newTimeline lays the exchanges out: a row per lane (the name of a connection), and a row of its own for
// each exchange without a lane. ref is the prefix of the rows' anchors; on has the measures of the drawing,
// and class its CSS class. Without exchanges it returns nil.
func newTimeline(exchanges []Exchange, ref string, on canvas, class string) *timeline {
	if len(exchanges) == 0 {
		return nil
	}
	end := 0.0
	for _, x := range exchanges {
		end = max(end, x.At+x.Took)
	}
	t := &timeline{canvas: on, Class: class, Width: on.width, Caption: fmt.Sprintf("%s over %s", plural(len(exchanges), "request"), duration(end))}
	end = max(end, 0.001) // it is divided by
	rows := t.assign(exchanges)
	row := timelineRow
	if len(t.Lanes) > lanesThin {
		row = timelineRowThin
	}
	for i := range t.Lanes {
		l := &t.Lanes[i]
		l.Y, l.H, l.Thin, l.Odd = float64(i)*row, row, row == timelineRowThin, i%2 == 1
		l.Middle = l.Y + row/2
	}
	scale := (t.width - t.label - timelineRight) / end
	for i := range exchanges {
		if rows[i] < 0 { // past the largest number of lanes: not drawn
			continue
		}
		l := &t.Lanes[rows[i]]
		l.Bars = append(l.Bars, t.newBar(&exchanges[i], l, scale, fmt.Sprintf("#%s:x%d", ref, i+1)))
	}
	t.Bottom = float64(len(t.Lanes)) * row
	t.Height = t.Bottom + timelineAxis
	for i, at := range ticks(end) {
		if i%2 == 1 && t.width < 500 {
			continue // there is no room for the labels of all
		}
		t.Ticks = append(t.Ticks, tick{X: round(t.label + at*scale), Label: strings.Replace(millis(at), ".0 ", " ", 1)})
	}
	return t
}

// assign gives each exchange a lane of the drawing, and returns the lanes by their numbers. Exchanges of one lane name (a connection, or the part played) share
// a lane; one without a name has a lane of its own. It is -1 for an exchange past the largest number of lanes: it is not drawn, and t.More counts it.
func (t *timeline) assign(exchanges []Exchange) []int {
	rows, named := make([]int, len(exchanges)), map[string]int{}
	for i := range exchanges {
		name := exchanges[i].Lane
		at, seen := named[name]
		if name == "" || !seen {
			if len(t.Lanes) == lanesMax {
				rows[i] = -1
				t.More++
				continue
			}
			at = len(t.Lanes)
			if name == "" {
				name = "#" + strconv.Itoa(i+1)
			} else {
				named[name] = at
			}
			t.Lanes = append(t.Lanes, lane{Name: name, Short: clip(name, t.nameMax)})
		}
		rows[i] = at
	}
	return rows
}

// newBar returns the bar of one exchange in its lane. scale is the width of a millisecond. The label is inside the bar if it fits there, else beside
// the bar. A thin lane has no labels.
func (t *timeline) newBar(x *Exchange, l *lane, scale float64, href string) bar {
	gap := 5.0
	if l.Thin {
		gap = 1.5
	}
	b := bar{
		X: round(t.label + x.At*scale), W: round(max(x.Took*scale, 3)),
		Y: round(l.Y + gap), H: round(l.H - 2*gap),
		Class: barClass(x), Href: href, Noted: x.Note != "",
		Title: fmt.Sprintf("%s %s → %s\nfrom %s, took %s", x.Method, x.URL, answer(x), millis(x.At), duration(x.Took)),
	}
	if x.Key != "" {
		b.Title += "\nkey " + clip(x.Key, 80)
	}
	if x.Note != "" {
		b.Title += "\n" + x.Note
	}
	if l.Thin {
		return b
	}
	b.Label = clip(x.Method+" "+shortAnswer(x), 28)
	wide := 7.4*float64(len([]rune(b.Label))) + 10 // of the label: 7.4 for a character
	switch {
	case b.W >= wide:
		b.LabelX, b.Anchor, b.LabelClass = b.X+7, "start", "in"
	case b.X+b.W+wide < t.width:
		b.LabelX, b.Anchor, b.LabelClass = b.X+b.W+6, "start", "out"
	default:
		b.LabelX, b.Anchor, b.LabelClass = b.X-6, "end", "out"
	}
	b.LabelX = round(b.LabelX)
	return b
}

// shortAnswer returns the status of an exchange, or "no answer".
func shortAnswer(x *Exchange) string {
	if x.Status != 0 {
		return strconv.Itoa(x.Status)
	}
	return "no answer"
}

// barClass returns the class of the answer: s2 to s5, or sx for none or a cut one.
func barClass(x *Exchange) string {
	if class := x.Status / 100; x.Error == "" && class >= 1 && class <= 5 {
		return "s" + strconv.Itoa(class)
	}
	return "sx"
}

// ticks returns round times from 0 to end, four to nine of them, for the axis of a drawing.
func ticks(end float64) []float64 {
	step := math.Pow(10, math.Floor(math.Log10(end/4)))
	for _, times := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if end/step <= 8 {
			break
		}
		step *= times
	}
	var at []float64
	for i := 0; i <= 10 && float64(i)*step <= end*0.97; i++ { // the label of a tick at the very end would be cut off
		at = append(at, float64(i)*step)
	}
	return at
}

// millis returns a time in milliseconds as a label of the axis.
func millis(ms float64) string {
	if ms == 0 {
		return "0"
	}
	return duration(ms)
}

// round rounds to one decimal.
func round(v float64) float64 { return math.Round(v*10) / 10 }
