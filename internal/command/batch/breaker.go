package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// breaker stops a batch that cannot succeed: a wrong token, a wrong URL, a server that is down. Without it every
// row would fail in the same way by itself.
//
// It counts the answers in a row with the same failure. A success or an answer of the business (done, accepted,
// declined) restarts the count. While no connection can be had, no further row is begun. The rows in progress go
// on with their own attempts, and the first answer to any of them lets all go on. Rows not begun because of the
// journal are counted by themselves. Safe for concurrent use.
type breaker struct {
	most   int               // alike in a row; 0: no limit
	trip   func(cause error) // stops the batch
	server string            // the origin of all rows, for messages

	mu      sync.Mutex
	last    results.Group
	alike   int
	stuck   int // rows in a row not begun because of the journal
	taken   int // rows in a row whose keys stand for other requests
	running int
	down    bool          // no connection could be had, and no answer since
	changed chan struct{} // closed when a row may be begun again; nil: nobody waits
}

// stuckRowsMost rows in a row that cannot be begun stop the batch, if --max-errors is not less. Each of them may
// wait for as long as a call of the journal may take.
const stuckRowsMost = 10

// stuckError stops a batch whose journal does not let rows begin.
type stuckError struct {
	rows int
	err  error // of the last row
}

// Error returns the text of the error that stopped the batch.
func (e *stuckError) Error() string { return e.err.Error() }

// Unwrap returns the error that stopped the batch.
func (e *stuckError) Unwrap() error { return e.err }

// said returns the error for the end of a batch that stopped because its rows could not be written to the journal. journal is the journal's name; notTried is the
// number of rows not looked at.
func (e *stuckError) said(journal string, notTried int) error {
	return fmt.Errorf("stopped: %s one after the other could not be begun, and %s not looked at; the same command goes on later: %w",
		words.Count(e.rows, "row"), words.Was(notTried), place.JournalError(journal, e.err))
}

// stoppedError stops a batch that cannot succeed.
type stoppedError struct {
	text, flag string
	wrongFile  bool // rows in a row have keys that stand for other requests
}

// Error says why the batch stopped, that the rest of the rows was not looked at, and by which flag, if it was by one.
func (e *stoppedError) Error() string { return e.text + "; the rest was not looked at" + e.flag }

// said returns the error for the end of a batch. notTried is the number of rows not looked at; if it is 0, the text does not mention a rest.
func (e *stoppedError) said(notTried int) error {
	if notTried > 0 {
		return e
	}
	return errors.New(e.text + e.flag)
}

// newBreaker returns a breaker, which stops a batch that fails again and again. It calls trip with the error after most rows in a row with the same failure; a most of
// 0 never trips. server is the server's name for messages.
func newBreaker(most int, server string, trip func(error)) *breaker {
	return &breaker{most: most, server: server, trip: trip}
}

// begin waits until a row may be begun, and returns true; false if ctx ended first. While the server cannot be connected to, only one row at a time is begun, as a
// probe. After each true the caller must call end once.
func (b *breaker) begin(ctx context.Context) bool {
	for {
		b.mu.Lock()
		if !b.down || b.running == 0 {
			b.running++
			b.mu.Unlock()
			return true
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// takenRowsMost rows in a row whose keys stand for other requests stop the batch, whatever --max-errors is but 0: a single one may be a corrected row.
const takenRowsMost = 20

// takenText returns the end of a sentence about n rows in a row whose keys stand for other requests.
func takenText(n int) string {
	return words.Count(n, "row") + ", with none between that the journal knows as it is, stand for other requests, so that the file or the call may be a wrong one"
}

// flagged is the flag in the error of a batch that a limit has stopped.
const flagged = " (--max-errors 0 looks at all rows)"

// recorded is called for a row that the journal answered: the file is the one that was run. It ends the count of rows whose keys stand for other requests (taken).
func (b *breaker) recorded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = 0
}

// end takes the result line of a row that begin has let through (the line of JSON that is printed for it). It trips the breaker, which stops the batch, if the
// server cannot be connected to, if the journal refuses row after row, or if enough rows in a row failed alike. Rows answered by the journal alone say nothing about
// the server, and do not count; but if the keys of enough rows in a row stand for other requests, the rest of the file is most likely wrong, too. Enough is b.most, the value
// of --max-errors (flagged names it); 0 never trips. Of rows that the journal refuses, stuckRowsMost are enough, since each may wait for it.
func (b *breaker) end(l *results.Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	b.wake()
	if b.down && b.running == 0 && b.most > 0 { // down: no connection can be had; the last row in progress has ended so
		b.trip(&stoppedError{text: "stopped: no connection to " + b.server + " could be had"})
		return
	}
	if l.NotBegun != nil { // the error of the journal, by which the row could not be begun
		if b.stuck++; b.most > 0 && b.stuck >= min(b.most, stuckRowsMost) {
			b.trip(&stuckError{b.stuck, l.NotBegun})
		}
		return
	}
	b.stuck = 0
	if l.Result == results.Mismatch {
		if b.taken++; b.most > 0 && b.taken >= takenRowsMost {
			b.trip(&stoppedError{text: "stopped: the keys of " + takenText(b.taken), flag: flagged, wrongFile: true})
			return
		}
	} else if l.Source == results.SourceName(oncehttp.SourceJournal) { // not by a new row, as a wrong file has them, too
		b.taken = 0
	}
	if l.Idle || l.Source == results.SourceName(oncehttp.SourceJournal) || l.Attempts == 0 {
		return
	}
	g := results.Group{Result: l.Result, Status: l.Status}
	if l.Error != nil {
		g.Code = l.Error.Code
	}
	switch {
	case l.Exit == terminal.ExitOK, l.OfRow != 0, l.Result == results.Declined: // OfRow: it repeats that row, and has its result
		b.alike = 0
		return
	case g == b.last:
		b.alike++
	default:
		b.last, b.alike = g, 1
	}
	if b.most > 0 && b.alike >= b.most {
		b.trip(&stoppedError{text: fmt.Sprintf("stopped: %s, tried one after the other, ended alike: %s%s", words.Count(b.alike, "row"), g.Result, statusAndCode(g)), flag: flagged})
	}
}

// statusAndCode returns text such as " (401 refused)" for a message: the status of the rows in g and the code of their error, or the code in words if there was no answer;
// "" if there is neither.
func statusAndCode(g results.Group) string {
	text := g.Text()
	if g.Status != 0 && g.Code != "" {
		text += " " + g.Code
	}
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// observe sees every attempt of every row. A failed connection marks the server as down, and any answer as up again, which wakes the rows waiting in begin.
func (b *breaker) observe(e oncehttp.Event) {
	if e.Kind != oncehttp.EventAnswered {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	down := e.Err != nil && e.Status == 0 && e.Outcome == oncehttp.OutcomeNotSent
	if was := b.down; was && !down && e.Status != 0 {
		b.down = false
		b.wake()
	} else if down {
		b.down = true
	}
}

// wake makes all callers waiting in begin look again. The caller holds b.mu.
func (b *breaker) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
