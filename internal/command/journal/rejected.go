package journal

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/forgotten"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// This file shows the attempts of operations that the journal has forgotten: nothing happened, and nothing is pending. They are no
// operations of the journal, so no record is made of them but for the columns of a table.

// rejectedView is a forgotten operation in JSON. Its result is rejected or interrupted.
type rejectedView struct {
	Result results.Result `json:"result"`
	forgotten.Operation
}

// interrupted is the result of a forgotten operation whose client was stopped, as by Ctrl-C, before anything was sent.
const interrupted = results.Result(results.CodeInterrupted)

// resultOf returns the result of an operation that the journal has forgotten: rejected, or interrupted if the client was stopped before anything was sent.
func resultOf(o *forgotten.Operation) results.Result {
	if o.Interrupted {
		return interrupted
	}
	return results.Rejected
}

// partInterrupted separates forgotten operations: it returns those that were rejected, and the number of those whose client was stopped before anything was sent.
func partInterrupted(all []forgotten.Operation) (rejected []forgotten.Operation, interrupted int) {
	for i := range all {
		if all[i].Interrupted {
			interrupted++
		} else {
			rejected = append(rejected, all[i])
		}
	}
	return rejected, interrupted
}

// rejected returns the operations that the journal has forgotten since nothing happened, as far as sel selects them. They are in a log beside the journal. If sel asks
// for states, there are none. stderr is told of lines that no key opens.
func rejected(ses *session.Session, sel selection, now time.Time, stderr io.Writer) ([]forgotten.Operation, error) {
	all, unread, err := forgotten.Read(ses.Place, now)
	if err != nil {
		return nil, err
	}
	if unread > 0 {
		terminal.Say(stderr, "%s without effect, sealed with other keys; not shown", words.Count(unread, "forgotten operation"))
	}
	var chosen []forgotten.Operation
	for _, o := range all {
		rec := recordOf(&o)
		if len(sel.query.States) == 0 && sel.query.Match(&rec) && sel.match(&rec) {
			chosen = append(chosen, o)
		}
	}
	return chosen, nil
}

// recordOf returns a record with the known facts of an operation that ended without effect, and that the journal forgot, so that the columns for records can show
// it. It is in no journal. Its Seq of 1 lets a query select it.
func recordOf(o *forgotten.Operation) persist.Record {
	return persist.Record{
		ID: persist.ID{Account: o.Account, Key: o.Key}, Seq: 1, State: persist.StateSettled, Effect: persist.EffectAbsent, Method: o.Method, Origin: o.Origin,
		Target: o.Target, Profile: o.Profile, Created: o.Created, Finished: o.Forgotten, Attempts: o.Attempts, Sends: o.Sends, History: o.AttemptsMade(),
	}
}

// stillRejected returns the operations that ended without effect, and that the journal forgot: the latest of each key, without those whose key is in the journal
// again, since these were begun anew.
func stillRejected(ctx context.Context, ses *session.Session, all []forgotten.Operation) ([]forgotten.Operation, error) {
	last := map[persist.ID]int{}
	for i := range all {
		last[persist.ID{Account: all[i].Account, Key: all[i].Key}] = i
	}
	var left []forgotten.Operation
	for i := range all {
		id := persist.ID{Account: all[i].Account, Key: all[i].Key}
		if last[id] != i {
			continue
		}
		stands, err := standsNow(ctx, ses, &all[i])
		if err != nil {
			return nil, err
		}
		if !stands {
			left = append(left, all[i])
		}
	}
	return left, nil
}

// standsNow reports whether the journal has a record under the key of a forgotten operation: it was begun again since. A record that cannot be read counts.
func standsNow(ctx context.Context, ses *session.Session, o *forgotten.Operation) (bool, error) {
	_, err := ses.Journal.Get(ctx, persist.ID{Account: o.Account, Key: o.Key})
	switch {
	case errors.Is(err, persist.ErrNotFound):
		return false, nil
	case err != nil && !persist.OfOneRecord(err):
		return false, place.JournalError(ses.Place.Name, err)
	}
	return true, nil
}

// rejectedColumns returns the columns for operations that the journal has forgotten, since nothing happened. The writer knows records only; now returns the
// operation that is being written, for facts that a record lacks.
func rejectedColumns(c clock, now func() *forgotten.Operation) []column {
	backup := func() time.Time { return now().Backup }
	return []column{
		{"KEY", func(rec *persist.Record) string { return rec.Key }},
		{"ACCOUNT", func(rec *persist.Record) string { return words.OrDash(rec.ScopedAccount()) }},
		{"RESULT", func(*persist.Record) string { return string(resultOf(now())) }},
		{"ENDED", func(rec *persist.Record) string { return c.when(rec.Finished, "-") }},
		{"RESTORED", func(*persist.Record) string {
			if backup().IsZero() {
				return "-"
			}
			return "backup of " + c.when(backup(), "-") + ": maybe done since"
		}},
		{"STATUS", statusText},
		{"ATTEMPTS", c.attempts},
		{"SENDS", func(rec *persist.Record) string { return fmt.Sprint(rec.Sends) }},
		{"LAST ERROR", lastError},
		{"REQUEST", func(rec *persist.Record) string { return rec.Method + " " + rec.Origin + words.PathOf(rec.Target) }},
	}
}

// writeRejected writes operations that the journal has forgotten, since nothing happened, in the format of the flags, at most l.limit of them; a limit of 0 is none.
func (l *listFlags) writeRejected(out io.Writer, c clock, all []forgotten.Operation) error {
	if l.limit > 0 {
		all = all[:min(len(all), l.limit)]
	}
	if l.json || l.format == "ndjson" || l.format == "json" {
		return writeRejectedJSON(out, all, l.format == "json" && !l.json)
	}
	var o *forgotten.Operation // the one being written: some columns show facts that a record lacks
	columns, err := l.choose(rejectedColumns(c, func() *forgotten.Operation { return o }), c)
	if err != nil {
		return err
	}
	var w recordWriter = newTableWriter(out, columns)
	if l.format == "csv" {
		file := &csvWriter{csv.NewWriter(out), columns}
		w, err = file, file.csv.Write(names(columns, strings.ToLower))
	}
	for i := range all {
		o = &all[i]
		rec := recordOf(o)
		err = cmp.Or(err, w.write(&rec))
	}
	if err = cmp.Or(w.end(), err); err != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: words.Pathless(err)}
	}
	return nil
}

// writeRejectedJSON writes operations that the journal forgot, since nothing happened, as NDJSON, or with array as one JSON array.
func writeRejectedJSON(out io.Writer, all []forgotten.Operation, array bool) error {
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	views := make([]rejectedView, len(all))
	for i := range all {
		views[i] = rejectedView{resultOf(&all[i]), all[i]}
	}
	if array {
		return cmp.Or(enc.Encode(views), w.Flush())
	}
	for i := range views {
		if err := enc.Encode(views[i]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// checkRejected returns an error for flags that do not go with list --rejected, whose operations have no state and are listed oldest first.
func (l *listFlags) checkRejected() error {
	switch {
	case l.sort != "" || len(l.states) > 0:
		return errors.New("--rejected lists what is no operation of the journal, oldest first; leave out --state and --sort")
	case l.limit < 0:
		return errors.New("--limit must not be negative")
	case (l.json || strings.HasSuffix(l.format, "json")) && len(l.columns) > 0:
		return errors.New("--columns is for --format table and csv; JSON has everything")
	}
	_, err := l.writer(io.Discard, clock{}, nil) // checks the flags of the format
	l.fields = nil                               // of that check
	return err
}

// listRejected prints the forgotten operations that sel selects, for journal list --rejected.
func (l *listFlags) listRejected(ses *session.Session, sel selection, c clock, s terminal.Streams) error {
	sayNowhere(ses.Place, s.Err)
	all, err := rejected(ses, sel, c.now, s.Err)
	if err != nil {
		return err
	}
	sayOlder(all, s.Err)
	return l.writeRejected(s.Out, c, all)
}

// sayNowhere tells the user that rejected operations of a journal are not known, if no place for their log can be found.
func sayNowhere(at place.Place, stderr io.Writer) {
	if err := forgotten.Nowhere(at); err != nil {
		terminal.Say(stderr, "what was rejected is not known: it is noted in the user's folder, and %v; set HOME, here and where batch and send run", err)
	}
}

// stuckRejected prints the rejected operations for stuck --rejected, and adds their number to the alert (the exit status for monitoring). With --quiet it prints
// nothing.
func (l *listFlags) stuckRejected(ctx context.Context, ses *session.Session, sel selection, a *alert, c clock, s terminal.Streams) error {
	sel.query.States = nil    // pending and held, which a forgotten operation has not
	if a.flags.rejected < 0 { // else lookAtRejected says it
		sayNowhere(ses.Place, s.Err)
	}
	all, err := a.lookAtRejected(ctx, ses, sel, s.Err)
	if err != nil || a.flags.quiet {
		return err
	}
	sayOlder(all, s.Err)
	return l.writeRejected(s.Out, c, all)
}

// notDoneSince returns the operations that ended without effect, that the journal forgot, and that were not begun again since, as far as sel selects them. stderr is
// told of those that cannot be read.
func notDoneSince(ctx context.Context, ses *session.Session, sel selection, now time.Time, stderr io.Writer) ([]forgotten.Operation, error) {
	all, err := rejected(ses, sel, now, stderr)
	if err != nil {
		return nil, err
	}
	return stillRejected(ctx, ses, all)
}

// lookAtRejected reads the operations that were rejected or interrupted, and not begun again since, as far as sel selects them. It counts the rejected ones for the
// alert (the exit status for monitoring), and returns all. stderr is told of those that cannot be read, unless the alert is quiet.
func (a *alert) lookAtRejected(ctx context.Context, ses *session.Session, sel selection, stderr io.Writer) ([]forgotten.Operation, error) {
	if a.flags.rejected >= 0 { // also if it is quiet: the limit is on something that is not known
		sayNowhere(ses.Place, stderr)
	}
	if a.flags.quiet {
		stderr = io.Discard
	}
	all, err := notDoneSince(ctx, ses, sel, a.now, stderr)
	rejected, _ := partInterrupted(all)
	a.addRejected(rejected)
	return all, err
}

// showRejected prints for journal show what was tried of a key without effect, so that the journal forgot it, and reports whether there is any. text is the key, or
// its end after a colon.
func showRejected(ctx context.Context, f *session.JournalFlags, ses *session.Session, text string, c clock, asJSON bool, s terminal.Streams) (bool, error) {
	var all []forgotten.Operation
	var err error
	for _, spelled := range []string{text, "*:" + text} { // a pattern: the end of a key behind a colon, as in show
		if all, err = rejected(ses, selection{query: f.Query(), globs: []string{spelled}}, c.now, s.Err); err != nil || len(all) > 0 {
			break
		}
	}
	if err != nil || len(all) == 0 {
		return false, err
	}
	if asJSON {
		return true, writeRejectedJSON(s.Out, all, false)
	}
	var b strings.Builder
	for i := range all {
		o := &all[i]
		fmt.Fprintln(&b, o.Key)
		if rec := recordOf(o); rec.ScopedAccount() != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", "account", rec.ScopedAccount())
		}
		what := "nothing happened, and the journal forgot it; its key is free"
		stands, err := standsNow(ctx, ses, o)
		if err != nil {
			return true, err
		}
		if stands {
			what = "nothing happened, and the journal forgot it; its key was free then, and stands in the journal again now"
		}
		if o.Interrupted {
			what = "its client was stopped before anything was sent; " + what
		}
		fmt.Fprintf(&b, "  %-9s %s: %s\n", resultOf(o), c.when(o.Forgotten, "-"), what)
		if !o.Backup.IsZero() {
			fmt.Fprintf(&b, "  %-9s since then, from the backup of %s: it may have been done; audit before you run it again\n", "restored", c.when(o.Backup, "-"))
		}
		fmt.Fprintf(&b, "  %-9s %s %s%s, profile %s\n", "request", o.Method, o.Origin, o.Target, o.Profile)
		fmt.Fprintf(&b, "  %-9s %s, %s\n", "tried", words.Count(o.Attempts, "attempt"), words.Count(o.Sends, "send"))
		drawHistory(&b, o.AttemptsMade(), c)
	}
	_, err = io.WriteString(s.Out, visible(b.String()))
	return true, err
}

// older are forgotten operations from before a restore of the journal: their fate between the backup and the restore is not known.
type older struct {
	n      int
	backup time.Time // the earliest
}

// olderOf counts the operations of a list that the journal forgot, since nothing happened, before it was restored from a backup: they may have been done since. o.backup is
// the time of the earliest of these backups.
func olderOf(all []forgotten.Operation) (o older) {
	for i := range all {
		if at := all[i].Backup; !at.IsZero() {
			if o.n++; o.backup.IsZero() || at.Before(o.backup) {
				o.backup = at
			}
		}
	}
	return o
}

// text returns a clause about forgotten operations that are older than a restore of the journal; "" if there are none.
func (o older) text() string {
	if o.n == 0 {
		return ""
	}
	return fmt.Sprintf("%d from before the backup of %s was restored: may have been done since", o.n, o.backup.UTC().Format(time.RFC3339))
}

// after returns the clause of text with a comma before it, for the end of a sentence; "" if there are no such operations.
func (o older) after() string {
	if o.n == 0 {
		return ""
	}
	return ", " + o.text()
}

// sayOlder warns of forgotten operations in a list that are older than a restore of the journal: they may have been done since.
func sayOlder(all []forgotten.Operation, stderr io.Writer) {
	if text := olderOf(all).text(); text != "" {
		terminal.Say(stderr, "of those listed, %s; audit before you run them again", text)
	}
}

// addRejected sets the numbers of rejected operations in the alert (the exit status for monitoring). all are those that were not begun again since.
func (a *alert) addRejected(all []forgotten.Operation) {
	a.rejected, a.older = len(all), olderOf(all)
	for i := range all {
		if a.flags.overSet() && a.now.Sub(all[i].Created) > a.flags.over {
			a.rejectedOver++
		}
	}
}

// listRejectedCommand returns the command line, for the user, that lists the rejected operations not begun again since.
func listRejectedCommand(at place.Place) string {
	return "oncehttp journal stuck --rejected --journal " + at.Shell()
}

// ofInterrupted returns a clause with the number of operations whose client was stopped before anything was sent, such as " (2 interrupted)"; "" if there are none.
func ofInterrupted(all []forgotten.Operation) string {
	if _, n := partInterrupted(all); n > 0 {
		return fmt.Sprintf(" (%d interrupted)", n)
	}
	return ""
}

// sayRejected prints a line below a listing about operations that had no effect, that the journal has forgotten, and that were not begun again since. It prints nothing
// if there are none.
func sayRejected(all []forgotten.Operation, at place.Place, now time.Time, stderr io.Writer) {
	if len(all) > 0 {
		terminal.Say(stderr, "beside these: %s without effect, forgotten, and not done since%s; the latest, %s, %s ago; %s lists them",
			words.Count(len(all), "operation"), ofInterrupted(all)+olderOf(all).after(), all[len(all)-1].Key, view.Roughly(now.Sub(all[len(all)-1].Forgotten)), listRejectedCommand(at))
	}
}
