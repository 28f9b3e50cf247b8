package run

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/webhook"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file holds the webhook of a client: how it reads and changes the journal.

// eventJournal is the journal of a client in the form for the webhook: it finds the operation of an event, and takes the event's evidence.
type eventJournal struct{ c *Client }

// Testify stores an event's evidence for the operation of a record, durably, and settles the operation as happened if nobody runs it.
// Whoever runs it does so at its end, and a Resume or Run after a crash. seen is the record found to be meant by the event, and created the time of
// that; zero: it has none. Errors: the journal's, ErrClosed.
func (j eventJournal) Testify(ctx context.Context, seen persist.Record, evidence persist.Evidence, created time.Time) (operation.Testimony, error) {
	ctx, leave, err := j.c.visit(ctx, "Webhook")
	if err != nil {
		return operation.TestifiesNothing, err
	}
	defer leave()
	if err := j.c.engine.recorded(ctx, func(id persist.ID) bool { return id == seen.ID }); err != nil {
		return operation.TestifiesNothing, err
	}
	if err := j.c.engine.clock.Sync(ctx, j.c.engine.host); err != nil {
		return operation.TestifiesNothing, err
	}
	ctx = context.WithoutCancel(ctx)
	evidence.At = j.c.engine.now().Round(0)
	rec, said, err := j.c.engine.witness.testify(ctx, seen, &evidence, created)
	switch {
	case err != nil:
		return said, err
	case said == operation.Contradicts:
		j.c.engine.witness.contradicted(ctx, &rec, &evidence)
	case said == operation.Testifies:
		j.applyEvidence(ctx, rec)
	}
	return said, nil
}

// applyEvidence settles an operation by its evidence, unless somebody runs it. If that fails, a later Resume or Run does so: the evidence is
// durable.
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
	e.wakeAll()
}

// Unproved tells of an event of an API without an effect; why is the reason.
func (j eventJournal) Unproved(ctx context.Context, why error) {
	j.c.cfg.observe(ctx, &Event{Kind: EventUnproved, Err: why})
}

// Named returns the records of this client's accounts with a key on the wire. With an empty key it returns all of them.
func (j eventJournal) Named(ctx context.Context, key string) iter.Seq2[persist.Record, error] {
	return j.listed(ctx, persist.Query{Account: j.c.account(ctx), Key: key})
}

// All returns the records of all accounts.
func (j eventJournal) All(ctx context.Context) iter.Seq2[persist.Record, error] {
	return j.listed(ctx, persist.Query{AllAccounts: true})
}

// Has reports whether a record is of this client's accounts.
func (j eventJournal) Has(ctx context.Context, rec *persist.Record) bool {
	mine := persist.Query{Account: j.c.account(ctx)}
	return mine.Match(rec)
}

// listed lists records for an event.
func (j eventJournal) listed(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		ctx, leave, err := j.c.visit(ctx, "Webhook")
		if err != nil {
			yield(persist.Record{}, err)
			return
		}
		defer leave()
		j.c.cfg.Journal.List(ctx, q)(loopBody(j.c.visits, "Webhook", yield))
	}
}

// WebhookConfig has the fields of oncehttp.WebhookConfig, documented there.
type WebhookConfig struct {
	Secrets    [][]byte
	URL        string
	Tolerance  time.Duration
	Profile    *profile.Profile
	Test       bool
	Account    string
	Origins    []string
	References []profile.EventField
	MaxBytes   int64
	ReadTime   time.Duration
}

// Webhook is oncehttp.Webhook.
func (c *Client) Webhook(w WebhookConfig) (http.Handler, error) {
	if cause := c.unusable(context.Background()); cause != nil {
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
