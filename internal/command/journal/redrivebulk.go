package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// redriving is a redrive in bulk under way.
type redriving struct {
	*redriveFlags
	ses        *session.Session
	sel        selection
	since, end time.Time // of the operations' ends: the end is the start of the run
	profile    *profile.Profile
	s          terminal.Streams

	mu      sync.Mutex
	clients map[string]*oncehttp.Client // by account
	begun   int
	already int // begun by another run meanwhile
	unknown int
	refused int
	left    int // ends that may have been told, of the selected operations
}

// fate is the treatment of a selected operation in this run.
type fate string

const (
	fateTaken    fate = "taken"
	fateBegun    fate = "begun by this run already"
	fateReplaced fate = "replaced by another operation"
	fateStands   fate = "whose next generation stands already"
	fateTold     fate = "told, or maybe told, to a caller"
	fateNoBytes  fate = "without their requests, which the journal keeps no more"
)

// bulk begins all refused operations that --status selects once more. globs are patterns of keys; p is the profile that the client uses. With --dry-run it only prints
// the totals.
func (f *redriveFlags) bulk(ctx context.Context, globs []string, p *profile.Profile, s terminal.Streams) error {
	by := signature()
	if most := persist.NoteBytesMax - len(signed(" ", by)) + 1; len(f.reason) > most { // " " is a reason of one byte, which does not count
		return fmt.Errorf("--reason is longer than %d bytes", most)
	}
	f.reason = signed(f.reason, by)
	work := func(ses *session.Session) error {
		r := &redriving{redriveFlags: f, ses: ses, profile: p, s: s, clients: map[string]*oncehttp.Client{}}
		if err := r.prepare(ctx, globs); err != nil {
			return err
		}
		return r.do(ctx)
	}
	if f.dry {
		return f.WithReader(work)
	}
	return f.WithJournal(work)
}

// prepare sets the time at which the run began, its id and the selection. An operation refused after that time is left alone, also if --run goes on with a broken-off
// run.
func (r *redriving) prepare(ctx context.Context, globs []string) (err error) {
	if r.end = time.Now(); r.run != "" {
		if r.end, err = startOf(r.run); err != nil {
			return err
		}
	} else if claimer, shared := persist.As[persist.Claimer](r.ses.Journal); shared && !r.dry { // a journal on a server has a clock of its own, which all its clients share
		if r.end, err = claimer.Now(ctx); err != nil {
			return place.JournalError(r.Path, err)
		}
	}
	r.end = r.end.UTC().Truncate(time.Microsecond) // as the id of the run can say it
	if r.since, err = parseSince(r.redriveFlags.since, r.end); err != nil {
		return err
	}
	q := r.Query()
	r.sel, err = (&selectFlags{origin: r.origin, states: []string{persist.StateConfirmed.String()}}).selection(q, globs, r.end)
	if r.run == "" {
		var id [4]byte
		_, _ = rand.Read(id[:]) // never fails
		r.run = r.end.Format(runTime) + "-" + hex.EncodeToString(id[:])
	}
	return err
}

// do prints the totals of the selected operations, asks, begins them once more, and prints the result. r.left is the number of those left alone, since a program
// may have been told of their ends, and may have begun them again by itself. The error has the exit status.
func (r *redriving) do(ctx context.Context) error {
	taken, text, err := r.count(ctx)
	if err != nil {
		return err
	}
	for _, line := range text {
		terminal.Say(r.s.Out, "%s", line)
	}
	switch {
	case r.dry:
		return nil
	case taken == 0 && r.left > 0:
		return &terminal.ExitError{Status: terminal.ExitRefused, Err: fmt.Errorf("nothing was begun: %s may have been told to a program; name their keys with --told, or give them to it one a line: oncehttp journal redrive - --told --reason TEXT --journal %s", words.Count(r.left, "end"), r.ses.Place.Shell())}
	case taken == 0:
		return nil
	}
	if err := r.s.Confirm(r.yes, fmt.Sprintf("%s would be begun once more", words.Count(taken, "operation"))); err != nil {
		return err
	}
	terminal.Say(r.s.Err, "run %s; if it is broken off, say the same with --run %s", r.run, r.run)
	err = r.begin(ctx)
	terminal.Say(r.s.Out, "redriven: %s of %d%s", words.Count(r.begun, "operation"), taken, r.alreadyText())
	if r.begun > 0 {
		terminal.Say(r.s.Err, "a worker or the program sends them, or: oncehttp journal resume --journal %s", r.ses.Place.Shell())
	}
	switch {
	case err != nil:
		return err
	case r.unknown > 0:
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: fmt.Errorf("of %s nothing is known; say the same with --run %s", words.Count(r.unknown, "operation"), r.run)}
	case r.refused > 0:
		return &terminal.ExitError{Status: terminal.ExitRefused, Err: fmt.Errorf("%s not begun", words.Count(r.refused, "operation"))}
	}
	return nil
}

// count returns the number of operations to begin, and lines about all selected ones for the user: totals by status, and the number of those left alone, with the
// reason. It changes nothing but r.left.
func (r *redriving) count(ctx context.Context) (taken int, text []string, err error) {
	totals, fates := map[int]*results.Totals{}, map[fate]int{}
	counts := map[int]int{}
	err = r.each(ctx, func(rec *persist.Record) error {
		what, err := r.fateOf(ctx, rec)
		if err != nil {
			return err
		}
		if fates[what]++; what != fateTaken {
			return nil
		}
		status := rec.FinalStatus()
		if counts[status]++; totals[status] == nil {
			totals[status] = &results.Totals{Name: r.sums.Amount}
		}
		if r.sums.Amount != "" {
			totals[status].AddRecord(rec, r.sel.declines.ClassOfRecord(rec), &r.sums)
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprintf("status %d: %s to redrive", status, words.Count(counts[status], "operation")))
		for _, line := range totals[status].Lines("operation") {
			text = append(text, "  "+line)
		}
	}
	r.left = fates[fateTold]
	if fates[fateTaken] == 0 {
		text = append(text, "nothing to redrive")
	}
	forgot, err := r.forgotten(ctx)
	if err != nil {
		return 0, nil, err
	}
	for _, what := range []fate{fateBegun, fateReplaced, fateStands, fateTold, fateNoBytes} {
		if n := fates[what]; n > 0 {
			text = append(text, fmt.Sprintf("left alone: %s %s", words.Count(n, "operation"), what))
		}
	}
	return fates[fateTaken], append(text, forgot...), nil
}

// each calls do for each selected operation that ended after --since and before the run began.
func (r *redriving) each(ctx context.Context, do func(*persist.Record) error) error {
	return session.EachRecord(ctx, r.ses, r.sel.query, func(rec *persist.Record) error {
		if !rec.Finished.Before(r.end) || rec.Finished.Before(r.since) || !r.matches(rec, &r.sel) {
			return nil
		}
		return do(rec)
	})
}

// fateOf decides whether a refused operation is begun once more (fateTaken), or why it is left alone. If a broken-off run has named its next generation (the try
// under a new key) and not begun it, it is taken.
func (r *redriving) fateOf(ctx context.Context, rec *persist.Record) (fate, error) {
	named := *rec
	named.ReplacedBy = cmp.Or(rec.ReplacedBy, intent.NextGeneration(rec.Key)) // a batch or a program begins that without naming it
	next, err := successorOf(ctx, r.ses.Journal, &named)
	switch {
	case errors.Is(err, persist.ErrNotFound) && named.ReplacedBy == intent.NextGeneration(rec.Key): // it is free, or only named
	case errors.Is(err, persist.ErrNotFound):
		return fateReplaced, nil
	case err != nil:
		return "", place.JournalError(r.Path, err)
	case next.RedriveRun == r.run && next.Replaces == rec.Key: // this run did, before it was broken off
		return fateBegun, nil
	case rec.ReplacedBy == "": // a batch or a program has begun the next generation
		return fateStands, nil
	default:
		return fateReplaced, nil
	}
	switch {
	case maybeTold(rec):
		return fateTold, nil
	case rec.RequestGone():
		return fateNoBytes, nil
	}
	return fateTaken, nil
}

// maybeTold reports whether a program may know of the end of an operation, and so may have begun it again by itself.
func maybeTold(rec *persist.Record) bool { return !acts.IsUntold(rec) }

// begin begins the selected operations once more, with r.workers goroutines, and counts the results in r. It closes the clients at the end.
func (r *redriving) begin(ctx context.Context) error {
	queue := make(chan persist.Record) // r.each looks again: what has changed since the question is left alone
	var wg sync.WaitGroup
	for range r.workers {
		wg.Go(func() {
			for rec := range queue {
				r.one(ctx, &rec)
			}
		})
	}
	err := r.each(ctx, func(rec *persist.Record) error {
		what, err := r.fateOf(ctx, rec)
		if err == nil && what == fateTaken {
			queue <- *rec
		}
		return err
	})
	close(queue)
	wg.Wait()
	for _, c := range r.clients {
		err = errors.Join(err, c.Close())
	}
	return err
}

// alreadyText tells how many operations another run has begun meanwhile; "" if none.
func (r *redriving) alreadyText() string {
	if r.already == 0 {
		return ""
	}
	return fmt.Sprintf("; already: %d by another run", r.already)
}

// ours reports whether this run has begun the operation under the key next in place of rec, and not another run at the same time. If its record is gone already, it
// counts as this run's.
func (r *redriving) ours(ctx context.Context, rec *persist.Record, next oncehttp.Key) (bool, error) {
	named := *rec
	named.ReplacedBy = string(next)
	now, err := successorOf(ctx, r.ses.Journal, &named)
	if errors.Is(err, persist.ErrNotFound) { // a pass has ended and forgotten it
		return true, nil
	}
	return now.RedriveRun == r.run, err
}

// one begins one operation once more under its next generation (a new key for the same request), and counts the result: begun by this run, by another one, refused
// or unknown. It prints the first errors. Several goroutines call it.
func (r *redriving) one(ctx context.Context, rec *persist.Record) {
	c, err := r.client(words.AccountName(rec.Account))
	var next oncehttp.Key
	ours := false
	if err == nil {
		// Untold: refused, if a program may know of its end by now.
		next, err = c.Redrive(ctx, oncehttp.Key(rec.Key), oncehttp.OfAccount(rec.Account), oncehttp.WithNote(r.reason), oncehttp.InRun(r.run), oncehttp.Untold())
	}
	if err == nil {
		if ours, err = r.ours(ctx, rec, next); err != nil {
			err = fmt.Errorf("%w: %w", oncehttp.ErrOutcomeUnknown, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && !ours:
		r.already++
		return
	case err == nil:
		r.begun++
		return
	case errors.Is(err, oncehttp.ErrOutcomeUnknown) && !errors.Is(err, oncehttp.ErrKeyReused):
		r.unknown++
	default:
		r.refused++
	}
	if r.unknown+r.refused <= redriveErrorsShown {
		terminal.Say(r.s.Err, "not begun: %s: %s", rec.Key, strings.TrimPrefix(place.JournalError(r.Path, err).Error(), r.Path+": "))
	}
}

// redriveErrorsShown bounds the lines about single operations.
const redriveErrorsShown = 20

// client returns the client for the operations of an account, with the profile and the journal of this run. The first call for an account makes the
// client; later calls return the same one.
func (r *redriving) client(account string) (*oncehttp.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.clients[account]; c != nil {
		return c, nil
	}
	cfg := r.config(r.profile)
	cfg.Journal, cfg.Account = r.ses.Journal, account
	c, err := oncehttp.New(cfg)
	if err == nil {
		r.clients[account] = c
	}
	return c, err
}
