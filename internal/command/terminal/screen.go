package terminal

import (
	"os"

	"golang.org/x/term"
)

// ColumnsOf returns the width of a terminal; 80 if it is unknown.
func ColumnsOf(w any) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colors reports whether w shows colours: a terminal, but not a dumb one, and without NO_COLOR (no-color.org).
func Colors(w any) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
