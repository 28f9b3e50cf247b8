package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/profile"
)

// clientFlags are the flags of every command that sends.
type clientFlags struct {
	journal string
	account string
	profile string
	headers []string
	retry   oncehttp.Policy
}

func (f *clientFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.account, "account", "", "whose account this is; part of what a key names (default: the unnamed one)")
	fs.StringVar(&f.profile, "profile", profile.Draft07().Name, "how the API does idempotency: "+strings.Join(profile.Names(), ", "))
	f.bindSending(fs)
}

// bindSending binds what also goes for operations whose account and profile are
// on record.
func (f *clientFlags) bindSending(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "'Name: value', or @FILE with one a line; may be repeated")
	fs.IntVar(&f.retry.MaxAttempts, "max-attempts", 6, "attempts for one operation in one run")
	fs.DurationVar(&f.retry.MaxElapsed, "max-elapsed", 0, "time from the first attempt to the start of the last (default 2m)")
	fs.DurationVar(&f.retry.AttemptTimeout, "attempt-timeout", 0, "wait for an answer (default 30s)")
	fs.DurationVar(&f.retry.MinDelay, "min-delay", 0, "bound of the first random wait between two attempts (default 500ms)")
	fs.DurationVar(&f.retry.MaxDelay, "max-delay", 0, "bound of all such waits (default 30s)")
	fs.DurationVar(&f.retry.MaxRetryAfter, "max-retry-after", 0, "longest Retry-After that is waited for (default 1m)")
}

// config checks the flags, without touching any file but those of headers.
func (f *clientFlags) config() (oncehttp.Config, http.Header, error) {
	p, err := findProfile(f.profile)
	if err != nil {
		return oncehttp.Config{}, nil, err
	}
	h, err := parseHeaders(f.headers)
	if err != nil {
		return oncehttp.Config{}, nil, err
	}
	cfg := oncehttp.Config{Account: f.account, Profile: p, Retry: f.retry}
	if f.retry.MaxAttempts < 1 {
		return cfg, nil, errors.New("--max-attempts must be at least 1")
	}
	return cfg, h, nil
}

func findProfile(name string) (*profile.Profile, error) {
	p, ok := profile.ByName(name)
	if !ok {
		return nil, fmt.Errorf("--profile %q is not known; one of %s", name, strings.Join(profile.Names(), ", "))
	}
	return p, nil
}

// session is a client and the journal under it.
type session struct {
	client  *oncehttp.Client
	journal persist.Journal
	path    string
}

// openSession opens the journal file at path, and makes it if create is set.
func openSession(path string, cfg oncehttp.Config, create bool) (*session, error) {
	if err := checkJournalPath(path, create); err != nil {
		return nil, err
	}
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return nil, journalError(path, err)
	}
	cfg.Journal = j
	c, err := oncehttp.New(cfg)
	if err != nil {
		return nil, errors.Join(plain(err), j.Close())
	}
	return &session{client: c, journal: j, path: path}, nil
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

// journalError says in one line what is wrong with the journal at path.
func journalError(path string, err error) error {
	text := err.Error()
	for _, prefix := range []string{"oncehttp: ", "persist/bolt: ", path + ": ", "persist: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return &saidError{text: "journal " + path + ": " + text, err: err}
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
	f, ok := s.journal.(persist.Flusher)
	if !ok {
		return nil // Finish is durable on return
	}
	if err := f.Flush(context.WithoutCancel(ctx)); err != nil {
		return journalError(s.path, err)
	}
	return nil
}

func (s *session) close() error {
	if err := errors.Join(s.client.Close(), s.journal.Close()); err != nil {
		return journalError(s.path, err)
	}
	return nil
}

// parseTarget checks the URL of an operation. Its errors repeat nothing of it,
// because a password or a token may stand in it.
func parseTarget(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	var ue *url.Error
	switch {
	case errors.As(err, &ue):
		return nil, fmt.Errorf("the URL is not one: %w", ue.Err)
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL must start with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the URL names no host")
	case u.Fragment != "":
		return nil, errors.New("the URL has a #fragment, which is never sent")
	}
	return u, nil
}

// checkMethod refuses what is no method, or one in another case than meant.
func checkMethod(method string) error {
	switch {
	case !isToken(method):
		return fmt.Errorf("%q is not an HTTP method", clip(method))
	case method != strings.ToUpper(method):
		return fmt.Errorf("method %q: methods are case-sensitive; %s is meant?", method, strings.ToUpper(method))
	case method == http.MethodConnect:
		return errors.New("CONNECT cannot be journaled")
	}
	return nil
}

var errTooLong = errors.New("is too long")

// readAtMost reads r whole, unless it is longer than limit.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%w: more than %d bytes", errTooLong, limit)
	}
	return b, err
}
