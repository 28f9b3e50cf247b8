package clienttest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/oncehttp/oncehttp"
)

// Events keeps the events of a client.
type Events struct {
	mu  sync.Mutex
	All []oncehttp.Event
}

// Observe keeps the event in e.All. It is a value for Config.Observe.
func (e *Events) Observe(_ context.Context, event oncehttp.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.All = append(e.All, event)
}

// Of returns the events of one kind.
func (e *Events) Of(kind oncehttp.EventKind) (found []oncehttp.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.All {
		if event.Kind == kind {
			found = append(found, event)
		}
	}
	return found
}

// Log keeps the lines of a logger.
type Log struct{ b bytes.Buffer }

// Logger returns a logger whose lines the test can read by String.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(&l.b, nil)) }

// Warner returns a logger that takes warnings and errors alone.
func (l *Log) Warner() *slog.Logger {
	return slog.New(slog.NewTextHandler(&l.b, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Lines returns the number of lines.
func (l *Log) Lines() int { return strings.Count(l.b.String(), "\n") }

// Has reports whether a text is among the lines.
func (l *Log) Has(s string) bool { return strings.Contains(l.b.String(), s) }

// String returns all lines logged so far.
func (l *Log) String() string { return l.b.String() }
