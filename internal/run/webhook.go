package run

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/webhook"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file holds the webhook of a client: how it reads and changes the journal.

// eventJournal is the journal of a client in the form for the webhook: it finds the operation of an event, and takes the event's evidence.
type eventJournal struct{ c *Client }

// Testify stores an event's evidence for the operation of a record, durably. It settles the operation as happened, unless a call runs it: that call
// settles it at its end, or after a crash a Resume or Run does. seen is the record that the event means, and created the time of the event; zero if
// it has none. Errors: the journal's, ErrClosed.
func (j eventJournal) Testify(ctx context.Context, seen persist.Record, evidence persist.Evidence, created time.Time) (acts.Testimony, error) {
	ctx, leave, err := j.c.visit(ctx, "Webhook")
	if err != nil {
		return acts.TestifiesNothing, err
	}
	defer leave()
	// The run may be about to write its end: the evidence then meets it, and not the record before.
	if err := j.c.engine.recorded(ctx, func(id persist.ID) bool { return id == seen.ID }); err != nil {
		return acts.TestifiesNothing, err
	}
	if err := j.c.engine.clock.Sync(ctx, j.c.engine.host); err != nil {
		return acts.TestifiesNothing, err
	}
	// The API may hang up. The evidence is written all the same: it would only send the event again.
	ctx = context.WithoutCancel(ctx)
	evidence.At = j.c.engine.now().Round(0)
	rec, said, err := j.c.engine.witness.testify(ctx, seen, &evidence, created)
	switch {
	case err != nil:
		return said, err
	case said == acts.Contradicts:
		j.c.engine.witness.contradicted(ctx, &rec, &evidence)
		if rec.Erased {
			return said, j.holdNext(ctx, &rec, &evidence)
		}
	case said == acts.Testifies:
		j.applyEvidence(ctx, rec)
	}
	return said, nil
}

// applyEvidence settles an operation by its evidence, unless somebody runs it. No caller is told of the end (false). If that fails, a later Resume or Run does
// so: the evidence is durable.
func (j eventJournal) applyEvidence(ctx context.Context, rec persist.Record) {
	e := j.c.engine
	err := j.c.holding(ctx, "webhook", rec, func(_ callers, id persist.ID) error {
		now, err := e.journal.Get(ctx, id)
		if err != nil {
			return err
		}
		if op := operation.OpOf(&now, 0); !op.EndsByEvidence() || e.holder.leasedElsewhere(&now) {
			return nil
		}
		return e.witness.endByEvidence(ctx, &now, false)
	})
	if err != nil && !errors.Is(err, ErrInFlight) {
		e.cfg.log(ctx, slog.LevelWarn, "an operation could not be settled by its evidence yet", rec.Key, err)
	}
	// It may be due by its evidence, for whoever runs it.
	e.wakeAll()
}

// Unproved tells Config.Observe of an event of an API that changes no record: it proves nothing about any operation. why is the reason.
func (j eventJournal) Unproved(ctx context.Context, why error) {
	j.c.cfg.observe(ctx, &Event{Kind: EventUnproved, Err: why})
}

// Named returns the records of this client's accounts with a key on the wire, erased ones under this key, too. With an empty key it returns all of them.
func (j eventJournal) Named(ctx context.Context, key string) iter.Seq2[persist.Record, error] {
	return j.listed(ctx, persist.Query{Account: j.c.account(ctx), Key: key})
}

// ErasedKey returns the text in the place of a key on the wire in an erased record. Errors: the journal's.
func (j eventJournal) ErasedKey(ctx context.Context, key string) (string, error) {
	ctx, leave, err := j.c.visit(ctx, "Webhook")
	if err != nil {
		return "", err
	}
	defer leave()
	secret, err := j.c.engine.journal.Secret(ctx)
	if err != nil {
		return "", err
	}
	return persist.ErasedKey(secret, key), nil
}

// All returns the records of all accounts. An event of the API that names a reference instead of a key is compared with each of them.
func (j eventJournal) All(ctx context.Context) iter.Seq2[persist.Record, error] {
	return j.listed(ctx, persist.Query{AllAccounts: true})
}

// Has reports whether a record is of this client's accounts.
func (j eventJournal) Has(ctx context.Context, rec *persist.Record) bool {
	mine := persist.Query{Account: j.c.account(ctx)}
	return mine.Match(rec)
}

// listed yields the records that q selects, for the search for the operation of an event. A closed client yields one error.
func (j eventJournal) listed(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		ctx, leave, err := j.c.visit(ctx, "Webhook")
		if err != nil {
			yield(persist.Record{}, err)
			return
		}
		defer leave()
		j.c.engine.journal.List(ctx, q)(loopBody(j.c.visits, "Webhook", yield))
	}
}

// WebhookConfig has the fields of oncehttp.WebhookConfig, documented there.
type WebhookConfig struct {
	// Secrets are the keys of the signature. Any of them may have signed, so that they can be exchanged.
	Secrets [][]byte
	// URL is the address of the handler as the API knows it, for an API that signs it.
	URL string
	// Tolerance is the largest distance of a signed time from this machine's clock.
	Tolerance time.Duration
	// Profile says which events prove something; nil: Config.Profile.
	Profile *profile.Profile
	// Test: the operations are of the API's test environment. Events of the other one prove nothing.
	Test bool
	// Account is the merchant at the API, not Config.Account. An event of another one proves nothing.
	Account string
	// Origins are those of the operations; empty: all.
	Origins []string
	// References are business references beside those of the profile.
	References []profile.EventField
	// MaxBytes bounds the body of an event.
	MaxBytes int64
	// ReadTime bounds the reading of that body.
	ReadTime time.Duration
}

// Webhook implements oncehttp.Webhook. It returns a handler of the API's events. A zero Profile is that of the client.
func (c *Client) Webhook(w WebhookConfig) (http.Handler, error) {
	if cause := unusable(context.Background(), c); cause != nil {
		return nil, newError("webhook", nothing(""), cause, ErrConfig)
	}
	if w.Profile == nil {
		w.Profile = c.cfg.Profile
	}
	h, err := webhook.New(webhook.Config{
		Client: eventJournal{c}, Secrets: w.Secrets, URL: w.URL, Tolerance: w.Tolerance, Profile: w.Profile, Test: w.Test, Account: w.Account, Origins: w.Origins, References: w.References,
		BasePath: c.cfg.BasePath, MaxBytes: w.MaxBytes, ReadTime: w.ReadTime,
	})
	if err != nil {
		return nil, newError("webhook", nothing(""), err, ErrConfig)
	}
	return h, nil
}
