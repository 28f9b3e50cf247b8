package check

import (
	"io"

	"github.com/schollz/progressbar/v3"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// bar is a progress bar on a terminal, and nothing anywhere else.
type bar struct{ bar *progressbar.ProgressBar }

// newBar returns a progress bar for so many steps, drawn on stderr if that is a terminal. If the results go to a terminal, too, it draws nothing, since the two would
// run into each other. name is written before the bar.
func newBar(stderr, results io.Writer, steps int, name string) *bar {
	if !terminal.IsTerminal(stderr) || terminal.IsTerminal(results) {
		return &bar{}
	}
	return &bar{bar: progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionSetDescription(name),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("cases"),
		progressbar.OptionThrottle(100e6), // ns: ten times a second at most
		progressbar.OptionClearOnFinish(),
	)}
}

// add moves the bar by one case. Without a bar it does nothing.
func (p *bar) add() {
	if p.bar != nil {
		_ = p.bar.Add(1) // a bar that cannot be drawn is no reason to stop
	}
}

// finish takes the bar off the terminal. Without a bar it does nothing.
func (p *bar) finish() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}
