package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// resumeFlags are the flags of journal resume, as given.
type resumeFlags struct {
	*session.JournalFlags
	client  session.ClientFlags
	workers int
	origins []string
	dry     bool
	// restored: send the operations held by journal restored, too.
	restored bool
	made     results.Made
}

// resumeCommand returns the command "journal resume" with its flags.
func resumeCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	r := &resumeFlags{JournalFlags: f}
	cmd := &cobra.Command{
		Use:   "resume [KEY]...",
		Short: "Finish what is pending",
		Long: `Send what is pending and due, each with its own key and bytes and by the profile
it was begun with, and print a line of JSON for each, as batch does. With KEY only
those operations are sent (a whole key: no pattern). What is held is left alone: settle it. --dry-run shows
what would be sent, and what keeps the rest from it; it is refused as the resume would be.

--restored also sends what journal restored holds, as far as the server still knows the
keys: all of the account, or only that of KEY and --origin. So say it for what an audit has
cleared. It releases an operation if this resume may send it now: to its server, with its
region, credential, authorization, profile and key of the seal. The others stay held, and
stderr says how many, and why. A release is for good: what is released and not done, after
Ctrl-C or a lost answer, is pending, and the next resume or worker goes on with it.

Credentials are never in a journal. Give them again with -H; a header that is on
record cannot be changed. Where the pending operations lead to more than one
server, --origin has to say whose the headers are, and where the journal is on a
database, to which servers they go: the others then stay pending.

What was begun with a profile file needs that file again: --profile FILE. Without
it such an operation is not sent, stays pending, and its line says so.

What stands under no account is not sent for an account, and is counted on stderr:
give it to one with oncehttp journal assign. With --account it does not change the
exit status.

Exit status: 0 nothing is left of all accounts, or of --account and KEY; 1 the same, and
some were finally refused; 2 the call is wrong and nothing was sent; 3 something is
still pending or held. With KEY what is left of other keys is told on stderr.`,
		Example: `  oncehttp journal resume --journal payments.db -H @auth.txt
  oncehttp journal resume --journal payments.db --account shop-7 --origin https://api.example.com:443 -H @auth.txt`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args, s) },
	}
	fs := cmd.Flags()
	r.client.BindSending(fs)
	fs.StringVar(&r.client.Profile, "profile", profile.Draft07().Name, "the profile file that operations were begun with; built-in ones are known")
	fs.BoolVar(&r.dry, "dry-run", false, "show what would be sent, and send nothing")
	fs.IntVar(&r.workers, "workers", 8, "operations at once")
	fs.BoolVar(&r.restored, "restored", false, "also what journal restored holds, of KEY and --origin where they are given; only after an audit said that the provider did not do it")
	fs.StringArrayVar(&r.origins, "origin", nil, "a server to send to, as journal list shows it; the one that the headers, or the signatures, are for; may be repeated")
	return cmd
}

// run checks the flags, and resumes the operations of keys, or all that are due without keys. With --dry-run it only prints them.
func (f *resumeFlags) run(ctx context.Context, keys []string, s terminal.Streams) error {
	cfg, header, err := f.client.Config(s.Err)
	if err != nil {
		return err
	}
	if f.workers < 1 || f.workers > session.WorkersMax {
		return fmt.Errorf("--workers must be from 1 to %d", session.WorkersMax)
	}
	if f.dry {
		return f.WithReader(func(ses *session.Session) error { return f.dryRun(ctx, ses, cfg, header, keys, s) })
	}
	return f.WithJournal(func(ses *session.Session) error {
		keys, err := f.spelled(ctx, ses, keys)
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			ses.Journal = onlyKeys(ses.Journal, keys)
		}
		return f.resume(ctx, ses, cfg, header, keys, s)
	})
}

// spelled returns the keys as the journal has them. The user may leave out the first word of generated keys, and add @SEEN as listings print it. A key without an
// operation is an error.
func (f *resumeFlags) spelled(ctx context.Context, ses *session.Session, keys []string) ([]string, error) {
	all := make([]string, 0, len(keys))
	for _, key := range keys {
		rec, err := (&actFlags{JournalFlags: f.JournalFlags}).findSeen(ctx, ses, key)
		if err != nil {
			return nil, err
		}
		all = append(all, rec.Key)
	}
	return all, nil
}

// resume sends the operations that are due, prints a result line for each, and a summary. cfg is the client's configuration; header are the headers of -H; keys, if
// any, are the only ones to send. With --restored it releases held operations first.
func (f *resumeFlags) resume(ctx context.Context, ses *session.Session, cfg oncehttp.Config, header http.Header, keys []string, s terminal.Streams) error {
	cfg, err := f.aimed(ctx, ses, cfg, header)
	if err != nil {
		return err
	}
	// It keeps the values of --declined in the journal, and takes over those of earlier runs.
	if err := f.client.KeepDeclines(ctx, ses, func(text string) { terminal.Say(s.Err, "%s", text) }); err != nil {
		return err
	}
	cfg.Journal, cfg.ResumeWorkers, cfg.Observe = ses.Journal, f.workers, f.made.Counting(cfg.Observe)
	c, err := oncehttp.New(cfg)
	if err != nil {
		return terminal.Plain(err)
	}
	defer c.Close() // without a journal of its own it has no error
	if f.restored {
		if err := release(ctx, ses, cfg, keys, s.Err); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() {
		terminal.Say(s.Err, "interrupted: waiting for the attempts on the wire; once more kills")
		_ = c.Close()
	})
	defer stop()
	t, err := f.pass(ctx, ses, c, s.Out)
	if err != nil {
		return err
	}
	return f.conclude(ctx, ses, cfg.Account, keys, &t, s.Err)
}

// aimed returns the client's configuration with the account to resume, the servers to send to, and the profiles of the records. The error asks for a flag if one of
// them is not clear.
func (f *resumeFlags) aimed(ctx context.Context, ses *session.Session, cfg oncehttp.Config, header http.Header) (oncehttp.Config, error) {
	var err error
	if cfg.Account, err = f.whose(ctx, ses); err != nil {
		return cfg, err
	}
	if cfg.Authorize != nil && len(f.origins) == 0 {
		return cfg, errors.New("--sign: say with --origin for which server it signs, as journal list shows it")
	}
	cfg.ProfileOf = session.RecordedProfile(cfg.Profile) // each by the profile that it was begun with
	return f.directed(ctx, ses, cfg, header)
}

// pass resumes the due operations once, and prints the line of each when its end is durable in the journal. It returns the counts of the lines. If printing fails, it
// stops the client.
func (f *resumeFlags) pass(ctx context.Context, ses *session.Session, c *oncehttp.Client, out io.Writer) (results.Tally, error) {
	ctx = context.WithoutCancel(ctx) // the client's Close ends the pass in good order
	lines, printed := make(chan results.Placed, f.workers), make(chan error, 1)
	go func() {
		stop := func(error) { go c.Close() } // Close waits for attempts, and their lines for this printer
		printed <- results.NewPrinter(out, ses.Flush).Run(ctx, lines, stop)
	}()
	t, err := f.feed(ctx, c, lines)
	close(lines)
	if perr := <-printed; perr != nil {
		err = errors.Join(err, fmt.Errorf("the answers could not be printed: %w", words.Pathless(perr)))
	}
	if err != nil {
		return t, &terminal.ExitError{Status: terminal.ExitUnknown, Err: err}
	}
	return t, nil
}

// feed runs the client's Resume, and sends the line of JSON to print for each operation to lines. It returns their counts. Failures of single operations are lines;
// only an error of the journal ends it early.
func (f *resumeFlags) feed(ctx context.Context, c *oncehttp.Client, lines chan<- results.Placed) (results.Tally, error) {
	t := results.Tally{Parted: true}
	for res, err := range c.Resume(ctx) {
		l := f.client.Declines.Resumed(res)
		if e := (*oncehttp.Error)(nil); errors.As(err, &e) {
			l = results.Failed(res.Key, err)
			if rec, err := c.Lookup(ctx, res.Key); err == nil { // else it keeps the counts of this run
				if l.CountWhole(&rec); l.Attempts == 0 { // CountWhole: with the attempts of earlier runs. 0: nothing was tried in this run
					l.TakeRecord(&rec)
				}
			}
		} else if err != nil {
			return t, place.JournalError(f.Path, err)
		}
		f.made.Take(&l)
		t.Add(&l)
		lines <- results.Placed{Seq: t.Rows - 1, Text: l.Marshal()}
	}
	return t, nil
}

// conclude prints the summary of a resume: its results, the operations left, and the next step. The error has the exit status: terminal.ExitUnknown if something is
// left. t has the counts of the result lines.
func (f *resumeFlags) conclude(ctx context.Context, ses *session.Session, account string, keys []string, t *results.Tally, stderr io.Writer) error {
	now := time.Now()
	left, err := f.remaining(context.WithoutCancel(ctx), ses, keys, now) // after a signal, too
	if err != nil {
		return err
	}
	terminal.Say(stderr, "%s; %s", t.Summary(f.Path), left)
	if t.Rows == 0 && left.many[persist.StatePending] == 0 && len(f.origins) > 0 {
		terminal.Say(stderr, "nothing is pending, so nothing was sent to %s", strings.Join(f.origins, ", "))
	}
	if wait := time.Until(left.due); !left.due.IsZero() && wait > 0 {
		terminal.Say(stderr, "the next is due in %v", wait.Round(time.Millisecond))
	}
	left.away.say(stderr, now)
	if err := f.sayNone(ctx, ses, account, stderr); err != nil {
		return err
	}
	if len(left.many) > 0 {
		return terminal.ExitWith(terminal.ExitUnknown)
	}
	return terminal.ExitWith(t.Exit)
}

// sayNone prints the number of unfinished operations under no account, beside the account of this call. They were not sent, and
// they keep calls with their keys from beginning anything.
func (f *resumeFlags) sayNone(ctx context.Context, ses *session.Session, account string, stderr io.Writer) error {
	if account == "" {
		return nil
	}
	n := 0
	q := persist.Query{States: unfinished()}                                                        // of the empty account
	err := session.EachRecord(context.WithoutCancel(ctx), ses, q, func(rec *persist.Record) error { // after a signal, too
		if withoutHeaders(rec.Account) == "" {
			n++
		}
		return nil
	})
	if err == nil && n > 0 {
		terminal.Say(stderr, "left alone: %s under no account, beside %q; give each to the one to which it belongs with oncehttp journal assign", words.Count(n, "unfinished operation"), account)
	}
	return err
}

// unfinished returns the states of operations without an end.
func unfinished() []persist.State { return []persist.State{persist.StatePending, persist.StateHeld} }

// eachToSend calls do for each operation selected by q that this resume may send: pending ones, and with --restored those held since a restore.
func (f *resumeFlags) eachToSend(ctx context.Context, ses *session.Session, q persist.Query, do func(*persist.Record)) error {
	q.States = []persist.State{persist.StatePending}
	if f.restored {
		q.States = unfinished()
	}
	return session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		if rec.State == persist.StatePending || rec.HoldReason == persist.HoldRestored {
			do(rec)
		}
		return nil
	})
}

// whose returns the account to resume: that of --account, else the only one with operations to send; "" if there are none. Several are an error.
func (f *resumeFlags) whose(ctx context.Context, ses *session.Session) (string, error) {
	if f.HasAccount {
		return f.Account, nil
	}
	found := map[string]bool{}
	err := f.eachToSend(ctx, ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) {
		found[words.AccountName(rec.Account)] = true
	})
	names := slices.Sorted(maps.Keys(found))
	switch {
	case err != nil || len(names) == 0:
		return "", err
	case len(names) > 1:
		return "", fmt.Errorf("journal %s: several accounts have something pending (%s); say --account", f.Path, strings.Join(words.Quoted(names), ", "))
	}
	return names[0], nil
}

// directed returns cfg with the servers that the client may send to. With headers or a signature there is at most one, since these are secrets of one server. Else they
// are those of --origin, or the only one of the pending operations. A journal file without --origin sets no limit, since nobody else writes to it.
func (f *resumeFlags) directed(ctx context.Context, ses *session.Session, cfg oncehttp.Config, header http.Header) (oncehttp.Config, error) {
	bare := len(header) == 0 && cfg.Authorize == nil
	if bare && ses.Place.IsFile() && len(f.origins) == 0 {
		return cfg, nil
	}
	asked := "whose the headers are"
	if bare {
		asked = "to which they go"
	} else if len(f.origins) > 1 {
		return cfg, errors.New("the headers, or the signatures, are for one --origin; resume once for each")
	}
	var err error
	if cfg.Origins, err = f.leadTo(ctx, ses, cfg.Account, asked); err != nil || bare {
		return cfg, err
	}
	cfg.Authorize = session.InTurn(session.Authorize(header, strings.Join(cfg.Origins, "")), cfg.Authorize) // Origins has one, or none: nothing is to be sent
	return cfg, nil
}

// leadTo returns the origins of --origin, else the common origin of all operations to send of an account; none if there are none. Several without --origin are an
// error: one origin must not get the credentials of another. asked is the meaning of --origin in that error.
func (f *resumeFlags) leadTo(ctx context.Context, ses *session.Session, account, asked string) ([]string, error) {
	found := map[string]bool{}
	err := f.eachToSend(ctx, ses, persist.Query{Account: persist.Account(account)}, func(rec *persist.Record) {
		found[rec.Origin] = true
	})
	if err != nil {
		return nil, err
	}
	origins := slices.Sorted(maps.Keys(found))
	for _, origin := range f.origins {
		if !found[origin] && len(found) > 0 {
			return nil, fmt.Errorf("--origin %s: no pending operation leads there; those that are lead to %s", words.Clip(origin), strings.Join(origins, ", "))
		}
	}
	switch {
	case len(f.origins) > 0 && len(found) > 0:
		return f.origins, nil
	case len(origins) > 1:
		return nil, fmt.Errorf("the pending operations lead to %s; say with --origin %s", strings.Join(origins, ", "), asked)
	}
	return append([]string{}, origins...), nil // never nil: that would allow all
}
