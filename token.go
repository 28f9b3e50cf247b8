package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the tokens of APIs that hand out the key before the request. The record is durable under its own key
// first; then the token is fetched and written, with the mark that the operation may have been sent, in one durable write;
// then it is sent. So a lost answer to the request for a token, or a crash, costs a token and never an effect: a token
// that was never written was never sent, and one that was written is never replaced once the operation may have been sent.

// wantsToken reports whether the record's operation needs a token before it may be sent: it has none, or was provably
// never sent, and the one that it has may be too old.
func wantsToken(rec *persist.Record) bool {
	return rec.ServerToken && !rec.MaybeSent && (rec.Token == "" || rec.Sends == 0)
}

// haveToken sees to it that an operation that needs a token has one, durably. It reports whether the operation may be sent
// with it. If not, it has set the verdict, and the try counts as an attempt that was not sent.
func haveToken(r *run) bool {
	if !wantsToken(&r.rec) {
		return true
	}
	if r.clock.notice(r.call.Values(), r.cfg) == nil && expiredBeforeSend(&r.rec, r.now()) {
		r.stop = errMaxAge
		r.skipAttempt(expired())
		return false
	}
	began := time.Now()
	token, again, err := askForToken(r)
	if err == nil {
		again, err = false, keepToken(r, token)
	}
	if err == nil {
		return true
	}
	err = fmt.Errorf("no token: %w", sanitized(err))
	r.attempts++
	r.remember(began, wire.Result{Err: err, Unsent: true})
	r.skipAttempt(verdict{outcome: OutcomeNotSent, again: again && r.call.Context().Err() == nil})
	r.last = wire.Result{Err: err, Unsent: true}
	return false
}

// askForToken asks for a token, as it is spelled on the wire. again says that it may help to ask once more.
func askForToken(r *run) (token string, again bool, err error) {
	r.hint = 0
	if r.refused != nil {
		return "", false, r.refused
	}
	if r.prof.Token != nil && r.prof.Token.Path != "" {
		token, again, err = askByRecipe(r)
	} else {
		token, again, err = askByConfig(r)
	}
	if err != nil {
		return "", again, err
	}
	token, err = request.SpellKey(r.prof, token)
	return token, false, err
}

// askByConfig asks Config.Token.
func askByConfig(r *run) (token string, again bool, err error) {
	if r.cfg.Token == nil {
		return "", false, errors.New("the operation waits for a token of the server; set Config.Token, or use the profile under which it was begun")
	}
	ctx, cancel := context.WithTimeout(r.call.Context(), r.cfg.Retry.AnswerTimeout)
	defer cancel()
	err = r.lending(func() error {
		token, err = r.cfg.Token(withAccountOf(ctx, &r.rec), r.rec.Clone())
		return err
	})
	return token, true, err
}

// askByRecipe makes the request that the profile describes. It is no send of the operation.
func askByRecipe(r *run) (token string, again bool, err error) {
	ask, target := request.TokenRequest(&r.rec, r.prof)
	if target == nil {
		return "", false, errors.New("the request lacks a value that the profile's path for tokens needs")
	}
	if cause := context.Cause(r.call.Context()); cause != nil {
		return "", false, cause
	}
	sender := newSender(r.cfg, &lookups{r, ask})
	sent := sender.Send(r.call.Context(), target)
	defer sent.Drain()
	_ = r.clock.notice(r.call.Values(), r.cfg) // where the journal cannot be asked, nothing can be recorded either
	r.noteOrigin(sent)
	a := sent.Answer
	if a == nil {
		return "", !sent.Fatal && r.stop == nil, sent.Err
	}
	r.hint = classify.Wait(r.prof.RetryAfter, seen(a), r.now())
	status := a.Head.StatusCode
	if token := request.Token(r.prof, status, a.Text, a.TextWhole); token != "" {
		return token, false, nil
	}
	again = status >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests}, status)
	return "", again, fmt.Errorf("the server answered %d, without a token", status)
}

// keepToken writes the token and the mark that the operation may have been sent, durably and at once.
func keepToken(r *run, token string) error {
	ctx := r.call.Values()
	return r.change(ctx, &r.rec, func() error {
		rec := r.rec
		rec.Token, rec.MaybeSent, rec.FirstSent = token, true, r.firstSent()
		rec.ExtendSendUntil(r.sendUntil())
		r.leases.stamp(&rec) // it was renewed since this record was read
		updated, err := r.journal.Update(ctx, rec)
		if err == nil {
			r.rec = updated
		}
		return err
	})
}
