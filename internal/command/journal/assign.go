package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// assignFlags are the flags of journal assign, as given.
type assignFlags struct {
	*session.JournalFlags
	inside    string
	hasInside bool
	all       bool
	yes       bool
}

// assignCommand returns the command oncehttp journal assign.
func assignCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	a := &assignFlags{JournalFlags: f}
	cmd := &cobra.Command{
		Use:   "assign (KEY[@SEEN]... | --all) --account NAME",
		Short: "Give operations that stand under no account to one",
		Long: `Give operations that stand under no account to the account to which they belong,
in whatever state they are, each with one write. While one stands under none, a
call that names an account and has its key sends nothing, and says so. KEY may be
the reference in its place (ref-…) that the error of such a call has. "-" reads keys
from stdin, one a line. Saying the same again is no error.

SEEN is what journal list shows behind the key: an operation that somebody has sent or
settled since is left alone and shown with its new SEEN (status 3). From stdin one
that is unfinished needs it.

--all takes all that stands under none. It asks first, or wants --yes: an operation
that is given to a wrong account is sent again by the right one.

--inside is the account that a program names beside its client's, for one of
several customers (ContextWithAccount). With it, what stands under --account alone
is under none, too.

What cannot be assigned is named, a line each: one that a worker is sending now (status
3: run the same again), and one whose key stands under the account already.`,
		Example: `  oncehttp journal assign idemp:order:u1:o7 --account shop-7 --journal payments.db
  oncehttp journal assign ref-2e153096cba625e7bc732b8059baa321 --inside customer-4 --journal @journal.url
  oncehttp journal assign --all --account shop-7 --yes --journal payments.db`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.hasInside = cmd.Flags().Changed("inside")
			return a.run(cmd.Context(), args, s)
		},
	}
	cmd.Flags().BoolVar(&a.all, "all", false, "all operations without an account")
	cmd.Flags().StringVar(&a.inside, "inside", "", "the account inside --account")
	cmd.Flags().BoolVar(&a.yes, "yes", false, "do not ask")
	return cmd
}

// check returns an error if the flags and keys do not say clearly which operations to assign (KEY or --all), and to which account.
func (f *assignFlags) check(keys []string) error {
	switch {
	case f.hasInside && f.inside == "":
		return errors.New("--inside is empty")
	case f.Account == "" && !f.hasInside:
		return errors.New("say with --account, or --inside, to which account")
	case f.all && len(keys) > 0:
		return errors.New("say KEY or --all, not both")
	case !f.all && len(keys) == 0:
		return errors.New("KEY or --all is missing; see oncehttp journal assign --help")
	}
	return nil
}

// run assigns the operations of keys to the account of the flags, or with --all every operation without an account. The key "-" stands for the keys
// in stdin.
func (f *assignFlags) run(ctx context.Context, keys []string, s terminal.Streams) error {
	if err := f.check(keys); err != nil {
		return err
	}
	listed := slices.Contains(keys, "-") // keys from a list need @SEEN, if unfinished
	if !f.all {
		var err error
		if keys, err = readKeys(keys, s.In); err != nil {
			return err
		}
	}
	return f.WithJournal(func(ses *session.Session) error {
		c, err := oncehttp.New(oncehttp.Config{Journal: ses.Journal, Origins: []string{}, Account: f.Account}) // no origins: it sends nothing
		if err != nil {
			return terminal.Plain(err)
		}
		as := &assigning{assignFlags: f, ses: ses, client: c, s: s}
		if f.all {
			err = as.everything(ctx)
		} else {
			err = as.these(ctx, keys, listed)
		}
		return terminal.JoinExit(err, c.Close())
	})
}

// to returns the account to which operations are assigned: --account, with the inner account of --inside. Header values that are part of some accounts are left out.
func (f *assignFlags) to() string {
	if f.hasInside {
		return persist.Account(f.Account, [2]string{"", f.inside}) // the inner account is the part without a name; a header's has one
	}
	return persist.Account(f.Account)
}

// none returns the accounts whose operations count as having no account yet: the empty one, and with --inside the outer --account alone, too.
func (f *assignFlags) none() []string {
	if f.hasInside && f.Account != "" {
		return []string{persist.Account(f.Account), ""}
	}
	return []string{""}
}

// withoutHeaders returns an account without the header values that are part of it, such as the id of a sub-account. The inner account of --inside stays.
func withoutHeaders(account string) string {
	name, scopes := persist.SplitAccount(account)
	if len(scopes) > 0 && scopes[0][0] == "" { // the inner account: it has no header's name, and comes first
		return persist.Account(name, scopes[0])
	}
	return persist.Account(name)
}

// assigning is one call of journal assign on the open journal.
type assigning struct {
	*assignFlags
	ses    *session.Session
	client *oncehttp.Client
	s      terminal.Streams

	mu                sync.Mutex // guards the rest
	assigned, refused int
	status            int // terminal.ExitUnknown, if a refused one can be assigned later
}

// these assigns the operations of keys to the account. All are looked up before the first is changed. An operation that has changed since the user saw it is left
// alone. listed is true if keys came from stdin: an unfinished one then needs KEY@SEEN, a digest of its record as the user saw it.
func (a *assigning) these(ctx context.Context, keys []string, listed bool) error {
	var all []seenRecord
	for _, key := range keys {
		rec, err := a.findSeen(ctx, key)
		if err != nil {
			return err
		}
		all = append(all, rec)
	}
	records, moved, err := unmoved(all, act{done: a.done}, listed, a.yes, a.s)
	if err != nil {
		return err
	}
	for i := range records {
		switch rec := &records[i]; {
		case ctx.Err() != nil:
			return sayMoved(moved, terminal.Interrupted(), a.s)
		case a.done(rec):
			terminal.Say(a.s.Out, "assigned already: %s", rec.Key)
			a.assigned++
		default:
			err := a.one(ctx, rec, oncehttp.AsSeen(*rec))
			if errors.Is(err, oncehttp.ErrStale) && !errors.Is(err, oncehttp.ErrInFlight) { // ErrInFlight: it is being sent, and counts as not assigned
				if now, lost := a.find(ctx, rec.Key); lost == nil {
					moved = append(moved, movedSince(&now, a.ses.Seeing(ctx).Now()))
					continue
				}
			}
			if err != nil && len(all) == 1 {
				return place.JournalError(a.Path, err)
			}
			if a.count(err); err == nil {
				terminal.Say(a.s.Out, "assigned: %s", rec.Key)
			}
		}
	}
	return sayMoved(moved, a.conclude(), a.s)
}

// done reports whether an operation has the account of the flags already.
func (a *assigning) done(rec *persist.Record) bool { return withoutHeaders(rec.Account) == a.to() }

// everything assigns all operations without an account. It counts them, and asks first. It returns an error if some could not be assigned.
func (a *assigning) everything(ctx context.Context) error {
	n := 0
	if err := a.each(ctx, func(*persist.Record) error { n++; return nil }); err != nil {
		return err
	}
	if n > 0 {
		err := a.s.Confirm(a.yes, fmt.Sprintf("%s under no account would be given to %q for good: one that is another account's would be sent again there",
			words.Count(n, "operation"), a.to()))
		if err != nil {
			return err
		}
	}
	// Operations with header values in their account come first. The client refuses the one without, while others of its key stand beside it.
	err := a.all(ctx, func(rec *persist.Record) bool { return rec.Account != withoutHeaders(rec.Account) })
	if err == nil {
		err = a.all(ctx, func(rec *persist.Record) bool { return rec.Account == withoutHeaders(rec.Account) })
	}
	terminal.Say(a.s.Out, "assigned: %s", words.Count(a.assigned, "operation"))
	if err != nil {
		return err
	}
	return a.conclude()
}

// all assigns those operations without an account for which wanted returns true, several at once, and counts the results.
func (a *assigning) all(ctx context.Context, wanted func(*persist.Record) bool) error {
	jobs := make(chan persist.Record)
	var workers sync.WaitGroup
	for range changers {
		workers.Go(func() {
			for rec := range jobs {
				if err := a.one(ctx, &rec, oncehttp.OfAccount(rec.Account)); !errors.Is(err, persist.ErrNotFound) { // else assigned or swept meanwhile
					a.count(err)
				}
			}
		})
	}
	defer workers.Wait()
	defer close(jobs)
	return a.each(ctx, func(rec *persist.Record) error {
		if wanted(rec) {
			jobs <- *rec
		}
		return nil
	})
}

// each calls do for every operation that counts as having no account. The first error of do ends it.
func (a *assigning) each(ctx context.Context, do func(*persist.Record) error) error {
	for _, none := range a.none() {
		err := session.EachRecord(ctx, a.ses, persist.Query{Account: none}, func(rec *persist.Record) error {
			if withoutHeaders(rec.Account) != none { // the query selects the inner accounts, too
				return nil
			}
			return do(rec)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// one assigns one operation by the client. which is an option that selects the record: as the user saw it, or by its present account.
func (a *assigning) one(ctx context.Context, rec *persist.Record, which oncehttp.LookupOption) error {
	if a.hasInside {
		ctx = oncehttp.ContextWithAccount(ctx, a.inside)
	}
	return a.client.Assign(ctx, oncehttp.Key(rec.Key), which)
}

// count counts an operation as assigned if err is nil. Else it prints err, and the exit status gets worse. It may be called from several goroutines.
func (a *assigning) count(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.assigned++
		return
	}
	failed := place.JournalError(a.Path, err)
	a.refused++
	if a.status = max(a.status, terminal.ExitRefused); terminal.StatusOf(failed) == terminal.ExitUnknown {
		a.status = terminal.ExitUnknown
	}
	terminal.Say(a.s.Err, "%s", words.OneLine(failed))
}

// conclude returns nil if all operations were assigned, else an error with their number and the exit status. It is called at the end.
func (a *assigning) conclude() error {
	if a.refused == 0 {
		return nil
	}
	return &terminal.ExitError{Status: a.status, Err: fmt.Errorf("%d of %d not assigned", a.refused, a.refused+a.assigned)}
}

// findSeen returns the operation that the user names by KEY or KEY@SEEN, with that SEEN: a digest of the record as the user saw it; "" if none was given. The first
// word of generated keys may be left out. A key that itself ends like @SEEN is found first.
func (a *assigning) findSeen(ctx context.Context, text string) (seenRecord, error) {
	key, seen := session.SplitSeen(text)
	for _, prefix := range []string{"", words.KeyPrefix} {
		rec, err := a.find(ctx, prefix+text)
		if !errors.Is(err, errNoSuchKey) {
			return seenRecord{Record: rec}, err
		}
		if seen == "" {
			continue
		}
		if rec, err = a.find(ctx, prefix+key); !errors.Is(err, errNoSuchKey) {
			return seenRecord{rec, seen}, err
		}
	}
	return seenRecord{}, fmt.Errorf("journal %s: no operation with the key %q is without an account", a.Path, words.Clip(text))
}

// find returns the operation without an account that has a key, or a reference (ref-…) in its place; if there is none, the operation of the key that has the account
// already. It returns errNoSuchKey if there is neither, and another error if several have the key.
func (a *assigning) find(ctx context.Context, key string) (persist.Record, error) {
	see := a.ses.Seeing(ctx) // Seeing asks for the time, and so comes before the records are read
	found, err := a.underNone(ctx, key)
	if err != nil {
		return persist.Record{}, err
	}
	for i := range found {
		see.Set(&found[i])
	}
	switch len(found) {
	case 0:
		return a.already(ctx, key)
	case 1:
		return found[0], nil
	}
	secret, err := a.ses.Journal.Secret(ctx)
	if err != nil {
		return persist.Record{}, place.JournalError(a.Path, err)
	}
	list := make([]string, len(found))
	for i, rec := range found {
		list[i] = fmt.Sprintf("%q is %s", rec.ScopedAccount(), request.Reference(rec.ID, secret))
	}
	return persist.Record{}, fmt.Errorf("journal %s: %d operations under no account have the key %q; name one by its reference: %s",
		a.Path, len(found), words.Clip(key), strings.Join(list, ", "))
}

// underNone lists the operations without an account that have this key; if there are none, those with this reference.
func (a *assigning) underNone(ctx context.Context, key string) (found []persist.Record, err error) {
	for _, none := range a.none() {
		err := session.EachRecord(ctx, a.ses, persist.Query{Account: none, Key: key}, func(rec *persist.Record) error {
			if withoutHeaders(rec.Account) == none {
				found = append(found, *rec)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(found) > 0 || !request.IsReference(key) {
		return found, nil
	}
	secret, err := a.ses.Journal.Secret(ctx)
	if err != nil {
		return nil, place.JournalError(a.Path, err)
	}
	err = a.each(ctx, func(rec *persist.Record) error {
		if request.Reference(rec.ID, secret) == key {
			found = append(found, *rec)
		}
		return nil
	})
	return found, err
}

// already returns the operation of a key that has the account of the flags already; errNoSuchKey if there is none.
func (a *assigning) already(ctx context.Context, key string) (rec persist.Record, err error) {
	found := false
	err = session.EachRecord(ctx, a.ses, persist.Query{Account: persist.Account(a.Account), Key: key}, func(r *persist.Record) error {
		if withoutHeaders(r.Account) == a.to() { // the query selects inner accounts, and those with header values, too
			rec, found = *r, true
		}
		return nil
	})
	if err == nil && !found {
		err = errNoSuchKey
	}
	return rec, err
}
