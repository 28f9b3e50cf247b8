package run

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the pause of a Run after an answer that refuses the credentials of Config.Authorize: else a
// revoked token would cost each operation of the queue its attempts.

// errCredentialsRefused is the error of an operation left unsent by a Run.
var errCredentialsRefused = errors.New("the API has just refused these credentials (401 or 407) to another operation; " +
	"one operation at a time tries them again, after a growing pause, and the others wait")

// refusedCredentials remembers the credentials refused by an API, by digests under a secret of this process. The
// zero value remembers none. It is safe for concurrent use.
type refusedCredentials struct {
	known.Origins // by origin and digest

	once   sync.Once // makes the secret
	secret []byte    // of this process; the digests are never recorded
}

// name returns the name under which refused credentials of a request to the origin are remembered. Of a signature the id of its key counts, since the
// rest changes.
func (c *refusedCredentials) name(t *task, req *http.Request) string {
	c.once.Do(func() { c.secret = []byte(rand.Text()) })
	name := t.rec.Origin
	for _, credential := range credentialsOf(t, req, c.secret) {
		name += "\x00" + credential.Name + "\x00" + credential.Digest
	}
	return name
}

// credentialsOf returns the digests of the credentials of a request, under a secret. It may ask Config.KeepHeader.
func credentialsOf(t *task, req *http.Request, secret []byte) (digests []persist.Credential) {
	_ = t.visiting(func() error {
		reader := request.Reader{Secrets: t.cfg.reader.Secrets}
		// Without facts of a call (Given): only the owner of the request is read here, by its credentials.
		named := reader.Named(req, t.prof, request.Given{})
		digests = named.Owner.Credentials(secret)
		return nil
	})
	return digests
}

// sameCredentials reports whether two requests of the operation have the same credentials. Only digests under a
// new secret are compared.
func sameCredentials(t *task, a, b *http.Request) bool {
	secret := []byte(rand.Text())
	return slices.Equal(credentialsOf(t, a, secret), credentialsOf(t, b, secret))
}

// heldBack returns errCredentialsRefused if the run waits, since the API has refused the credentials of its request to another operation. Only credentials of
// Config.Authorize count (signed), at the first send of an attempt (begun is zero), of an operation that waits for others (a Run's). all.None: no credentials
// are in a pause. After nil the request must be sent: in a pause, this run tries them. The request of a redirect is part of such a try.
func (r *requests) heldBack(req *http.Request) error {
	t := r.task
	all := &t.engine.refused
	if r.signed == nil || r.begun > 0 || !t.given.HeedsRefusals() || all.None() {
		return nil
	}
	if !all.Try(all.name(t, req), t.rec.ID, t.engine.now(), t.cfg.Retry.AttemptTimeout) {
		return errCredentialsRefused
	}
	return nil
}

// noteCredentials notes whether the API has taken or refused the credentials that Config.Authorize gave the latest send (signed): after a refusal, other
// operations of a Run with the same ones wait.
func (r *requests) noteCredentials(sent *wire.Result) {
	t := r.task
	all := &t.engine.refused
	if r.signed == nil || sent.Answer == nil {
		return
	}
	refused := operation.RefusesCredentials(sent.Answer.Head.StatusCode)
	// No credentials are in a pause, so that there is none to end.
	if !refused && all.None() {
		return
	}
	name := all.name(t, r.signed)
	if refused {
		all.Failed(name, t.engine.now(), t.cfg.Retry.MinDelay, t.cfg.Retry.MaxPause)
		return
	}
	if all.Reached(name) {
		t.engine.wake()
	}
}
