package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/webhook"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file holds the events of an API as evidence of the effects of operations: operation.Testimony decides.

// testifyTries bounds the looks of Testify at an operation changed by others meanwhile.
const testifyTries = 100

// errChanges is the error of a Testify about an operation changed by others all the time.
var errChanges = errors.New("the operation changes all the time")

// Testify stores an event's evidence for the operation of a record, durably, and settles the operation as happened if nobody runs it.
// Whoever runs it does so at its end, and a Resume or Run after a crash. seen is the record found to be meant by the event. Errors: the
// journal's, ErrClosed.
func (c *Client) Testify(ctx context.Context, seen persist.Record, evidence persist.Evidence) (operation.Testimony, error) {
	ctx, leave, err := c.visit(ctx, "Webhook")
	if err != nil {
		return operation.TestifiesNothing, err
	}
	defer leave()
	if err := c.engine.recorded(ctx, func(id persist.ID) bool { return id == seen.ID }); err != nil {
		return operation.TestifiesNothing, err
	}
	if err := c.engine.clock.Sync(ctx, c.engine.host); err != nil {
		return operation.TestifiesNothing, err
	}
	ctx = context.WithoutCancel(ctx)
	evidence.At = c.engine.now().Round(0)
	rec, said, err := c.engine.testify(ctx, seen, &evidence)
	switch {
	case err != nil:
		return said, err
	case said == operation.Contradicts:
		c.engine.contradicted(ctx, &rec, &evidence)
	case said == operation.Testifies:
		c.applyEvidence(ctx, rec)
	}
	return said, nil
}

// testify stores the evidence, if the operation can have it. A call under way with the operation keeps its lease.
func (e *engine) testify(ctx context.Context, seen persist.Record, evidence *persist.Evidence) (persist.Record, operation.Testimony, error) {
	for range testifyTries {
		rec, err := e.journal.Get(ctx, seen.ID)
		switch {
		case errors.Is(err, persist.ErrNotFound), err == nil && rec.Seq != seen.Seq:
			return rec, operation.TestifiesNothing, nil
		case err != nil:
			return rec, operation.TestifiesNothing, err
		}
		op := operation.OpOf(&rec, 0)
		said := op.Testimony()
		switch {
		case rec.Evidence != nil, said == operation.TestifiesNothing, said == operation.TestifiesAgain:
			return rec, said, nil
		case said == operation.Contradicts: // its end stays, and nobody begins it once more
			rec.Evidence = evidence
			if rec, err = e.journal.Amend(ctx, rec); errors.Is(err, persist.ErrStale) {
				continue
			}
			return rec, said, err
		}
		stored := op.WithEvidence()
		write(&rec, stored)
		rec.Evidence = evidence
		if !stored.Answered {
			rec.Answer = nil
		}
		e.leases.Keep(&rec)
		switch rec, err = e.journal.Update(ctx, rec); {
		case err == nil:
			e.testified(ctx, &rec)
			return rec, said, nil
		case !errors.Is(err, persist.ErrStale):
			return rec, operation.TestifiesNothing, err
		}
	}
	return seen, operation.TestifiesNothing, errChanges
}

// applyEvidence settles an operation by its evidence, unless somebody runs it. If that fails, a later Resume or Run does so: the evidence is
// durable.
func (c *Client) applyEvidence(ctx context.Context, rec persist.Record) {
	e := c.engine
	err := c.holding(ctx, "webhook", rec, func(_ callers, id persist.ID) error {
		now, err := e.journal.Get(ctx, id)
		if err != nil {
			return err
		}
		if op := operation.OpOf(&now, 0); !op.EndsByEvidence() || e.leasedElsewhere(&now) {
			return nil
		}
		return e.endByEvidence(ctx, &now, false)
	})
	if err != nil && !errors.Is(err, ErrInFlight) {
		e.cfg.log(ctx, slog.LevelWarn, "an operation could not be settled by its evidence yet", rec.Key, err)
	}
	e.wakeAll()
}

// provenBy returns the cause of an error for an act against the evidence of a record.
func provenBy(rec *persist.Record) error {
	return fmt.Errorf("an event of the API proves that it happened (%s %s); Resume settles it so", rec.Evidence.Type, rec.Evidence.Event)
}

// endByEvidence settles an operation as happened, durably. unreported: no caller is told of it now.
func (e *engine) endByEvidence(ctx context.Context, rec *persist.Record, told bool) error {
	return e.change(ctx, rec, func() error {
		before, now := *rec, e.now().Round(0)
		op := operation.OpOf(rec, 0)
		settled := op.Settled(persist.EffectHappened, 0)
		write(rec, settled)
		rec.Effect, rec.Finished, rec.Answer, rec.LeaseOwner = persist.EffectHappened, now, nil, ""
		rec.Unreported = rec.Generated && !told
		err := finishNow(ctx, e.cfg, before, *rec)
		if err != nil {
			*rec = before
		}
		return err
	})
}

// endProven ends a run, before its drive, by the evidence in its record.
func (x existing) endProven() *result {
	ctx := x.call.Values()
	if err := x.endByEvidence(ctx, &x.rec, !x.given.Pass); err != nil {
		return &result{err: journalError(x.name, &x.rec, err), unwritten: true}
	}
	if !x.given.Pass {
		return x.refuseSame(nil, ErrSettled, ErrAnswerGone)
	}
	a := &answer{result: x.resultWith(OutcomeConfirmed, SourceJournal)}
	a.result.Effect = persist.EffectHappened
	if x.heard() {
		event := x.event(EventFinished)
		event.Outcome, event.Rule = a.result.Outcome, ruleOfEvidence
		x.tell(event)
	}
	return &result{answer: a}
}

// testified tells of evidence stored in a record.
func (e *engine) testified(ctx context.Context, rec *persist.Record) {
	event := eventOf(EventWitnessed, rec, e.shared.calls.Number(), e.cfg.stopwatch())
	event.Rule = ruleOfEvidence
	e.cfg.observe(ctx, event)
	e.cfg.log(ctx, slog.LevelInfo, "an event of the API proves that the operation happened", rec.Key, nil)
}

// contradicted tells of an event that contradicts the end of an operation. The record does not change.
func (e *engine) contradicted(ctx context.Context, rec *persist.Record, evidence *persist.Evidence) {
	event := eventOf(EventContradicted, rec, e.shared.calls.Number(), e.cfg.stopwatch())
	event.Rule = ruleOfEvidence
	event.Err = fmt.Errorf("the event %q of type %q says that it happened, and its record is %v", evidence.Event, evidence.Type, rec.State)
	e.cfg.observe(ctx, event)
	e.cfg.log(ctx, slog.LevelError, "an event of the API contradicts the end of the operation", rec.Key, event.Err)
}

// Unproved tells of an event of an API without an effect; why is the reason.
func (c *Client) Unproved(ctx context.Context, why error) {
	c.cfg.observe(ctx, &Event{Kind: EventUnproved, Err: why})
}

// Named returns the records of this client's accounts with a key on the wire. With an empty key it returns all of them.
func (c *Client) Named(ctx context.Context, key string) iter.Seq2[persist.Record, error] {
	return c.listed(ctx, persist.Query{Account: c.account(ctx), Key: key})
}

// All returns the records of all accounts.
func (c *Client) All(ctx context.Context) iter.Seq2[persist.Record, error] {
	return c.listed(ctx, persist.Query{AllAccounts: true})
}

// Has reports whether a record is of this client's accounts.
func (c *Client) Has(ctx context.Context, rec *persist.Record) bool {
	mine := persist.Query{Account: c.account(ctx)}
	return mine.Match(rec)
}

// listed lists records for an event.
func (c *Client) listed(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		ctx, leave, err := c.visit(ctx, "Webhook")
		if err != nil {
			yield(persist.Record{}, err)
			return
		}
		defer leave()
		c.cfg.Journal.List(ctx, q)(loopBody(c.visits, "Webhook", yield))
	}
}

// WebhookConfig has the fields of oncehttp.WebhookConfig, documented there.
type WebhookConfig struct {
	Secrets    [][]byte
	URL        string
	Tolerance  time.Duration
	Profile    *profile.Profile
	Test       bool
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
		Client: c, Secrets: w.Secrets, URL: w.URL, Tolerance: w.Tolerance, Profile: w.Profile, Test: w.Test, Origins: w.Origins, References: w.References,
		BasePath: c.cfg.BasePath, MaxBytes: w.MaxBytes, ReadTime: w.ReadTime,
	})
	if err != nil {
		return nil, newError("webhook", nothing(""), err, ErrConfig)
	}
	return h, nil
}
