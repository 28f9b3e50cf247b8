package journal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// alertFlags say when a look at a journal ends with terminal.ExitFindings, for cron and monitoring.
type alertFlags struct {
	over     time.Duration
	overSet  func() bool
	held     int // fail if more are held; -1: never
	pending  int
	rejected int
	refused  int
	unknown  int
	quiet    bool
}

// bind binds the flags by which a command ends with an alert, an exit status for monitoring. The bounds on numbers are for the command stats alone: counts is true for
// it.
func (f *alertFlags) bind(fs *pflag.FlagSet, counts bool) {
	f.held, f.pending, f.rejected, f.refused, f.unknown = -1, -1, -1, -1, -1
	settings.BindAge(fs, &f.over, "fail-over", "end with status 6 where something is pending or held for longer than this, or was rejected and not done since; 0s: where anything is")
	f.overSet = func() bool { return fs.Changed("fail-over") } // also for 0s, which any age exceeds
	if counts {
		fs.IntVar(&f.held, "fail-held", -1, "end with status 6 where more than so many operations are held (-1: never)")
		fs.IntVar(&f.pending, "fail-pending", -1, "end with status 6 where more than so many operations are pending (-1: never)")
		fs.IntVar(&f.rejected, "fail-rejected", -1, "end with status 6 where more than so many operations were rejected and not done since (-1: never)")
		fs.IntVar(&f.refused, "fail-refused", -1, "end with status 6 where more than so many operations ended as refused in the last hour, or since --since (-1: never)")
		fs.IntVar(&f.unknown, "fail-unknown", -1, "end with status 6 where more than so many operations have ended and are unknown, such as by an answer too large for --declined (-1: never)")
	}
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but what --fail-… finds, on stderr")
}

// check returns an error for a negative bound that the user gave; -1 means that none was given.
func (f *alertFlags) check() error {
	if min(f.held, f.pending, f.rejected, f.refused, f.unknown) < -1 {
		return errors.New("--fail-held, --fail-pending, --fail-rejected, --fail-refused and --fail-unknown must not be negative")
	}
	return nil
}

// wantsRejected reports whether --fail-over or --fail-rejected is given. Both count operations that a server rejected without effect. The journal has forgotten these,
// so that their log must be read.
func (f *alertFlags) wantsRejected() bool { return f.overSet() || f.rejected >= 0 }

// alert counts the operations not done, and those refused.
type alert struct {
	flags   *alertFlags
	now     time.Time
	held    int
	pending int
	over    int // not done for too long
	oldest  time.Duration
	unsent  *persist.Record // the oldest that is due, that nobody has, and that was never sent
	since   time.Time       // of the operations counted as refused
	refused int             // ended since then as refused by the server
	unknown int             // ended, with a result that nobody knows

	// Of those forgotten without effect, and not done since.
	rejected     int
	rejectedOver int // for too long
	older        older
}

// add counts a record for the alert (the exit status for monitoring) if its operation is pending, held, or was refused lately. It keeps the oldest one that waits
// for its first send. It is called for each record that the command reads.
func (a *alert) add(rec *persist.Record) {
	switch rec.State {
	case persist.StateHeld:
		a.held++
	case persist.StatePending:
		a.pending++
	case persist.StateConfirmed:
		if rec.FinalEffect() == persist.EffectRefused && !rec.Finished.Before(a.since) {
			a.refused++
		}
		return
	default:
		return
	}
	// Without a LeaseOwner, no process is sending it now.
	if rec.LeaseOwner == "" && view.IsDueUnsent(rec, a.now) && (a.unsent == nil || rec.Created.Before(a.unsent.Created)) {
		unsent := rec.Clone()
		a.unsent = &unsent
	}
	since := a.now.Sub(rec.Created)
	a.oldest = max(a.oldest, since)
	if a.flags.overSet() && since > a.flags.over {
		a.over++
	}
}

// sayUnsent prints the oldest operation that is due for its first send; if it waits for long, no worker takes it. needs returns the conditions that a worker must meet
// for it, such as a region. It prints nothing with --quiet, or if there is none.
func (a *alert) sayUnsent(stderr io.Writer, needs func(*persist.Record) string) {
	if a.unsent == nil || a.flags.quiet {
		return
	}
	lack := ""
	if text := needs(a.unsent); text != "" {
		lack = "; a worker needs " + text
	}
	terminal.Say(stderr, "due and never sent, the oldest: %s, to %s, begun %s ago%s", session.SeenKey(a.unsent), a.unsent.Origin, view.Roughly(a.now.Sub(a.unsent.Created)), lack)
}

// refusedFor is the age up to which operations count as refused, without --since.
const refusedFor = time.Hour

// conclude returns an error with the exit status for findings if a number is beyond its flag (--fail-…); nil if none is. It is called after all records were
// counted. journal is named in the text. a.over and a.rejectedOver count operations older than --fail-over. a.older adds a clause about rejected ones from before a
// restore of the journal.
func (a *alert) conclude(journal place.Place) error {
	var found []string
	if a.over > 0 {
		found = append(found, fmt.Sprintf("%s not done for longer than %s, the oldest for %s", words.Was(a.over), view.Roughly(a.flags.over), view.Roughly(a.oldest)))
	}
	if f := a.flags; f.held >= 0 && a.held > f.held {
		found = append(found, fmt.Sprintf("%s held, and --fail-held is %d", words.Was(a.held), f.held))
	}
	if f := a.flags; f.pending >= 0 && a.pending > f.pending {
		found = append(found, fmt.Sprintf("%s pending, and --fail-pending is %d", words.Was(a.pending), f.pending))
	}
	switch f := a.flags; { // one line about the rejected is enough
	case f.rejected >= 0 && a.rejected > f.rejected:
		found = append(found, fmt.Sprintf("%s rejected and not done since, and --fail-rejected is %d%s; %s lists them", words.Was(a.rejected), f.rejected, a.older.after(), listRejectedCommand(journal)))
	case a.rejectedOver > 0:
		found = append(found, fmt.Sprintf("%s rejected and not done since, begun more than %s ago%s; %s lists them", words.Was(a.rejectedOver), view.Roughly(f.over), a.older.after(), listRejectedCommand(journal)))
	}
	if f := a.flags; f.refused >= 0 && a.refused > f.refused {
		found = append(found, fmt.Sprintf("%s refused by the server in the last %s, and --fail-refused is %d", words.Was(a.refused), view.Roughly(a.now.Sub(a.since)), f.refused))
	}
	if f := a.flags; f.unknown >= 0 && a.unknown > f.unknown {
		found = append(found, fmt.Sprintf("%s unknown after their end, and --fail-unknown is %d; oncehttp journal list --result unknown --journal %s lists them, and what is pending", words.Was(a.unknown), f.unknown, journal.Shell()))
	}
	if len(found) == 0 {
		return nil
	}
	return &terminal.ExitError{Status: terminal.ExitFindings, Err: fmt.Errorf("journal %s: %s", journal.Name, strings.Join(found, "; "))}
}

// noWriter writes nothing.
type noWriter struct{}

// write drops the record: with --quiet nothing is listed, and the records are only counted.
func (noWriter) write(*persist.Record) error { return nil }

// end does nothing, since write has kept nothing.
func (noWriter) end() error { return nil }

// seeingWriter shows records to somebody else before they are written.
type seeingWriter struct {
	recordWriter
	see func(*persist.Record)
}

// write calls see with the record, which counts it, and then passes it to the writer below.
func (w seeingWriter) write(rec *persist.Record) error {
	w.see(rec)
	return w.recordWriter.write(rec)
}
