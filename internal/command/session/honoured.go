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

// newCoverageLog returns a log with its output in w.
func newCoverageLog(w io.Writer) *slog.Logger { return slog.New(coverageLog{w, &sync.Map{}}) }

// Enabled is true from warnings on.
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

// WithAttrs returns l itself: no attribute is kept.
func (l coverageLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup keeps none.
func (l coverageLog) WithGroup(string) slog.Handler { return l }
