package report

// ansi is an ANSI colour, by its number in an SGR sequence. Only the sixteen basic
// ones are used: the reader's own scheme decides their look.
type ansi string

const (
	bold    ansi = "1"
	dim     ansi = "2"
	red     ansi = "31"
	green   ansi = "32"
	yellow  ansi = "33"
	blue    ansi = "34"
	magenta ansi = "35"
)

// paint colours s if colours are wanted.
func (t *texter) paint(c ansi, s string) string {
	if !t.o.Color || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// verdict returns the verdict's name, filled up to width and coloured.
func (t *texter) verdict(v Verdict, width int) string {
	return t.paint(color(v), pad(string(v), width))
}

// color returns the colour of a verdict.
func color(v Verdict) ansi {
	switch v {
	case Pass:
		return green
	case Warn:
		return yellow
	case Seen:
		return blue
	case Skip:
		return dim
	case Inconclusive:
		return magenta
	}
	return red
}
