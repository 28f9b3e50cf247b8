package session

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// coverageLog is a log for warnings about operations without a protecting key. It prints each such operation once, and nothing else.
type coverageLog struct {
	w    io.Writer
	said *sync.Map
}

// newCoverageLog returns a log for the client that prints the client's warnings to w, once for each operation, such as that the profile does not list it as one whose
// keys the API honours.
func newCoverageLog(w io.Writer) *slog.Logger { return slog.New(coverageLog{w, &sync.Map{}}) }

// Enabled implements slog.Handler. It reports true from warnings on: the command prints nothing else of the client's log.
func (coverageLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle prints the warning in a log record, once for each operation. A record that names no operation is ignored.
func (l coverageLog) Handle(_ context.Context, r slog.Record) error {
	operation, text := "", ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "operation":
			operation = a.Value.String()
		case "error":
			text = a.Value.String()
		}
		return true
	})
	if _, again := l.said.LoadOrStore(operation, true); operation != "" && !again {
		terminal.Say(l.w, "oncehttp: warning: %s", strings.ReplaceAll(text, "KeyHonoured", "--key-honoured"))
	}
	return nil
}

// WithAttrs implements slog.Handler. It returns l itself, since no attribute is printed but those of each record.
func (l coverageLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler. It returns l itself, since groups are not printed.
func (l coverageLog) WithGroup(string) slog.Handler { return l }
