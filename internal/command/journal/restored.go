package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/forgotten"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// restoredCommand returns the command oncehttp journal restored.
func restoredCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	var taken string
	cmd := &cobra.Command{
		Use:   "restored [URL or FILE] --taken TIME",
		Short: "Hold what is unfinished, after a backup was restored or a failover lost records",
		Long: `Say that the journal was restored from a backup taken at --taken, or lost what came
after that time in a failover. Such a journal has forgotten what was sent since:
the same key could go out with another body, or when the server no longer knows
it. So every unfinished operation is marked as maybe sent, first sent at that time
or before, and held ("restored"). Final ones stay as they are. Stop all workers and
batches first: while one has leases in the journal, nothing is changed, and the
status is 3.

What was begun after that time is not in the journal at all. So before any batch is
repeated, compare the journal with the provider's exports from then to now (the
line is printed). After that, each operation that is held is released by

  journal settle KEY --happened    the provider did it
  journal resume --restored KEY    it did not: sent again, same key, same bytes

Without KEY that releases all of an account, or with --origin all that leads to one server.
What batch and send had tried without effect may have been done since, too: JOURNAL.forgotten,
put back before this, says so of each (journal stuck --rejected). Of a journal on a server
that log is of one user and machine: say the same there, before anything runs.

Where the server hands out the keys, one that is released may go out under another
token: there nothing but the audit keeps it from a second effect.

A time later than the backup's makes the journal trust keys for too long, and one
before the journal's own latest time is refused. Where the backup's time is not known,
leave --taken out, and say the latest time that the error names. The same command again goes on after a kill, and
changes nothing that is done. A journal without an operation is noted as restored, too.`,
		Example: `  oncehttp journal restored --journal @journal.url --taken 2026-01-31T02:00:00Z
  oncehttp journal restored payments.db --taken 2026-01-31T02:00:00Z`,
		Args: settings.WantArgs(0, 1, "one URL or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.HasAccount {
				return errors.New("restored goes through all accounts; leave --account out")
			}
			if taken != "" { // before a server is asked; parseTaken finds the other faults
				if _, err := settings.ParseZoned("--taken", taken); err != nil {
					return err
				}
			}
			at, err := placeOf(f, args)
			if err != nil {
				return err
			}
			ses, err := session.OpenSession(at, oncehttp.Config{})
			if err != nil {
				return err
			}
			return terminal.JoinExit(restored(cmd.Context(), ses, taken, s), ses.Close())
		},
	}
	cmd.Flags().StringVar(&taken, "taken", "", "when the backup was taken, with its zone, such as 2026-01-31T02:00:00Z")
	return cmd
}

// takenSlack is the allowed difference between the clocks of the writers of the records and
// the clock behind --taken.
const takenSlack = time.Minute

// restored does the work of journal restored, after a backup was put back: it holds all unfinished operations, since they may have been sent after the backup, notes
// the restore, and prints the next steps. text is the value of --taken. Running workers make it fail without a change.
func restored(ctx context.Context, ses *session.Session, text string, s terminal.Streams) error {
	leases, err := leasesOf(ctx, ses)
	if err != nil {
		return err
	}
	newest, err := newestIn(ctx, ses, leases)
	if err != nil {
		return err
	}
	taken, err := parseTaken(text, newest, time.Now())
	if err != nil {
		return err
	}
	before := 0
	n, err := changeAll(ctx, ses, persist.Query{AllAccounts: true, States: unfinished()}, func(rec *persist.Record) (bool, error) {
		if rec.HoldReason == persist.HoldRestored { // the command was called before
			before++
		}
		if err := leases.refuse(rec); err != nil { // claimed meanwhile
			return false, err
		}
		return holdRestored(rec, taken), nil
	})
	if err != nil {
		return err
	}
	text = "held: " + words.Count(n, "operation")
	if before > 0 {
		text += fmt.Sprintf("; %s held as restored already", words.Count(before, "operation"))
	}
	terminal.Say(s.Out, "%s", text)
	noted, err := note(ctx, ses, taken, newest.IsZero(), s.Err)
	if err != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: fmt.Errorf("%w; say the same again", err)}
	}
	sayNext(ses, taken, noted, s.Err)
	return nil
}

// note writes to the journal, and to its log of rejected operations, that the journal was restored. logged is false if there is no such log. empty is true for a
// journal without operations: it warns that the backup may not be loaded, and the restore must be noted there, or the error says that the role may not.
func note(ctx context.Context, ses *session.Session, taken time.Time, empty bool, stderr io.Writer) (logged bool, err error) {
	written, err := session.NoteRestored(ctx, ses, taken, time.Now())
	if err != nil {
		return false, err
	}
	if empty {
		terminal.Say(stderr, "journal %s: it has no operation; if the backup had any, it was not loaded there%s: load it, and say the same again", ses.Place.Name, ses.Place.NotLoaded())
	}
	if logged, err = forgotten.Restored(ses.Place, taken, time.Now()); err == nil && empty && !written {
		err = fmt.Errorf("journal %s: this role may not note there that it was restored, so that no batch is warned: take the role of its owner", ses.Place.Name)
	}
	return logged, err
}

// sayNext prints the next steps after a restore: the comparison with the provider's exports, and the release of operations. noted is true if the journal has a log of
// rejected operations, which gets a line of its own.
func sayNext(ses *session.Session, taken time.Time, noted bool, stderr io.Writer) {
	terminal.Say(stderr, `What was begun or sent since is not in this journal. Before any batch is repeated, or a worker started, compare:
  oncehttp audit --journal %s --against EXPORT --match COLUMN --time COLUMN --since %s --edge 0s --where COLUMN=VALUE
"settle" there: run the line that it prints. "foreign": begun since, or by somebody else; do not repeat its row with
another body, nor at all where the server may have forgotten the key. Then, for what the provider did not do:
  oncehttp journal resume --restored KEY... --journal %s
or, where the API takes no keys or may have forgotten them: journal settle KEY@SEEN --absent, and then a new request.`, ses.Place.Shell(), taken.Format(time.RFC3339), ses.Place.Shell())
	if noted {
		terminal.Say(stderr, "What was rejected before may have been done since, too: run none of it again before that. The list: %s", listRejectedCommand(ses.Place))
	}
}

// parseTaken reads --taken, and refuses a time impossible for the backup.
// newest is the latest time known to the journal.
func parseTaken(text string, newest, now time.Time) (time.Time, error) {
	known := "; this journal has no operation, so that it knows no time"
	if !newest.IsZero() {
		known = "; the latest time that this journal knows is " + newest.UTC().Format(time.RFC3339)
	}
	if text == "" {
		return time.Time{}, errors.New("--taken is required: when the backup was taken" + known)
	}
	taken, err := settings.ParseZoned("--taken", text)
	switch {
	case err != nil:
		return taken, err
	case taken.After(now):
		return taken, fmt.Errorf("--taken %s is in the future%s", text, known)
	case newest.After(taken.Add(takenSlack)): // clocks may differ a little
		return taken, fmt.Errorf("--taken %s is too early: this journal was still written later%s", text, known)
	}
	return taken.UTC(), nil
}

// leases are those of workers and batches running on a journal.
type leases struct {
	now   time.Time // by the journal's clock; zero: it has no leases
	asked time.Time // the time of that question, by the own clock
	last  persist.Record
	many  int
}

// leasesOf returns a counter of leases by the clock of the journal. A lease is the claim of a process to send an operation, until a time. A journal in a file has no
// leases that last: its counter finds none.
func leasesOf(ctx context.Context, ses *session.Session) (*leases, error) {
	claimer, ok := persist.As[persist.Claimer](ses.Journal) // a journal on a server
	if !ok {
		return &leases{}, nil
	}
	now, err := claimer.Now(ctx)
	if err != nil {
		return nil, place.JournalError(ses.Place.Name, err)
	}
	return &leases{now: now, asked: time.Now()}, nil
}

// lasts reports whether a process has a lease of an unfinished record (a claim to send it, until a time) that has not ended by the journal's clock. Without that
// clock, as for a file, none lasts.
func (l *leases) lasts(rec *persist.Record) bool {
	return !l.now.IsZero() && !rec.State.Final() && rec.Leased("", l.now.Add(time.Since(l.asked))) // "": of any process; asked: when now was read
}

// see counts the lease of a record (a claim to send it, until a time) if it lasts, and keeps the record whose lease ends last.
func (l *leases) see(rec *persist.Record) {
	if !l.lasts(rec) {
		return
	}
	if l.many++; rec.LeaseUntil.After(l.last.LeaseUntil) {
		l.last = *rec
	}
}

// err returns an error if see has counted a lease (the claim of a process to send an operation): a worker is running, and must be stopped first. The error says when
// the last lease ends.
func (l *leases) err() error {
	if l.many == 0 {
		return nil
	}
	return fmt.Errorf("%s leased until %s: a worker or a batch is running on it; stop all of them, and repeat this when the leases have ended",
		words.Count(l.many, "operation"), l.last.LeaseUntil.UTC().Format(time.RFC3339))
}

// refuse returns an error if a process has a lasting lease of this record, as one that was claimed after the first look.
func (l *leases) refuse(rec *persist.Record) error {
	alone := leases{now: l.now, asked: l.asked}
	alone.see(rec)
	return alone.err()
}

// newestIn returns the latest time that any record of the journal has: a backup cannot be older. It counts the leases (claims of processes to send) in leases; one
// that lasts is an error.
func newestIn(ctx context.Context, ses *session.Session, leases *leases) (newest time.Time, err error) {
	err = session.EachRecord(ctx, ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) error {
		leases.see(rec)
		times := []time.Time{rec.Created, rec.Finished}
		if rec.HoldReason != persist.HoldRestored { // it has the time of an earlier call
			times = append(times, rec.FirstSent)
		}
		for _, a := range rec.History {
			times = append(times, a.At)
		}
		for _, t := range times {
			if t.After(newest) {
				newest = t
			}
		}
		return nil
	})
	if leased := leases.err(); err == nil && leased != nil {
		err = &terminal.ExitError{Status: terminal.ExitUnknown, Err: place.JournalError(ses.Place.Name, leased)}
	}
	return newest, err
}

// holdRestored changes an unfinished record for a restore from a backup of the time taken: it is held as maybe sent, and its lease (the claim of a process) ends. It
// reports whether it changed anything; a repeated call does not.
func holdRestored(rec *persist.Record, taken time.Time) bool {
	before := operation.OpOf(rec, 0) // 0: for how long the API knows the key, the record says
	held := acts.Restored(before, taken)
	if held == before && (rec.State.Final() || rec.LeaseOwner == "") {
		return false
	}
	rec.State, rec.HoldReason, rec.NextAttempt = held.State, held.Hold, held.NextAttempt
	rec.MaybeSent, rec.FirstSent = held.MaybeSent, held.FirstSent
	rec.TakeLease("", time.Time{}) // a lost owner may still send: that stays known
	return true
}

// changers is the number of records changed at once. They share commits.
const changers = 16

// changeAll changes the records selected by q, several at once, and returns the number of changed ones. change edits a record, and returns false to leave it. It may be
// called again for the same record, if another process has changed that meanwhile. An error of change ends all.
func changeAll(ctx context.Context, ses *session.Session, q persist.Query, change func(*persist.Record) (bool, error)) (changed int, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	jobs := make(chan persist.Record)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range changers {
		workers.Go(func() {
			for rec := range jobs {
				did, err := changeOne(ctx, ses.Journal, rec, change)
				if err != nil {
					stop(err)
				}
				mu.Lock()
				if did {
					changed++
				}
				mu.Unlock()
			}
		})
	}
	err = session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		c := *rec
		if changes, err := change(&c); !changes && err == nil {
			return nil // an error comes again below, at the change of the record
		}
		select {
		case jobs <- *rec:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(jobs)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) { // Canceled: a signal, and in err already
		err = &terminal.ExitError{Status: terminal.ExitUnknown, Err: place.JournalError(ses.Place.Name, cause)}
	}
	return changed, err
}

// changeOne applies change to one record and writes it. If another process has changed the record meanwhile, it reads the record and tries again. It returns false if
// change left the record, or if the record is gone.
func changeOne(ctx context.Context, j persist.Journal, rec persist.Record, change func(*persist.Record) (bool, error)) (bool, error) {
	for {
		if changes, err := change(&rec); !changes || err != nil {
			return false, err
		}
		_, err := j.Update(ctx, rec)
		if errors.Is(err, persist.ErrStale) {
			rec, err = j.Get(ctx, rec.ID)
			if err == nil {
				continue
			}
		}
		if errors.Is(err, persist.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}
}
