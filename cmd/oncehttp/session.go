package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/profile"
)

// clientFlags are the flags of every command that sends.
type clientFlags struct {
	journal   string
	sealKey   string
	account   string
	profile   string
	keyHeader string
	used      *profile.Profile // the profile as it is used; set by config
	honoured  []string
	basePath  string
	headers   []string
	retry     oncehttp.Policy
	pin       pinFlags

	natural       naturalFlags
	declinedTexts []string
	declines      declines

	signing string
	caFile  string
	verbose bool
}

func (f *clientFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.account, "account", "", "whose account this is; part of what a key names (default: the unnamed one)")
	fs.StringVar(&f.profile, "profile", profile.Draft07().Name, profileUsage)
	fs.StringVar(&f.keyHeader, "key-header", "", "the header that carries the key, such as X-Request-ID (default: as the profile says)")
	f.bindSending(fs)
}

// bindHonoured binds what is frozen in a record, for commands that begin operations.
func (f *clientFlags) bindHonoured(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.honoured, "key-honoured", nil, "an operation at which the API honours keys although the profile does not list it, such as 'POST /v1/payouts/{id}'; may be repeated")
	fs.StringVar(&f.basePath, "base-path", "", "what a gateway has put before the API's own paths, such as /gateway")
}

// bindSending binds what also goes for operations whose account and profile are
// on record.
func (f *clientFlags) bindSending(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "'Name: value', or @FILE with one a line; may be repeated")
	f.pin.bind(fs)
	f.natural.bind(fs)
	fs.BoolVar(&f.natural.askFirst, "ask-first", false, "--lookup is asked before an operation in doubt is sent again")
	bindDeclines(fs, &f.declinedTexts)
	fs.StringVar(&f.signing, "sign", "", signUsage)
	fs.StringVar(&f.caFile, "cacert", "", "a PEM file of the certificates to trust instead of the system's")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "say on stderr what is sent again, and why")
	fs.IntVar(&f.retry.MaxAttempts, "max-attempts", 6, "attempts for one operation in one run")
	fs.DurationVar(&f.retry.MaxElapsed, "max-elapsed", 0, "time from the first attempt to the start of the last (default 2m)")
	fs.DurationVar(&f.retry.AttemptTimeout, "attempt-timeout", 0, "wait for an answer (default 30s)")
	fs.DurationVar(&f.retry.MinDelay, "min-delay", 0, "bound of the first random wait between two attempts (default 500ms)")
	fs.DurationVar(&f.retry.MaxDelay, "max-delay", 0, "bound of all such waits (default 30s)")
	fs.DurationVar(&f.retry.MaxRetryAfter, "max-retry-after", 0, "longest Retry-After that is waited for (default 1m)")
}

// profileUsage is the help of --profile.
const profileUsage = "how the API does idempotency: a name of oncehttp profile list, or a file"

// config checks the flags, without touching any file but those of headers.
func (f *clientFlags) config(stderr io.Writer) (oncehttp.Config, http.Header, error) {
	p, err := findProfile(f.profile)
	if err != nil {
		return oncehttp.Config{}, nil, err
	}
	if p, err = f.natural.apply(p); err != nil {
		return oncehttp.Config{}, nil, err
	}
	if p, err = carriedBy(p, f.keyHeader); err != nil {
		return oncehttp.Config{}, nil, err
	}
	f.used = p
	h, err := parseHeaders(f.headers)
	if err != nil {
		return oncehttp.Config{}, nil, err
	}
	if f.declines, err = parseDeclines(f.declinedTexts); err != nil {
		return oncehttp.Config{}, nil, err
	}
	f.retry.AskFirst = f.natural.askFirst
	switch {
	case f.retry.AskFirst && p.Reference == nil:
		return oncehttp.Config{}, nil, errors.New("--ask-first: there is nothing to ask; say --lookup, or give a profile that has a lookup by reference")
	case f.retry.AskFirst && len(p.Duplicate) == 0:
		return oncehttp.Config{}, nil, errors.New("--ask-first: what is found may be another's; say --already-done, or give a profile that says how a number that was used before is answered")
	}
	cfg := oncehttp.Config{Account: f.account, Profile: p, Retry: f.retry, Credential: f.pin.credential, Region: f.pin.region, KeyHonoured: f.honoured, BasePath: f.basePath}
	cfg.Logger = newCoverageLog(stderr)
	if cfg.Authorize, err = signer(f.signing, p); err != nil {
		return cfg, nil, err
	}
	if cfg.Transport, err = f.transport(); err != nil {
		return cfg, nil, err
	}
	if f.verbose {
		cfg.Observe = narrate(stderr)
	}
	if f.retry.MaxAttempts < 1 {
		return cfg, nil, errors.New("--max-attempts must be at least 1")
	}
	return cfg, h, nil
}

// transport trusts the certificates of --cacert; nil is the client's own.
func (f *clientFlags) transport() (http.RoundTripper, error) {
	if f.caFile == "" {
		return nil, nil
	}
	pem, err := readBounded(f.caFile, headerFileBytesMax)
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
	t.MaxIdleConnsPerHost = workersMax
	return t, nil
}

// narrate prints what is tried again, and why: one line for each attempt without
// a final answer and for each wait. No body, header or query string is in it.
func narrate(w io.Writer) func(context.Context, oncehttp.Event) {
	return func(_ context.Context, e oncehttp.Event) {
		switch {
		case e.Kind == oncehttp.EventAnswered && e.Err != nil:
			say(w, "%s: attempt %d: %s", e.Key, e.Attempt, causeWords(flagWords(e.Err.Error())))
		case e.Kind == oncehttp.EventAnswered && e.Status != 0:
			say(w, "%s: attempt %d: answered %d: %v", e.Key, e.Attempt, e.Status, e.Outcome)
		case e.Kind == oncehttp.EventWaiting:
			say(w, "%s: again in %v", e.Key, e.Wait.Round(time.Millisecond))
		}
	}
}

// session is a client and the journal under it.
type session struct {
	client  *oncehttp.Client
	journal persist.Journal
	place   place        // of the journal
	holder  *holder      // nil: readers are not served
	held    *heldJournal // the process that has the file; nil: the file is read

	showsUnread bool // what cannot be read is listed by what stands in clear
}

// openJournal opens the journal at a place, and holds it until it is closed. It makes a
// file if create is set; what a server keeps is made by journal migrate.
func openJournal(at place, create bool) (persist.Journal, error) {
	if !at.isFile() {
		return openServer(at)
	}
	if err := checkJournalPath(at.path, create); err != nil {
		return nil, err
	}
	return openBolt(at.path)
}

// openSession opens the journal and a client on it. It makes a file if create is set.
func openSession(at place, cfg oncehttp.Config, create bool) (*session, error) {
	j, err := openJournal(at, create)
	if err != nil {
		return nil, err
	}
	used, err := at.unsealed(j)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	ses, err := newSession(at, used, cfg)
	if err == nil {
		ses.holder = holdJournal(at, j, used) // readers unseal for themselves
	}
	return ses, err
}

// newSession makes the client on an open journal, which it closes where that fails. One that is not told where to send sends nothing.
func newSession(at place, j persist.Journal, cfg oncehttp.Config) (*session, error) {
	cfg.Journal = j
	if cfg.Origins == nil {
		cfg.Origins = []string{}
	}
	c, err := oncehttp.New(cfg)
	if err != nil {
		return nil, errors.Join(plain(err), j.Close())
	}
	return &session{client: c, journal: j, place: at}, nil
}

// openVisiting is a session that holds a journal file only for the length of each
// call. It makes the file if there is none. A server is shared anyway.
func openVisiting(at place, cfg oncehttp.Config) (*session, error) {
	if !at.isFile() {
		return openSession(at, cfg, false)
	}
	path := at.path
	if err := checkJournalPath(path, true); err != nil {
		return nil, err
	}
	first, err := bolt.Open(path, bolt.Options{LockWait: visitWait}) // what is wrong with it shows before anything is sent
	switch {
	case errors.Is(err, persist.ErrLocked):
		return nil, lockedError(path, err)
	case err != nil:
		return nil, journalError(path, err)
	}
	_, err = at.unsealed(first)
	if closing := first.Close(); err == nil && closing != nil {
		err = journalError(path, closing)
	}
	if err != nil {
		return nil, err
	}
	j, err := at.sealing(context.Background(), &visitJournal{path: path})
	if err != nil {
		return nil, err
	}
	cfg.Lease = visitLease
	return newSession(at, j, cfg)
}

// openReader opens the journal to read it: a file through the process that holds
// it, if one does, and a server's with no right but to read.
func openReader(at place) (*session, error) {
	at.looks = true
	if at.isFile() {
		if err := checkJournalPath(at.path, false); err != nil {
			return nil, err
		}
		if held := openHeld(at.path); held != nil {
			used, err := at.unsealed(held)
			if err != nil {
				return nil, err
			}
			return &session{journal: used, place: at, held: held}, nil
		}
	}
	j, err := openJournal(at, false)
	if err != nil {
		return nil, err
	}
	used, err := at.unsealed(j)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &session{journal: used, place: at, holder: holdJournal(at, j, used)}, nil
}

// openBolt opens the file. Where another process has it, the error says which.
func openBolt(path string) (persist.Journal, error) {
	j, err := bolt.Open(path, bolt.Options{})
	switch {
	case errors.Is(err, persist.ErrLocked):
		return nil, lockedError(path, err)
	case err != nil:
		return nil, journalError(path, err)
	}
	return j, nil
}

// checkJournalPath refuses what cannot be a journal before anything is created.
func checkJournalPath(path string, create bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		if dir, err := os.Stat(filepath.Dir(path)); err != nil || !dir.IsDir() {
			return journalError(path, errors.New("its folder is not there"))
		}
		return nil
	case err != nil:
		return journalError(path, pathless(err))
	case info.IsDir():
		return journalError(path, errors.New("is a directory"))
	case !info.Mode().IsRegular():
		return journalError(path, errors.New("is not a regular file"))
	}
	return nil
}

// journalError says in one line what is wrong with the journal of this name.
func journalError(path string, err error) error {
	text := err.Error()
	for _, prefix := range []string{"oncehttp: ", "persist/bolt: ", "migrate ", path + ": ", "persist/seal: ", "persist/postgres: ", "persist/mysql: ", "persist/redis: ", "persist: ", "wrong options: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if fault := serverFault(path, err); fault != "" {
		return &journalFault{saidError{text: "journal " + path + ": " + fault, err: err}}
	}
	if hasScheme.MatchString(path) && strings.HasPrefix(text, "journal ") {
		return &journalFault{saidError{text: text, err: err}} // a server's error names it
	}
	return &journalFault{saidError{text: "journal " + path + ": " + text, err: err}}
}

// saidError is an error in words of our own.
type saidError struct {
	text string
	err  error
}

func (e *saidError) Error() string { return e.text }
func (e *saidError) Unwrap() error { return e.err }

// plain says why the client refused a call before anything was sent, without
// the client's own preamble: here it goes without saying.
func plain(err error) error {
	var e *oncehttp.Error
	if errors.As(err, &e) && e.Cause != nil && errors.Is(err, oncehttp.ErrNoEffect) {
		return e.Cause
	}
	return err
}

// flush returns when everything that the client has learnt is durable.
func (s *session) flush(ctx context.Context) error {
	if err := s.client.Flush(context.WithoutCancel(ctx)); err != nil {
		return journalError(s.place.name, err)
	}
	return nil
}

// close stops answering other commands that read the journal, then closes the client and the journal. It is called once.
func (s *session) close() error {
	if s.holder != nil {
		s.holder.close()
	}
	var err error
	if s.client != nil {
		err = s.client.Close()
	}
	if err := errors.Join(err, s.journal.Close()); err != nil {
		return journalError(s.place.name, err)
	}
	return nil
}
