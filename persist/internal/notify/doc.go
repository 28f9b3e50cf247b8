// Package notify is what journals share that wake the processes which share them: it sends few notifications for many,
// listens on a connection of its own, tests whether that hears, and replaces one that broke. See persist.Notifier.
package notify

import (
	"context"
	"time"
)

// Config says how messages travel.
type Config struct {
	// Connect makes a connection that listens. Its context ends after Within.
	Connect func(ctx context.Context) (Line, error)
	// Send gives a message to every connection that listens, of any process. It uses the journal's ordinary connections,
	// so that the test finds a Line that leads to another server. Its context ends after Within. An empty message says
	// that something may be due.
	Send func(ctx context.Context, message string) error
	// Within bounds the making of a connection, a Send, and the way of a message from there to a Line. Positive.
	Within time.Duration
	// Name is how errors call the journal; it holds no credentials.
	Name string
	// Advice is what to do where a connection listens and no message arrives.
	Advice string
}

// Line is a connection that listens.
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
	// testEvery is how long a connection may be silent before it is tested again.
	testEvery = time.Minute
	// pauseFirst and pauseLast are the pauses before a connection is replaced; each is twice the one before. A part of each
	// is random, so that not all processes come back at once after the server was started anew.
	pauseFirst = 100 * time.Millisecond
	pauseLast  = time.Minute
)
