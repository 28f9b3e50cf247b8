package terminal

import (
	"os"

	"golang.org/x/term"
)

// ColumnsOf is the width of a terminal; 80 where it does not say.
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

// Colors reports whether w shows colours: a terminal that is not a dumb one, unless
// NO_COLOR is set (no-color.org).
func Colors(w any) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
