package send

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// explained adds to the error of a key that belongs to another request the names of what differs: the method, the server, the path or query, members of the
// body, or a header. It never adds their values. Any other error it returns unchanged, and so one whose record cannot be read or compared, and one after a
// send: the API gave it.
func explained(ctx context.Context, ses *session.Session, cfg oncehttp.Config, req *http.Request, err error) error {
	var e *oncehttp.Error
	if !errors.Is(err, oncehttp.ErrKeyReused) || !errors.As(err, &e) || e.Sends > 0 || ses.Journal == nil {
		return err
	}
	prepared, broken := prepare(cfg, req, e.Key)
	if broken != nil {
		return err
	}
	standing, broken := ses.Journal.Get(ctx, prepared.ID)
	if broken != nil || request.Same(&prepared, &standing) {
		return err
	}
	return fmt.Errorf("%w; what differs: %s", err, view.Differences(&prepared, &standing))
}

// prepare returns the record with which a send of the request would begin under this key. It is only compared with records of the journal: nothing is written or
// sent.
func prepare(cfg oncehttp.Config, req *http.Request, key oncehttp.Key) (persist.Record, error) {
	cfg.KeepFields = nil // they take no part in the comparison
	probe, err := session.OpenUnjournaled(cfg)
	if err != nil {
		return persist.Record{}, err
	}
	return probe.Client.Prepare(req, key)
}

// distrusts returns an error, and with --json prints a line, if the operation under the key may have been sent, by a profile that trusts the key, and the
// profile of this send says that no key protects it: then it is not sent again. nil means that the send goes on: as without --key (a new key has no operation
// yet), or with another request under the key, which the client refuses.
func (f *sendFlags) distrusts(ctx context.Context, ses *session.Session, cfg oncehttp.Config, req *http.Request, s terminal.Streams) error {
	if f.key == "" || ses.Journal == nil {
		return nil
	}
	prepared, err := prepare(cfg, req, oncehttp.Key(f.key))
	if err != nil || prepared.Protected {
		return nil // the client says it
	}
	standing, err := ses.Journal.Get(ctx, prepared.ID)
	if err != nil || !request.Same(&prepared, &standing) {
		return nil
	}
	why := session.Distrusts(&standing, &prepared, time.Now())
	if why == "" {
		return nil
	}
	l := session.Distrusted(&standing, why, ses.Place.Shell())
	if f.json {
		if _, err := s.Out.Write(l.Marshal()); err != nil {
			return err
		}
	}
	return &terminal.ExitError{Status: l.Exit, Err: fmt.Errorf("%q: %s", l.Key, l.Why())}
}

// lacksAccount refuses a send without --account whose key stands in the journal for the same request of a named account: that was forgotten, and the request would be
// sent once more. An empty --account that was said is meant.
func (f *sendFlags) lacksAccount(ctx context.Context, ses *session.Session, cfg oncehttp.Config, req *http.Request) error {
	if f.key == "" || f.Account != "" || f.accountSaid || ses.Journal == nil {
		return nil
	}
	prepared, err := prepare(cfg, req, oncehttp.Key(f.key))
	if err != nil {
		return nil // the client says it
	}
	for rec, err := range ses.Journal.List(ctx, persist.Query{AllAccounts: true, Key: f.key}) {
		if err != nil {
			return nil // so it does of this
		}
		// The same recipe (the rule for fingerprints) and fingerprint: the same request.
		if name := words.AccountName(rec.Account); name != "" && rec.Recipe == prepared.Recipe && bytes.Equal(rec.Fingerprint, prepared.Fingerprint) {
			return fmt.Errorf("%q was sent for the account %q; say --account %s, which goes on there, or --account '' if it is to be sent for the unnamed one, too; nothing was sent", f.key, name, words.ShellQuote(name))
		}
	}
	return nil
}
