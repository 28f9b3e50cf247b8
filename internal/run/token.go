package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/internal/wire"
)

// This file holds the tokens of APIs handing out the key before the request. The record is durable under its
// own key first. Then the token is fetched, and written in one durable write with MaybeSent, the mark of an
// operation possibly sent. Then the operation is sent. So a lost answer to the request for a token, or a crash,
// costs a token and never an effect. A token never written was never sent, and a written one is never replaced
// once the operation may have been sent.

// tokens are the requests for the token of an operation, and the write of it. They are used only if the
// record's API hands out its keys.
type tokens struct {
	task     *task
	replies  *replies  // hear the answer with the token
	permit   *permit   // the limiter counts the request
	requests *requests // send it

	token string // the server's, fetched or kept from an earlier run; empty: none
}

// fetchToken asks the API, or Config.Token, for the token that the send needs, as the step FetchToken, and keeps it in memory. The drive hears whether there is one,
// and whether another try may help (TokenFetched). Each try counts as an attempt without a send. The step KeepToken writes the token into the journal.
func (k *tokens) fetchToken() {
	t := k.task
	if k.token != "" { // it had one when its limiter took long
		t.drive.TokenFetched(true, false, operation.Sent{Unsent: true})
		return
	}
	began := time.Now()
	token, again, asked, err := k.askForToken()
	if err == nil {
		k.token = token
		t.drive.TokenFetched(true, false, k.sentFor(asked))
		return
	}
	// A call that was given up asks for nothing more.
	t.drive.TokenFetched(false, again && t.call.Context().Err() == nil, k.sentFor(asked))
	k.withoutToken(began, err)
}

// sentFor returns the result of a request for a token, in the form for the drive, which decides about the run. asked is nil if there was none. The
// wait that the server asks for counts, its answer does not.
func (k *tokens) sentFor(asked *wire.Result) operation.Sent {
	if asked == nil {
		return operation.Sent{Unsent: true}
	}
	sent := k.replies.sent(heard{Result: *asked})
	sent.Answer = operation.Answer{} // it is none to the operation
	return sent
}

// withoutToken adds an attempt without a send to the record: no token was given. began is the begin of the request for it. err becomes the latest error of the
// run. The drive, which decides about the run, knows the result already.
func (k *tokens) withoutToken(began time.Time, err error) {
	latest := heard{Result: wire.Result{Err: fmt.Errorf("no token: %w", sanitized(err)), Unsent: true}}
	k.task.remember(began, latest.Result)
	k.replies.settle(latest)
}

// askForToken asks for a token, and returns it as spelled on the wire. After an error, again says whether
// another try may help; err then tells the reason. asked is the result of this client's request, already
// drained; nil if Config.Token was asked, or nothing. A token that fits into no request counts as an error: it
// must not be written.
func (k *tokens) askForToken() (token string, again bool, asked *wire.Result, err error) {
	t := k.task
	switch {
	// The limiter has refused before: no token is asked for in vain.
	case k.permit.refused != nil:
		return "", false, nil, k.permit.refused
	case t.prof.Token != nil && t.prof.Token.Path != "":
		token, again, asked, err = k.askByRecipe()
	default:
		token, again, err = k.askByConfig()
	}
	if err != nil {
		return "", again, asked, err
	}
	// By the rule for keys: the token is the key on the wire.
	token, err = request.SpellKey(t.prof, token)
	return token, false, asked, err
}

// askByConfig asks Config.Token, for an AnswerTimeout at most if the function heeds its context. Meanwhile another run may use this run's permission to send (turn).
// again: after an error of Config.Token another try may help; without the function none does.
func (k *tokens) askByConfig() (token string, again bool, err error) {
	t := k.task
	if t.cfg.Token == nil {
		return "", false, errors.New("the operation waits for a token of the server; set Config.Token, or use the profile under which it was begun")
	}
	ctx, cancel := context.WithTimeout(t.call.Context(), t.cfg.Retry.AnswerTimeout)
	defer cancel()
	err = k.permit.lending(func() error {
		token, err = t.cfg.Token(withAccountOf(ctx, &t.rec), t.rec.Clone())
		return err
	})
	return token, true, err
}

// askByRecipe makes the request for a token that the profile describes. It is no send of the operation, but has its credentials, and waits for the limiter like one.
// After an error, again says whether another try may help. asked is the result of the request, drained; nil if none was made.
func (k *tokens) askByRecipe() (token string, again bool, asked *wire.Result, err error) {
	t := k.task
	ask, target := request.TokenRequest(&t.rec, t.prof)
	if target == nil {
		return "", false, nil, errors.New("the request lacks a value that the profile's path for tokens needs")
	}
	if cause := sanitize.Cause(t.call.Context()); cause != nil {
		return "", false, nil, cause
	}
	// As for a lookup: it is no send of the operation.
	sender := k.requests.lookup(ask)
	sent := sender.Send(t.call.Context(), target)
	defer sent.Drain()
	_ = t.notice() // if the journal cannot be asked, nothing can be recorded either
	a := sent.Answer
	if a == nil {
		return "", !sent.Fatal, &sent, sent.Err
	}
	status := a.Head.StatusCode
	if token := request.Token(t.prof, status, a.Text, a.TextWhole); token != "" {
		return token, false, &sent, nil
	}
	return "", operation.IsTokenLater(status), &sent, fmt.Errorf("the server answered %d, without a token", status)
}

// keepToken does the step KeepToken: it writes the token and the mark MaybeSent, durably and at once. Only
// after this write may the operation be sent with the token. A failed write counts as an attempt without a
// token.
func (k *tokens) keepToken() {
	t := k.task
	if k.replies.failed = t.notice(); !t.drive.MayKeepToken(k.replies.failed == nil, t.engine.now()) {
		// The attempts are over: neither an answer nor an error of one counts.
		k.replies.settle(heard{})
		return
	}
	began, ctx := time.Now(), t.call.Values()
	err := t.engine.writer.change(ctx, &t.rec, func() error {
		rec := t.rec
		// One write for all three: a token without the mark could be sent, and be thrown away as unsent.
		rec.Token, rec.MaybeSent, rec.FirstSent = k.token, true, t.engine.holder.firstSent()
		rec.ExtendSendUntil(t.engine.writer.sendUntil())
		t.engine.holder.stamp(&rec) // it was renewed since this record was read
		updated, err := t.journal.Update(ctx, rec)
		if err == nil {
			t.rec = updated
		}
		return err
	})
	t.drive.Moved(t.op()) // the window counts from the first send of the record as it is now
	t.drive.TokenKept(err == nil)
	if err != nil {
		k.withoutToken(began, err)
	}
}
