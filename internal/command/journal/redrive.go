package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// redriveFlags are the flags of journal redrive, as given.
type redriveFlags struct {
	actFlags
	statuses []int
	since    string
	where    []string
	origin   string
	run      string
	told     bool
	dry      bool
	workers  int
	profile  string
	pin      session.PinFlags
	sums     results.SumFlags
	stood    []string // the keys whose next generation an earlier redrive has begun, and which has not ended
}

// redriveHelp is the help of journal redrive.
const redriveHelp = `Begin refused operations once more, under their next generation (KEY:gen=2): the same
bytes to the same URL, which journal resume or the program itself then sends. It is for a
refusal by a mistake on the way or at the server that is mended now: the route at that
address was wrong for a while and answered 404, an account was locked. It helps nothing
where the request or its URL is wrong: those cannot be changed here, and the refusal would
come again. Send such a row anew, corrected, with batch --generation or under another key.
Each record names the other (journal show).

With --status it takes every operation refused with that status that ended since WHEN and
before the run began, and whose end nobody was told: it was begun by Enqueue, or in a
transaction, and ended under Resume, Run or work. If a call or Config.OnResult was told
of an end, or if the key was generated, the program may have begun the operation once
more by itself, under another key. Those are counted and left alone. Once you know that
it has not, name their KEYs with --told; KEY - reads them from stdin, one a line. An
operation that was settled as absent can be named, too.

It first prints totals by status, and with --sum the sums, and asks, or wants --yes.
--dry-run ends there. The run has an id, printed first, which is in each new record. If it
is broken off, the same command with --run ID goes on with the rest. Nothing is begun twice,
and what was refused anew since the run began is left alone.

Refused is what another operation replaces already, what took effect, and what is mismatched
or abandoned. Exit status: 0 all were begun; 1 of several some were refused, or only those
stand that are left alone since a program may have been told; 2 the call is wrong, or its only
KEY was refused, and nothing was begun; 3 something is unknown, or the run was broken off.`

// redriveCommand returns the command oncehttp journal redrive.
func redriveCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	r := &redriveFlags{actFlags: actFlags{JournalFlags: f}}
	cmd := &cobra.Command{
		Use:   "redrive (--status N [--since WHEN] | KEY...) --reason WHY",
		Short: "Begin refused operations once more, at the same address, after the server was mended",
		Long:  redriveHelp,
		Example: `  oncehttp journal redrive --status 404 --since 2h --dry-run --sum /amount --journal p.db
  oncehttp journal redrive --status 404 --since 2h --where /currency=EUR --reason 'route mended' --journal p.db
  oncehttp journal redrive idemp:order:u1:o7 --told --reason 'they agree' --journal p.db`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(args); err != nil {
				return err
			}
			p, err := session.FindProfile(r.profile)
			if err != nil {
				return err
			}
			if len(r.statuses) == 0 {
				return r.each(cmd, args, p, s)
			}
			return r.bulk(cmd.Context(), args, p, s)
		},
	}
	fs := cmd.Flags()
	r.bind(fs)
	fs.IntSliceVar(&r.statuses, "status", nil, "what was refused with this status; may be repeated")
	fs.StringVar(&r.since, "since", "", "with --status: only what ended since: a duration before the run began (2h, 3d) or a time (2026-01-31T10:00:00Z)")
	fs.StringArrayVar(&r.where, "where", nil, "with --status: POINTER=VALUE of the requests, such as /currency=EUR; may be repeated")
	fs.StringVar(&r.origin, "origin", "", "with --status: only what goes to this server")
	fs.StringVar(&r.run, "run", "", "with --status: go on with the run of this id")
	fs.BoolVar(&r.told, "told", false, "with KEY: redrive it although the program may know of its end: you say that it has not begun it again")
	fs.BoolVar(&r.dry, "dry-run", false, "with --status: print the totals, and begin nothing")
	fs.IntVar(&r.workers, "workers", 16, "with --status: operations at once")
	fs.StringVar(&r.profile, "profile", profile.Draft07().Name, "the profile file that operations were begun with; built-in ones are known")
	r.pin.Bind(fs)
	r.sums.Bind(fs)
	return cmd
}

// check checks the flags of journal redrive: operations are named by keys or selected by --status, and some flags are for one of the two ways only.
func (f *redriveFlags) check(keys []string) error {
	bulk := len(f.statuses) > 0
	switch {
	case !bulk && len(keys) == 0:
		return errors.New("say --status, or name each KEY")
	case !bulk && (f.since != "" || len(f.where) > 0 || f.origin != "" || f.run != "" || f.dry || f.sums.Amount != ""):
		return errors.New("--since, --where, --origin, --run, --dry-run and --sum are for --status")
	case bulk && f.told:
		return errors.New("--told is for operations that are named one by one, and not for --status")
	case f.reason == "" && !f.dry:
		return errors.New("say why, with --reason")
	case f.workers < 1 || f.workers > session.WorkersMax:
		return fmt.Errorf("--workers must be from 1 to %d", session.WorkersMax)
	}
	for _, w := range f.where {
		if pointer, _, found := strings.Cut(w, "="); !found || !words.IsPointer(pointer) {
			return fmt.Errorf("--where %q: want POINTER=VALUE, such as /currency=EUR", words.Clip(w))
		}
	}
	return f.sums.Check()
}

// each begins the named operations once more, each under its next generation, a new key for the same request. Nothing is sent. p is the profile that the client
// uses. The act is one for operations without an effect (denies): this chooses the words of a refusal.
func (f *redriveFlags) each(cmd *cobra.Command, keys []string, p *profile.Profile, s terminal.Streams) error {
	options := func(rec *persist.Record) []oncehttp.LookupOption {
		all := []oncehttp.LookupOption{oncehttp.AsSeen(*rec), oncehttp.WithNote(f.reason)} // AsSeen: only if it has not changed since
		if !f.told {
			all = append(all, oncehttp.Untold()) // the client refuses it, if a program may know of its end
		}
		return all
	}
	return f.actFlags.run(cmd.Context(), keys, act{
		done: func(*persist.Record) bool { return false },
		end: func(c *oncehttp.Client, rec *persist.Record) error {
			_, err := c.Redrive(cmd.Context(), oncehttp.Key(rec.Key), options(rec)...)
			if errors.Is(err, oncehttp.ErrKeyReused) { // it was tried under the next generation's key already
				if latest := latestOf(cmd.Context(), c, rec.Key); latest != "" {
					text := fmt.Sprintf("redrive %q: it was tried again already, as %q: redrive that one, if it was refused, too", words.Clip(rec.Key), words.Clip(latest))
					err = &terminal.SaidError{Text: text, Err: err}
				}
			}
			if err != nil && !f.told && !errors.Is(err, oncehttp.ErrKeyReused) && errors.Is(err, oncehttp.ErrFinal) && maybeTold(rec) && !isSuccess(rec) {
				err = fmt.Errorf("%w; if nobody has, say --told", err)
			}
			return err
		},
		config: func(*persist.Record) (oncehttp.Config, error) { return f.config(p), nil },
		said:   "redriven",
		denies: true,
		before: f.standsInPlace,
		begun: func(rec *persist.Record) string {
			if slices.Contains(f.stood, rec.Key) {
				return ""
			}
			return intent.NextGeneration(rec.Key)
		},
	}, s)
}

// standsInPlace returns an error if the next generation of an operation, the try after it, exists and has ended: that one may be redriven instead. It is called before
// each redrive.
func (f *redriveFlags) standsInPlace(ctx context.Context, ses *session.Session, rec *persist.Record) error {
	if rec.ReplacedBy == "" || rec.ReplacedBy != intent.NextGeneration(rec.Key) {
		return nil
	}
	next, err := successorOf(ctx, ses.Journal, rec)
	switch {
	case errors.Is(err, persist.ErrNotFound): // it is begun now
		return nil
	case err == nil && !next.State.Final(): // it goes on
		f.stood = append(f.stood, rec.Key)
		return nil
	case err != nil:
		return err
	}
	text := fmt.Sprintf("redrive %q: %s stands in its place (%s)", words.Clip(rec.Key), words.Clip(next.Key), endText(&next))
	if next.FinalEffect() == persist.EffectRefused || next.FinalEffect() == persist.EffectAbsent {
		text += fmt.Sprintf("; redrive that one: oncehttp journal redrive %s --told --reason WHY --journal %s", words.ShellQuote(next.Key), ses.Place.Shell())
	}
	return &terminal.SaidError{Text: text, Err: oncehttp.ErrKeyReused}
}

// endText describes the end of an operation for a message, such as "confirmed, 404": its state, with the status of its answer or its effect.
func endText(rec *persist.Record) string {
	if status := rec.FinalStatus(); rec.State == persist.StateConfirmed && status != 0 {
		return fmt.Sprintf("%s, %d", rec.State, status)
	}
	return view.StateText(rec)
}

// config returns the configuration of a client that only begins operations: it has no origins to send to, so that it sends nothing.
func (f *redriveFlags) config(p *profile.Profile) oncehttp.Config {
	return oncehttp.Config{Profile: p, Credential: f.pin.Credential, Region: f.pin.Region, Origins: []string{}}
}

// matches reports whether --status, --where, --origin and the patterns of keys select a record.
func (f *redriveFlags) matches(rec *persist.Record, sel *selection) bool {
	// EffectRefused: its answer says that nothing happened.
	if !slices.Contains(f.statuses, rec.FinalStatus()) || rec.FinalEffect() != persist.EffectRefused || !sel.match(rec) {
		return false
	}
	for _, w := range f.where {
		pointer, want, _ := strings.Cut(w, "=")
		if text, why := results.RequestText(rec, pointer); why != "" || text != want {
			return false
		}
	}
	return true
}

// runTime is the form of the time at the beginning of a run's id.
const runTime = "20060102T150405.000000Z"

// startOf returns the time at which the run with this id (--run) began, which the id contains. It is an error if the text is no such id.
func startOf(run string) (time.Time, error) {
	text, rest, found := strings.Cut(run, "-")
	start, err := time.Parse(runTime, text)
	if err != nil || !found || rest == "" || len(run) > persist.RedriveRunBytesMax {
		return time.Time{}, fmt.Errorf("--run %q is not the id of a run, such as 20260131T101500.000000Z-3f9c", words.Clip(run))
	}
	return start, nil
}

// latestOf returns the key of the latest generation (a try under a key of its own) after key that the journal has; "" if there is none.
func latestOf(ctx context.Context, c *oncehttp.Client, key string) (latest string) {
	for range intent.GenerationsMax {
		key = intent.NextGeneration(key)
		if _, err := c.Lookup(ctx, oncehttp.Key(key)); err != nil {
			break
		}
		latest = key
	}
	return latest
}
