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
	quiet    bool
}

// bind binds the flags shared by stuck and stats. counts adds those of stats alone.
func (f *alertFlags) bind(fs *pflag.FlagSet, counts bool) {
	f.held, f.pending, f.rejected = -1, -1, -1
	settings.BindAge(fs, &f.over, "fail-over", "end with status 6 where something is pending or held for longer than this, or was rejected and not done since; 0s: where anything is")
	f.overSet = func() bool { return fs.Changed("fail-over") }
	if counts {
		fs.IntVar(&f.held, "fail-held", -1, "end with status 6 where more than so many operations are held (-1: never)")
		fs.IntVar(&f.pending, "fail-pending", -1, "end with status 6 where more than so many operations are pending (-1: never)")
		fs.IntVar(&f.rejected, "fail-rejected", -1, "end with status 6 where more than so many operations were rejected and not done since (-1: never)")
	}
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but what --fail-… finds, on stderr")
}

func (f *alertFlags) check() error {
	if min(f.held, f.pending, f.rejected) < -1 {
		return errors.New("--fail-held, --fail-pending and --fail-rejected must not be negative")
	}
	return nil
}

// wantsRejected reports whether a finding depends on rejected operations.
func (f *alertFlags) wantsRejected() bool { return f.overSet() || f.rejected >= 0 }

// alert counts the operations not done.
type alert struct {
	flags   *alertFlags
	now     time.Time
	held    int
	pending int
	over    int // not done for too long
	oldest  time.Duration
	unsent  *persist.Record // the oldest that is due, that nobody has, and that was never sent

	// Of those forgotten without effect, and not done since.
	rejected     int
	rejectedOver int // for too long
	older        older
}

// add counts an operation, if it is not done.
func (a *alert) add(rec *persist.Record) {
	switch rec.State {
	case persist.StateHeld:
		a.held++
	case persist.StatePending:
		a.pending++
	default:
		return
	}
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

// sayUnsent names the oldest operation that waits for its first send: no worker takes it, if that is long ago.
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

// conclude returns the error to end the command with terminal.ExitFindings, in one line; nil if there is nothing to tell.
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
	switch f := a.flags; {
	case f.rejected >= 0 && a.rejected > f.rejected:
		found = append(found, fmt.Sprintf("%s rejected and not done since, and --fail-rejected is %d%s; %s lists them", words.Was(a.rejected), f.rejected, a.older.after(), listRejectedCommand(journal)))
	case a.rejectedOver > 0:
		found = append(found, fmt.Sprintf("%s rejected and not done since, begun more than %s ago%s; %s lists them", words.Was(a.rejectedOver), view.Roughly(f.over), a.older.after(), listRejectedCommand(journal)))
	}
	if len(found) == 0 {
		return nil
	}
	return &terminal.ExitError{Status: terminal.ExitFindings, Err: fmt.Errorf("journal %s: %s", journal.Name, strings.Join(found, "; "))}
}

// noWriter writes nothing.
type noWriter struct{}

func (noWriter) write(*persist.Record) error { return nil }

func (noWriter) end() error { return nil }

// seeingWriter shows records to somebody else before they are written.
type seeingWriter struct {
	recordWriter
	see func(*persist.Record)
}

func (w seeingWriter) write(rec *persist.Record) error {
	w.see(rec)
	return w.recordWriter.write(rec)
}
