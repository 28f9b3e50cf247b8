package terminal

import (
	"io"
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

// Over is a writer over another one, which may be a terminal.
type Over interface {
	Beneath() io.Writer
}

// IsTerminal reports whether a reader or writer is a terminal. A writer wrapped around another one (Over) counts as the one beneath.
func IsTerminal(w any) bool {
	for {
		over, is := w.(Over)
		if !is {
			break
		}
		w = over.Beneath()
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colors reports whether w shows colours: a terminal, but not a dumb one, and without NO_COLOR (no-color.org).
func Colors(w any) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
