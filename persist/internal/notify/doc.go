// Package notify is the common part of journals with notifications between their processes. It sends few
// notifications for many calls, listens on a connection of its own, tests this connection, and replaces a broken one.
// See persist.Notifier.
package notify

import (
	"context"
	"time"
)

// Config holds the functions and bounds for messages.
type Config struct {
	// Connect makes a listening connection. Its context ends after Within.
	Connect func(ctx context.Context) (Line, error)
	// Send gives a message to every listening connection, of any process. It uses the journal's ordinary connections,
	// so the test finds a Line to another server. Its context ends after Within. An empty message means: something may
	// be due.
	Send func(ctx context.Context, message string) error
	// Within bounds the making of a connection, a Send, and the way of a message from there to a Line. Positive.
	Within time.Duration
	// Name is the name of the journal in errors, without credentials.
	Name string
	// Advice is the advice in the error when a connection listens and no message arrives.
	Advice string
}

// Line is a listening connection.
type Line interface {
	// Next waits for the next message. It returns an error soon after ctx has ended. After any error only Close is called.
	Next(ctx context.Context) (message string, err error)
	// Close ends the connection, within a bounded time. Next is not under way.
	Close()
}

// The pace of what the package does by itself.
const (
	// Every is the least time between two notifications of one Hub.
	Every = 100 * time.Millisecond
	// testEvery is the silence of a connection before its next test.
	testEvery = time.Minute
	// pauseFirst and pauseLast are the pauses before a connection is replaced; each is twice the one before. A part of
	// each is random, so not all processes come back at once after a restart of the server.
	pauseFirst = 100 * time.Millisecond
	pauseLast  = time.Minute
)
