package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
)

// This file holds the tokens of APIs handing out the key before the request. The record is durable under its own key first.
// Then the token is fetched, and written in one durable write with MaybeSent, the mark of an operation possibly sent. Then the
// operation is sent. So a lost answer to the request for a token, or a crash, costs a token and never an effect. A token
// never written was never sent, and a written one is never replaced once the operation may have been sent.

// fetchToken does the step FetchToken: it asks for a token, and keeps it in r.token only. A try in vain counts as
// an attempt without a send. Nothing is written: the step KeepToken does so.
func (r *run) fetchToken() {
	if r.token != "" { // it had one when its limiter took long
		r.drive.TokenFetched(true, false, operation.Sent{Unsent: true})
		return
	}
	began := time.Now()
	token, again, asked, err := askForToken(r)
	if err == nil {
		r.token = token
		r.drive.TokenFetched(true, false, r.sentFor(asked))
		return
	}
	r.drive.TokenFetched(false, again && r.call.Context().Err() == nil, r.sentFor(asked))
	r.withoutToken(began, err)
}

// sentFor returns the result of a request for a token; asked is nil if there was none.
func (r *run) sentFor(asked *wire.Result) operation.Sent {
	if asked == nil {
		return operation.Sent{Unsent: true}
	}
	sent := r.sent(heard{Result: *asked})
	sent.Answer = operation.Answer{} // it is none to the operation
	return sent
}

// withoutToken notes a missing token as an attempt without a send, and makes err the latest error of the run.
func (r *run) withoutToken(began time.Time, err error) {
	latest := heard{Result: wire.Result{Err: fmt.Errorf("no token: %w", sanitized(err)), Unsent: true}}
	r.remember(began, latest.Result)
	r.settle(latest)
}

// askForToken asks for a token, and returns it as spelled on the wire. After an error, again says whether another
// try may help; err then tells the reason. asked is the result of this client's request, already drained; nil if
// Config.Token was asked, or nothing.
func askForToken(r *run) (token string, again bool, asked *wire.Result, err error) {
	switch {
	case r.refused != nil:
		return "", false, nil, r.refused
	case r.prof.Token != nil && r.prof.Token.Path != "":
		token, again, asked, err = askByRecipe(r)
	default:
		token, again, err = askByConfig(r)
	}
	if err != nil {
		return "", again, asked, err
	}
	token, err = request.SpellKey(r.prof, token)
	return token, false, asked, err
}

// askByConfig asks Config.Token, for an AnswerTimeout at most if the function heeds its context. The turn to send
// is lent meanwhile.
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

// askByRecipe makes the request described by the profile. It is no send of the operation.
func askByRecipe(r *run) (token string, again bool, asked *wire.Result, err error) {
	ask, target := request.TokenRequest(&r.rec, r.prof)
	if target == nil {
		return "", false, nil, errors.New("the request lacks a value that the profile's path for tokens needs")
	}
	if cause := context.Cause(r.call.Context()); cause != nil {
		return "", false, nil, cause
	}
	sender := newSender(r.cfg, &lookups{r, ask})
	sent := sender.Send(r.call.Context(), target)
	defer sent.Drain()
	_ = r.clock.Notice(r.call.Values(), r.host) // if the journal cannot be asked, nothing can be recorded either
	a := sent.Answer
	if a == nil {
		return "", !sent.Fatal, &sent, sent.Err
	}
	status := a.Head.StatusCode
	if token := request.Token(r.prof, status, a.Text, a.TextWhole); token != "" {
		return token, false, &sent, nil
	}
	return "", operation.IsTokenLater(status), &sent, fmt.Errorf("the server answered %d, without a token", status)
}

// keepToken does the step KeepToken: it writes the token and the mark MaybeSent, durably and at once. Only after
// this write may the operation be sent with the token. A failed write counts as an attempt without a token.
func (r *run) keepToken() {
	if r.failed = r.clock.Notice(r.call.Values(), r.host); !r.drive.MayKeepToken(r.failed == nil, r.now()) {
		r.settle(heard{})
		return
	}
	began, ctx := time.Now(), r.call.Values()
	err := r.writer.change(ctx, &r.rec, func() error {
		rec := r.rec
		rec.Token, rec.MaybeSent, rec.FirstSent = r.token, true, r.holder.firstSent()
		rec.ExtendSendUntil(r.writer.sendUntil())
		r.holder.stamp(&rec) // it was renewed since this record was read
		updated, err := r.journal.Update(ctx, rec)
		if err == nil {
			r.rec = updated
		}
		return err
	})
	r.drive.Moved(r.op())
	r.drive.TokenKept(err == nil)
	if err != nil {
		r.withoutToken(began, err)
	}
}
