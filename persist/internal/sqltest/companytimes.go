package sqltest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// The clock of these journals is the server's. So records stand there with times in the past.

// began returns a function that writes the first client's operation into the journal as if it was begun and sent this long ago. change, unless it is nil,
// adjusts the record first.
func began(ago time.Duration, change func(*persist.Record)) func(*company) error {
	return func(c *company) error {
		_, err := c.write(ago, change)
		return err
	}
}

// write writes the operation of the first client into the journal, as if it was begun and sent this long ago, and returns the record. change, unless it is
// nil, adjusts the record first. It is an error if the operation has a record already.
func (c *company) write(ago time.Duration, change func(*persist.Record)) (persist.Record, error) {
	rec, err := c.one.Prepare(c.request(), "k")
	if err != nil {
		return rec, err
	}
	at := time.Now().Add(-ago).Round(0)
	rec.Created, rec.MaybeSent, rec.FirstSent, rec.SendUntil, rec.SendBefore = at, true, at, at.Add(time.Minute), time.Time{}
	rec.Enqueued = false
	if change != nil {
		change(&rec)
	}
	standing, created, err := c.journal.Begin(c.Context(), rec)
	if err == nil && !created {
		err = errors.New("something stands there")
	}
	return standing, err
}

// endedAgo returns a function that writes an operation of the first client with a success. It began this long ago, and ended a second later.
func endedAgo(ago time.Duration) func(*company) error {
	return func(c *company) error {
		rec, err := c.write(ago, nil)
		if err != nil {
			return err
		}
		rec.State, rec.Finished, rec.Attempts, rec.Sends, rec.Effect = persist.StateConfirmed, rec.Created.Add(time.Second), 1, 1, persist.EffectHappened
		rec.Answer = &persist.Answer{Status: http.StatusCreated, Body: []byte(`{"done":1}`), Stored: true, At: rec.Finished}
		return errors.Join(c.journal.Finish(c.Context(), rec), c.journal.Flush(c.Context()))
	}
}

// sweptByOther lets the other client sweep, and then the first one repeat its call: the first client's times of keeping decide whether the answer is still
// there.
func sweptByOther(c *company) error {
	if _, err := c.other.Sweep(c.Context()); err != nil {
		c.Error(err)
	}
	return doOne(c)
}

// keeping returns a change of a Config: for how long the client keeps answers and keys. Zero is the default, and a negative time means "not at all".
func keeping(answer, key time.Duration) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.KeepAnswer, cfg.KeepKey = answer, key }
}

// window returns a change of a Config: the client's API is the shop, and remembers keys for w.
func window(w time.Duration) func(*oncehttp.Config) {
	return ofShop(func(p *profile.Profile) { p.Window.Floor = w })
}

// hours returns n hours.
func hours(n float64) time.Duration { return time.Duration(n * float64(time.Hour)) }

// companyOfKeeping returns tests of two clients on one journal with different times for keeping answers and keys, and different pauses: the times of the
// first client, which are in the record, must count. In each row, one and other change the two Configs, statuses are the API's answers, begin and act are
// the two steps, want are the errors of act (none: success), and sends counts the requests at the API.
func companyOfKeeping() []companions {
	created := []int{http.StatusCreated}
	return []companions{
		{
			name: "an answer that the other would drop", one: keeping(hours(24), 0), other: keeping(-1, 0), statuses: created,
			begin: endedAgo(hours(2)), act: sweptByOther,
		},
		{
			name: "an answer that the other would keep", one: keeping(hours(1), 0), other: keeping(hours(1000), 0), statuses: created,
			begin: endedAgo(hours(2)), act: sweptByOther, want: []error{oncehttp.ErrFinal, oncehttp.ErrAnswerGone},
		},
		{
			name: "a key that the other would forget", one: keeping(hours(1), 0), other: keeping(hours(24), -1), statuses: created,
			begin: endedAgo(hours(48)), act: sweptByOther, want: []error{oncehttp.ErrFinal, oncehttp.ErrAnswerGone},
		},
		{
			name: "a key that the other would keep", one: keeping(hours(24), -1), other: keeping(hours(1000), 0), statuses: created,
			begin: endedAgo(hours(48)), act: sweptByOther, sends: 1,
		},
		{
			name: "pauses of the one", one: pausing(time.Second), other: pausing(hours(8)), statuses: []int{http.StatusServiceUnavailable},
			begin: enqueueOne, act: triedInVain(2 * time.Second), sends: 1,
		},
		{
			name: "pauses of the one, longer", one: pausing(hours(8)), other: pausing(time.Second), statuses: []int{http.StatusServiceUnavailable},
			begin: enqueueOne, act: triedInVain(hours(8)), sends: 1,
		},
	}
}

// companyOfTimes returns tests of two clients on one journal with different windows (the time for which the API knows a key; the shorter of the record's and
// the client's own counts, and an operation beyond it is held), and tests of a send that is in progress or too late. In each row, one and other change the two
// Configs, statuses are the API's answers, begin and act are the two steps, want are the errors of act (none: success), sends counts the requests at the API,
// and hold is the reason of a hold at the end.
func companyOfTimes() []companions {
	unknown := []error{oncehttp.ErrOutcomeUnknown}
	held := append(unknown, oncehttp.ErrHeld)
	created := []int{http.StatusCreated}
	return []companions{
		{
			name: "a window that the other has shorter", one: window(hours(24)), other: window(hours(1)), statuses: created,
			begin: began(hours(2), nil), act: doOther, want: held, hold: persist.HoldExpired,
		},
		{
			name: "a window that the record has shorter", one: window(hours(1)), other: window(hours(24)), statuses: created,
			begin: began(hours(2), nil), act: doOther, want: held, hold: persist.HoldExpired,
		},
		{
			name: "a window that is open for one alone", one: window(hours(1)), statuses: created, begin: began(hours(2.0/3), nil), sends: 1,
			other: func(cfg *oncehttp.Config) {
				window(hours(1))(cfg)
				cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = hours(0.5), hours(1)
			},
			act: func(c *company) error {
				if err := doOther(c); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrHeld) {
					c.Errorf("the other: %v, want it left pending", err)
				}
				return doOne(c)
			},
		},
		{
			name: "a send that may be on its way", one: found, statuses: created, begin: began(hours(1), func(rec *persist.Record) {
				rec.SendUntil = time.Now().Add(hours(1)).Round(0)
			}),
			other: func(cfg *oncehttp.Config) {
				found(cfg)
				cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = time.Second, time.Second
			},
			act: rekeyed, want: unknown, hold: persist.HoldRekey,
		},
		{
			name: "what was not sent in time", other: func(cfg *oncehttp.Config) { cfg.EnqueueMaxAge = hours(1000) }, statuses: created,
			begin: began(hours(2), func(rec *persist.Record) {
				rec.MaybeSent, rec.FirstSent, rec.SendUntil, rec.SendBefore = false, time.Time{}, time.Time{}, time.Now().Add(-hours(1)).Round(0)
				rec.Enqueued = true
			}),
			act: func(c *company) error { return resumed(c.Context(), c.other) }, want: []error{oncehttp.ErrHeld}, hold: persist.HoldExpired,
		},
	}
}

// pausing returns a change of a client's settings: its pauses between two tries of an operation are d at most (MinDelay, the least, is a millisecond).
func pausing(d time.Duration) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Retry.MaxDelay, cfg.Retry.MaxPause, cfg.Retry.MinDelay = d, d, time.Millisecond
	}
}

// triedInVain lets the other client try the operation once, without success. It must be due again after this pause, of which up to a half is random. Only for a
// long pause can the test tell whether it is too short.
func triedInVain(pause time.Duration) func(*company) error {
	return func(c *company) error {
		if err := resumed(c.Context(), c.other); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			c.Errorf("%v", err)
		}
		rec, err := c.one.Lookup(c.Context(), "k")
		if wait := time.Until(rec.NextAttempt); err != nil || wait > pause+time.Second || pause > time.Minute && wait < pause/2 {
			c.Errorf("due after %v (%v), want %v", wait, err, pause)
		}
		return nil
	}
}

// found changes a Config: the client's API is the shop, with a lookup by reference (a field of the order) that finds each effect within a minute after the
// send.
func found(cfg *oncehttp.Config) {
	ofShop(func(p *profile.Profile) {
		p.Reference = &profile.Reference{
			Path: "/find?ref={/order}", List: "/data", Same: []profile.Same{{Request: "/order", Resource: "/reference"}}, FoundWithin: time.Minute,
		}
	})(cfg)
}

// rekeyed lets the other client begin the operation anew under another key, as it sees it, and give up soon. It must not ask the API before the last send of
// the first client can be over (SendUntil), and its effect can be found (a minute later).
func rekeyed(c *company) error {
	ctx, cancel := context.WithTimeout(c.Context(), 300*time.Millisecond)
	defer cancel()
	seen, err := c.other.Lookup(ctx, "k")
	if err != nil {
		return err
	}
	err = c.other.Rekey(ctx, "k", "k2", "nothing was found", oncehttp.AsSeen(seen))
	if now, lost := c.one.Lookup(c.Context(), "k"); lost != nil || now.NextAttempt.Before(seen.SendUntil.Add(time.Minute)) {
		c.Errorf("the lookup may be asked at %v (%v), and a send may be on its way until %v", now.NextAttempt, lost, seen.SendUntil)
	}
	return err
}
