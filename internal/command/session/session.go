// Package session holds a client on an open journal, and the flags for its sends.
package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/forgotten"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/profile"
)

// WorkersMax bounds --workers.
const WorkersMax = 1024

// ClientFlags are the flags of every sending command.
type ClientFlags struct {
	Journal    string
	SealKey    string
	Account    string
	Profile    string
	KeyHeader  string
	assumed    []string
	Used       *profile.Profile // the profile as it is used; set by config
	honoured   []string
	basePath   string
	insertKey  bool
	headers    []string
	dropAnswer []string
	Secret     SecretFlags
	Retry      oncehttp.Policy
	pin        PinFlags

	natural       NaturalFlags
	outcome       OutcomeFlags
	asked         results.Asked // by outcome
	declinedTexts []string
	Declines      results.Declines
	declinedSince declinedSince

	signing string
	caFile  string
	verbose bool
}

// Bind adds the flags of a command that sends with a client to fs, such as --account and --profile.
func (f *ClientFlags) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.Account, "account", "", "whose account this is; part of what a key names (default: the unnamed one)")
	fs.StringVar(&f.Profile, "profile", profile.Draft07().Name, ProfileUsage)
	fs.StringArrayVar(&f.assumed, "assume", nil, "NAME=VALUE in place of an assumption that profile show lists, such as window=24h, key=36 or stored.server_error=no; may be repeated")
	fs.StringVar(&f.KeyHeader, "key-header", "", "the header that carries the key, such as X-Request-ID (default: as the profile says)")
	f.BindSending(fs)
}

// BindHonoured binds the flags whose values are written into a record when its operation begins: whether the API honours the key, and where it stands. Only commands
// that begin operations have them.
func (f *ClientFlags) BindHonoured(fs *pflag.FlagSet) {
	fs.BoolVar(&f.insertKey, "insert-key", false, "where the API reads keys in the body, a form or the query, put the key of --key there, as the last member, unless one is there")
	fs.StringArrayVar(&f.honoured, "key-honoured", nil, "an operation at which the API honours keys although the profile does not list it, such as 'POST /v1/payouts/{id}'; may be repeated")
	fs.StringVar(&f.basePath, "base-path", "", "what a gateway has put before the API's own paths, such as /gateway")
}

// BindSending binds the flags for sending, such as headers, certificates and retries. Commands that only continue operations have them, too: there account and profile
// come from the records.
func (f *ClientFlags) BindSending(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "'Name: value', or @FILE with one a line; may be repeated")
	f.Secret.Bind(fs)
	fs.StringArrayVar(&f.dropAnswer, "drop-answer", nil, "a JSON pointer to a member of answers that the journal does not keep, such as /client_secret; an operation goes on leaving it out, whoever ends it; may be repeated")
	f.pin.Bind(fs)
	f.natural.Bind(fs)
	fs.BoolVar(&f.natural.askFirst, "ask-first", false, "--lookup is asked before an operation in doubt is sent again")
	f.outcome.Bind(fs)
	results.BindDeclines(fs, &f.declinedTexts)
	fs.StringVar(&f.signing, "sign", "", signUsage)
	fs.StringVar(&f.caFile, "cacert", "", "a PEM file of the certificates to trust instead of the system's")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "say on stderr what is sent again, and why")
	fs.IntVar(&f.Retry.MaxAttempts, "max-attempts", 6, "attempts for one operation in one run")
	fs.DurationVar(&f.Retry.MaxElapsed, "max-elapsed", 0, "time from the first attempt to the start of the last (default 2m)")
	fs.DurationVar(&f.Retry.AttemptTimeout, "attempt-timeout", 0, "wait for an answer (default 30s)")
	fs.DurationVar(&f.Retry.MinDelay, "min-delay", 0, "bound of the first random wait between two attempts (default 500ms)")
	fs.DurationVar(&f.Retry.MaxDelay, "max-delay", 0, "bound of all such waits (default 30s)")
	fs.DurationVar(&f.Retry.MaxRetryAfter, "max-retry-after", 0, "longest Retry-After that is waited for (default 1m)")
}

// ProfileUsage is the help of --profile.
const ProfileUsage = "how the API does idempotency: a name of oncehttp profile list, or a file"

// Config checks the flags, and returns the client's configuration and the headers of --header. It reads only the files that flags name, and opens no journal. Warnings
// of the client will go to stderr.
func (f *ClientFlags) Config(stderr io.Writer) (oncehttp.Config, http.Header, error) {
	p, err := f.profile()
	if err != nil {
		return oncehttp.Config{}, nil, err
	}
	f.Used = p
	f.declinedTexts = withTexts(f.declinedTexts, inFound(p, f.declinedTexts)) // also for what a lookup finds
	h, err := ParseHeaders(f.headers)
	if err != nil {
		return oncehttp.Config{}, nil, err
	}
	secret, err := f.Secret.Names()
	if err != nil {
		return oncehttp.Config{}, nil, err
	}
	if f.asked, err = results.ParseAsked(f.outcome.done, f.outcome.unknown); err != nil {
		return oncehttp.Config{}, nil, err
	}
	if f.Declines, err = results.ParseDeclines(f.declinedTexts); err != nil {
		return oncehttp.Config{}, nil, err
	}
	f.Retry.AskFirst, f.Retry.NeverAskAgain = f.natural.askFirst, true // no second send only to get an answer that was too large to keep
	switch {
	case f.Retry.AskFirst && p.Reference == nil:
		return oncehttp.Config{}, nil, errors.New("--ask-first: there is nothing to ask; say --lookup, or give a profile that has a lookup by reference")
	case f.Retry.AskFirst && len(p.Duplicate) == 0:
		return oncehttp.Config{}, nil, errors.New("--ask-first: what is found may be another's; say --already-done, or give a profile that says how a number that was used before is answered")
	}
	cfg := oncehttp.Config{Account: f.Account, Profile: p, Retry: f.Retry, Credential: f.pin.Credential, Region: f.pin.Region, KeyHonoured: f.honoured, BasePath: f.basePath, InsertKey: f.insertKey}
	if err := request.CheckDropped(f.dropAnswer); err != nil {
		return oncehttp.Config{}, nil, fmt.Errorf("--drop-answer: %w", err)
	}
	if reads, leaves := f.Declines.Reads(f.dropAnswer); reads != "" {
		return oncehttp.Config{}, nil, fmt.Errorf("--declined reads %s, and --drop-answer %s keeps it out of the journal: a later run could not tell a refusal from a success; leave one of them out", words.Clip(reads), words.Clip(leaves))
	}
	cfg.SecretHeaders, cfg.DropAnswer = secret, f.dropAnswer
	cfg.Logger = newCoverageLog(stderr)
	if cfg.Authorize, err = signer(f.signing, p); err != nil {
		return cfg, nil, err
	}
	if cfg.Transport, err = f.transport(); err != nil {
		return cfg, nil, err
	}
	if f.verbose {
		cfg.Observe = narrate(stderr)
		sayAssumed(stderr, p)
	}
	if f.Retry.MaxAttempts < 1 {
		return cfg, nil, errors.New("--max-attempts must be at least 1")
	}
	return cfg, h, nil
}

// profile returns the profile of --profile with what the other flags say of the API, such as --assume and --done.
func (f *ClientFlags) profile() (*profile.Profile, error) {
	p, err := FindProfile(f.Profile)
	if err == nil {
		p, err = Assuming(p, f.assumed)
	}
	if err == nil {
		p, err = f.natural.Apply(p)
	}
	if err == nil {
		p, err = f.outcome.Apply(p, f.declinedTexts)
	}
	if err != nil {
		return nil, err
	}
	return CarriedBy(p, f.KeyHeader)
}

// transport returns a transport that trusts the certificates of --cacert alone. Without the flag it returns nil: the client uses its own transport.
func (f *ClientFlags) transport() (http.RoundTripper, error) {
	if f.caFile == "" {
		return nil, nil
	}
	pem, err := terminal.ReadBounded(f.caFile, terminal.HeaderFileBytesMax)
	if err != nil {
		return nil, fmt.Errorf("--cacert: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--cacert: %s: holds no PEM certificate", f.caFile)
	}
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("--cacert: the default transport is not net/http's")
	}
	t = t.Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	t.MaxIdleConnsPerHost = WorkersMax // one for each operation at once
	return t, nil
}

// narrate returns an observer for --verbose. It prints a line for each attempt without a final answer, with the reason, and for each wait. No body, header or query
// string is in it.
func narrate(w io.Writer) func(context.Context, oncehttp.Event) {
	return func(_ context.Context, e oncehttp.Event) {
		switch {
		case e.Kind == oncehttp.EventAnswered && e.Err != nil:
			terminal.Say(w, "%s: attempt %d: %s", e.Key, e.Attempt, words.CauseWords(words.FlagWords(e.Err.Error())))
		case e.Kind == oncehttp.EventAnswered && e.Status != 0:
			terminal.Say(w, "%s: attempt %d: answered %d: %v", e.Key, e.Attempt, e.Status, e.Outcome)
		case e.Kind == oncehttp.EventWaiting:
			terminal.Say(w, "%s: again in %v", e.Key, e.Wait.Round(time.Millisecond))
		}
	}
}

// Session is a client and the journal under it.
type Session struct {
	Client  *oncehttp.Client
	Journal persist.Journal
	Place   place.Place        // of the journal
	holder  *place.Holder      // nil: readers are not served
	held    *place.HeldJournal // the process holding the file; nil: the file is read
	opened  persist.Journal    // of a reader: the journal under its seal

	ShowsUnread bool // unreadable records are listed by their clear parts
}

// OpenSession opens an existing journal, and a client on it that sends to the origins of cfg. The caller closes the session. A journal's file is held until then.
func OpenSession(at place.Place, cfg oncehttp.Config) (*Session, error) {
	return openSession(at, cfg, false)
}

// CreateSession opens a journal, whose file it makes if there is none, and a client on it. The caller closes the session. The tables of a journal on a server must
// exist.
func CreateSession(at place.Place, cfg oncehttp.Config) (*Session, error) {
	return openSession(at, cfg, true)
}

// openSession opens a journal, and a client with cfg on it. If create is true, a missing file is made. It also serves the readers of other commands while the file is
// held.
func openSession(at place.Place, cfg oncehttp.Config, create bool) (*Session, error) {
	j, err := place.Open(at, create)
	if err != nil {
		return nil, err
	}
	used, err := at.Unsealed(j)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	ses, err := newSession(at, used, cfg)
	if err == nil {
		ses.holder = place.Hold(at, j, used) // readers unseal for themselves
	}
	return ses, err
}

// newSession makes the client on an open journal, and closes the journal if it fails. A client without origins sends nothing.
func newSession(at place.Place, j persist.Journal, cfg oncehttp.Config) (*Session, error) {
	logger := cfg.Logger
	// An operation that ended without an effect is forgotten by the journal: a log beside it keeps such tries.
	j, interrupted := forgotten.Keep(j, at, func(err error) {
		if logger != nil {
			logger.Warn("what was tried is not kept", "operation", at.Name, "error", "what was tried without effect is not kept: "+err.Error())
		}
	})
	cfg.Journal, cfg.Observe = j, markingInterrupted(cfg.Observe, interrupted)
	if cfg.Origins == nil {
		cfg.Origins = []string{}
	}
	c, err := oncehttp.New(cfg)
	if err != nil {
		return nil, errors.Join(terminal.Plain(err), j.Close())
	}
	return &Session{Client: c, Journal: j, Place: at}, nil
}

// markingInterrupted returns an observer that calls mark for each operation that ended unsent because the client was closed, and then calls observe, which may be
// nil. So the log of what was tried without effect can tell an interrupt from a failure.
func markingInterrupted(observe func(context.Context, oncehttp.Event), mark func(persist.ID)) func(context.Context, oncehttp.Event) {
	return func(ctx context.Context, e oncehttp.Event) {
		if e.Kind == oncehttp.EventFinished && e.Outcome == oncehttp.OutcomeNotSent && e.Sends == 0 && errors.Is(e.Err, oncehttp.ErrClosed) {
			mark(persist.ID{Account: e.Account, Key: string(e.Key)})
		}
		if observe != nil {
			observe(ctx, e)
		}
	}
}

// OpenVisiting opens a session whose journal file is open only for the length of each call, so that several processes of the command send can share it. It makes the
// file if there is none. A journal on a server is shared anyway, and is opened as usual.
func OpenVisiting(at place.Place, cfg oncehttp.Config) (*Session, error) {
	if !at.IsFile() {
		return OpenSession(at, cfg)
	}
	path := at.Path
	if err := place.CheckJournalPath(path, true); err != nil {
		return nil, err
	}
	opts := bolt.Options{LockWait: place.VisitWait, ReadOnly: true}
	first, err := bolt.Open(path, opts) // errors of the file show before anything is sent
	if errors.Is(err, fs.ErrNotExist) {
		opts.ReadOnly = false
		first, err = bolt.Open(path, opts)
	}
	switch {
	case errors.Is(err, persist.ErrLocked):
		return nil, place.LockedError(path, err)
	case err != nil:
		return nil, place.JournalError(path, err)
	}
	_, err = at.Unsealed(first) // whether --seal-key fits
	if closing := first.Close(); err == nil && closing != nil {
		err = place.JournalError(path, closing)
	}
	if err != nil {
		return nil, err
	}
	j, err := at.Sealing(context.Background(), &place.VisitJournal{Path: path})
	if err != nil {
		return nil, err
	}
	cfg.Lease = place.VisitLease // longer than most sends: nobody renews a lease in the file
	return newSession(at, j, cfg)
}

// OpenReader opens a journal for reading. If another process holds the journal's file, it reads through that process. On a server it asks for no right but to
// read. The session has no client. While it has the file open, it lets further readers read through it (Hold).
func OpenReader(at place.Place) (*Session, error) {
	at.Looks = true
	if at.IsFile() {
		if err := place.CheckJournalPath(at.Path, false); err != nil {
			return nil, err
		}
		if held := place.OpenHeld(at.Path); held != nil {
			held.Reopens(func() (persist.Journal, error) { return place.Open(at, false) })
			used, err := at.Unsealed(held)
			if err != nil {
				return nil, err
			}
			return &Session{Journal: used, Place: at, held: held}, nil
		}
	}
	j, err := place.Open(at, false)
	if err != nil {
		return nil, err
	}
	used, err := at.Unsealed(j)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &Session{Journal: used, Place: at, opened: j, holder: place.Hold(at, j, used)}, nil
}

// Size returns the size of the journal in bytes; 0 if it cannot be known. It is for sessions of OpenReader.
func (s *Session) Size(ctx context.Context) (int64, error) { return s.Place.Size(ctx, s.opened) }

// Flush waits until everything that the client has learnt is durable in the journal, also after an interrupt of ctx.
func (s *Session) Flush(ctx context.Context) error {
	if err := s.Client.Flush(context.WithoutCancel(ctx)); err != nil {
		return place.JournalError(s.Place.Name, err)
	}
	return nil
}

// Stop lets the attempts on the wire end, and starts no other. It is called at an interrupt. Its error, if any, comes again from Close.
func (s *Session) Stop() { _ = s.Client.Close() }

// Close stops answering other commands' reads of the journal, then closes the client and the journal. It is called once.
func (s *Session) Close() error {
	if s.holder != nil {
		s.holder.Close()
	}
	var err error
	if s.Client != nil {
		err = s.Client.Close()
	}
	if err := errors.Join(err, s.Journal.Close()); err != nil {
		return place.JournalError(s.Place.Name, err)
	}
	return nil
}
