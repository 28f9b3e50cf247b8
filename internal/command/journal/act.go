package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// actFlags are the flags of the commands to end operations.
type actFlags struct {
	*session.JournalFlags
	yes    bool
	reason string
}

// bind adds --yes and --reason to fs.
func (f *actFlags) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&f.yes, "yes", false, "do not ask")
	fs.StringVar(&f.reason, "reason", "", "why; kept with each operation, with your user name and the machine's, for whoever looks later")
}

// act is one way to end an operation.
type act struct {
	// done reports whether the operation stands so already.
	done func(rec *persist.Record) bool
	// warning, if not empty, is asked about before anything is changed.
	warning func(rec *persist.Record) string
	// end does it.
	end func(c *oncehttp.Client, rec *persist.Record) error
	// config returns the client's settings for it, beside journal and account; nil: there are none.
	config func(rec *persist.Record) (oncehttp.Config, error)
	// before, if not nil, is asked first; an error of it leaves the operation alone.
	before func(ctx context.Context, ses *session.Session, rec *persist.Record) error
	// begun, if not nil, returns the key under which the act has begun the operation anew; "": it stood there before.
	begun func(rec *persist.Record) string
	// said is printed before an operation's key; names: with the key of begun behind it.
	said  string
	names bool
	// kind names the act, and so its own earlier writes.
	kind acts.Act
	// bound: it is done only to an operation as it was seen.
	bound bool
	// denies: it is for an operation that had no effect, or whose effect is not known.
	denies bool
}

// text returns the words before an operation's key in the output of an act, such as "abandoned". For an act that begins a new operation and prints its key (a.names), they
// name that key.
func (a *act) text(rec *persist.Record) string {
	if a.names {
		return a.said + " " + a.begun(rec)
	}
	return a.said
}

// run applies the act a, such as settle, to the operations of these keys; "-" stands for keys on stdin, one a line. All are looked up, shown and asked about before
// the first is changed. An operation is left alone if it has changed since the user saw it. The signature (user and machine) stands behind the reason: a reason has
// to leave room for it.
func (f *actFlags) run(ctx context.Context, keys []string, a act, s terminal.Streams) error {
	listed := slices.Contains(keys, "-") // keys from a list need @SEEN: see unmoved
	by := signature()
	if most := persist.NoteBytesMax - len(signed(" ", by)) + 1; len(f.reason) > most { // " " is a reason of one byte, which does not count
		return fmt.Errorf("--reason is longer than %d bytes", most)
	}
	f.reason = signed(f.reason, by)
	keys, err := readKeys(keys, s.In)
	if err != nil {
		return err
	}
	return f.WithJournal(func(ses *session.Session) error {
		var all []seenRecord
		for _, key := range keys {
			rec, err := f.findSeen(ctx, ses, key)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(all, rec.repeats) { // a key that is named twice is changed once
				all = append(all, rec)
			}
		}
		records, moved, err := unmoved(all, a, listed, f.yes, s)
		if err == nil {
			err = f.ask(records, a, s)
		}
		if err != nil {
			return err
		}
		outrun, err := f.endAll(ctx, ses, records, a, s)
		return sayMoved(append(moved, outrun...), err, s)
	})
}

// readKeys returns the keys of the arguments. An argument "-" stands for the lines of stdin. It is an error if there is none, or if a line is too long.
func readKeys(args []string, stdin io.Reader) ([]string, error) {
	var keys []string
	for _, arg := range args {
		if arg != "-" {
			keys = append(keys, arg)
			continue
		}
		lines, read := bufio.NewScanner(stdin), 0
		for ; lines.Scan(); read++ {
			if key := strings.TrimSpace(lines.Text()); key != "" {
				keys = append(keys, key)
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return nil, fmt.Errorf("stdin: line %d is longer than %d bytes, which no key is; nothing was changed", read+1, bufio.MaxScanTokenSize)
		case err != nil:
			return nil, fmt.Errorf("stdin: after line %d: %w; nothing was changed", read, words.Pathless(err))
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no key on stdin")
	}
	return keys, nil
}

// find returns the operation of a key, prepared for display. If several accounts have the key, --account has to name one. The error errNoSuchKey says that there is
// none.
func (f *actFlags) find(ctx context.Context, ses *session.Session, key string) (persist.Record, error) {
	q := f.Query()
	q.Key = key
	var found []persist.Record
	see := ses.Seeing(ctx) // Seeing asks for the time, and so comes before the records are read
	err := session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		see.Set(rec)
		found = append(found, *rec)
		return nil
	})
	switch {
	case err != nil:
		return persist.Record{}, err
	case len(found) == 0:
		return persist.Record{}, errNoSuchKey
	case len(found) > 1:
		accounts := make([]string, len(found))
		for i := range found {
			// --account selects the accounts inside it, too; its own counts first.
			if accounts[i] = found[i].Account; f.HasAccount && accounts[i] == persist.Account(f.Account) {
				return found[i], nil
			}
		}
		return persist.Record{}, fmt.Errorf("journal %s: %d accounts have the key %q (%s); say --account", f.Path, len(found), words.Clip(key), strings.Join(words.Quoted(accounts), ", "))
	}
	return found[0], nil
}

// ask prints a line about each operation to be changed, and asks the user once about all warnings of the act. It returns nil without warnings, with --yes, or after a
// yes; else an error.
func (f *actFlags) ask(records []persist.Record, a act, s terminal.Streams) error {
	var warnings []string
	for i := range records {
		rec := &records[i]
		if len(records) > 1 || terminal.IsTerminal(s.Err) { // a script with one key knows which one it is
			terminal.Say(s.Err, "%s", knownText(rec))
		}
		if a.warning == nil || a.done(rec) {
			continue
		}
		if text := a.warning(rec); text != "" {
			warnings = append(warnings, text)
		}
	}
	switch len(warnings) {
	case 0:
		return nil
	case 1:
		return s.Confirm(f.yes, warnings[0])
	}
	return s.Confirm(f.yes, fmt.Sprintf("%s, and %d more like it", warnings[0], len(warnings)-1))
}

// knownText returns the known facts of an operation on one line: its key, state, request, whether it was sent, and its last answer.
func knownText(rec *persist.Record) string {
	return fmt.Sprintf("%s: %s, %s %s%s, sent: %s, last answer: %s", words.Clip(rec.Key), view.StateText(rec), rec.Method, rec.Origin, words.PathOf(rec.Target),
		sentText(rec), statusText(rec))
}

// endAll applies the act a to each record, and prints a line for each operation changed now or before. moved has a line for each operation that has changed since
// it was read, and is left as it is. err joins the failures of the others: one failure does not stop the rest. a.denies is true for an act on operations without a
// known effect, such as settle --absent: of one that the API has accepted or confirmed, the error gets advice. So does the refusal of settle --happened (denies is false) for
// an operation confirmed as a success.
func (f *actFlags) endAll(ctx context.Context, ses *session.Session, records []persist.Record, a act, s terminal.Streams) (moved []string, err error) {
	var failed []error
	var begun []string
	defer func() { sayBegun(begun, ses, s.Err) }()
	for i := range records {
		rec := &records[i]
		if a.done(rec) {
			terminal.Say(s.Out, "%s already: %s", a.text(rec), rec.Key)
			continue
		}
		if err := f.endOne(ctx, ses, rec, a); err != nil {
			if now, lost := f.find(ctx, ses, rec.Key); lost == nil && errors.Is(err, oncehttp.ErrStale) {
				moved = append(moved, movedSince(&now, ses.Seeing(ctx).Now()))
				continue
			}
			switch {
			case !a.denies && errors.Is(err, oncehttp.ErrFinal) && isSuccess(rec):
				err = f.unreadText(ctx, ses, rec, err)
			case a.denies && oncehttp.OutcomeOf(rec) == oncehttp.OutcomeAccepted:
				err = fmt.Errorf("%w; the API has accepted it with %s, and may still do it: send it under no other key unless the API says that it never will", err, statusText(rec))
			case a.denies && isSuccess(rec):
				err = fmt.Errorf("%w; its answer %s is final: %s", err, statusText(rec), place.NewKeyStep)
			}
			failed = append(failed, place.JournalError(f.Path, err))
			continue
		}
		terminal.Say(s.Out, "%s: %s", a.text(rec), rec.Key)
		if a.begun != nil {
			if key := a.begun(rec); key != "" {
				begun = append(begun, key)
			}
		}
	}
	if len(failed) == 0 || len(records) == 1 { // the error of a single one stands alone, with its own exit status
		return moved, errors.Join(failed...)
	}
	status := terminal.ExitRefused
	for _, err := range failed {
		if terminal.StatusOf(err) == terminal.ExitUnknown {
			status = terminal.ExitUnknown
		}
	}
	return moved, &terminal.ExitError{Status: status, Err: fmt.Errorf("%d of %d not changed: %w", len(failed), len(records), errors.Join(failed...))}
}

// sayBegun prints the next step for a person after an act that began operations once more under these keys: the command that sends them.
func sayBegun(keys []string, ses *session.Session, stderr io.Writer) {
	const sends = "a worker or the program sends"
	journal := ses.Place.Shell()
	switch {
	case len(keys) == 1:
		terminal.Say(stderr, "begun as %s; %s it, or: oncehttp journal resume %s --journal %s", words.Clip(keys[0]), sends, words.ShellQuote(keys[0]), journal)
	case len(keys) > 1:
		terminal.Say(stderr, "%d begun anew; %s them, or: oncehttp journal resume --journal %s", len(keys), sends, journal)
	}
}

// isSuccess reports whether the API has confirmed that an operation took effect. No act of a person can take that back.
func isSuccess(rec *persist.Record) bool {
	return rec.State == persist.StateConfirmed && rec.FinalEffect() == persist.EffectHappened
}

// endOne applies the act a to one record. It makes a client for the account of the record, on the journal of the session, which stays open. Unless the act names
// origins, the client sends nothing.
func (f *actFlags) endOne(ctx context.Context, ses *session.Session, rec *persist.Record, a act) error {
	var cfg oncehttp.Config
	var err error
	if a.before != nil { // a check of the act's own
		if err = a.before(ctx, ses, rec); err != nil {
			return err
		}
	}
	if a.config != nil {
		if cfg, err = a.config(rec); err != nil {
			return err
		}
	}
	if cfg.Origins == nil { // nil would be all of them
		cfg.Origins = []string{}
	}
	cfg.Journal, cfg.Account = ses.Journal, words.AccountName(rec.Account)
	c, err := oncehttp.New(cfg)
	if err != nil {
		return err
	}
	return errors.Join(a.end(c, rec), c.Close())
}

// serverFlags are the flags of an act with requests to the operations' server.
type serverFlags struct {
	headers []string
	secret  session.SecretFlags
	profile string
	pin     session.PinFlags
}

// bind binds the flags for requests to the API's server, such as -H. The parameter what names their purpose in the help.
func (f *serverFlags) bind(fs *pflag.FlagSet, what string) {
	f.pin.Bind(fs)
	f.secret.Bind(fs)
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "for "+what+": 'Name: value', or @FILE with one a line; may be repeated")
	fs.StringVar(&f.profile, "profile", profile.Draft07().Name, "for "+what+": the profile file that operations were begun with; built-in ones are known")
}

// config returns a function that returns the client's configuration for a record. The headers of -H may be secret: they go to the server of the first record only, and
// a record of another server is an error.
func (f *serverFlags) config() (func(*persist.Record) (oncehttp.Config, error), error) {
	p, err := session.FindProfile(f.profile)
	if err != nil {
		return nil, err
	}
	header, err := session.ParseHeaders(f.headers)
	if err != nil {
		return nil, err
	}
	secret, err := f.secret.Names()
	if err != nil {
		return nil, err
	}
	origin := ""
	return func(rec *persist.Record) (oncehttp.Config, error) {
		cfg := oncehttp.Config{Profile: p, Credential: f.pin.Credential, Region: f.pin.Region, SecretHeaders: secret, Origins: []string{rec.Origin}}
		if len(header) == 0 {
			return cfg, nil
		}
		if origin == "" {
			origin = rec.Origin
		}
		if origin != rec.Origin {
			return cfg, fmt.Errorf("%q leads to %s, and the headers are for %s: name the operations of one server at a time", words.Clip(rec.Key), rec.Origin, origin)
		}
		cfg.Authorize = session.Authorize(header, origin)
		return cfg, nil
	}, nil
}

// maybeSentText returns a warning for an operation that may have been sent: if it took effect, a new try would be a second effect.
func maybeSentText(rec *persist.Record) string {
	return words.Clip(rec.Key) + " " + mayHaveBeenSent(rec) + ": if it took effect, a new try would be a second one"
}

// mayHaveBeenSent returns a clause with the time of the first possible send of an operation, and its last answer, if there was one.
func mayHaveBeenSent(rec *persist.Record) string {
	text := "may have been sent, first at " + rec.FirstSent.UTC().Format(time.RFC3339)
	if status := statusText(rec); status != "-" {
		text += ", last answered " + status
	}
	return text
}
