package run

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/alike"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/place"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// admission stops a call before it begins an operation: another operation stands in its way, or the client lacks credentials. It is safe for
// concurrent use.
type admission struct {
	cfg      *Config
	journal  persist.Journal
	holder   *holder           // tells which operations another process has
	places   place.Places      // tells where an operation stands among scoped accounts
	alike    *alike.Lookalikes // finds identical requests without a key
	unbegun  *unbegun          // makes the error of a call that begins nothing
	refusals *refusals         // makes the error about another's record
}

// checkOthers checks a call before it begins an operation. It returns an error if another operation may be the same business: one under no account, one with a key
// spelled alike on the wire, or an earlier try under a lower generation of the key.
func (b *admission) checkOthers(ctx context.Context, name string, op *preparedRequest) error {
	if err := b.checkUnassigned(ctx, name, op); err != nil {
		return err
	}
	if err := b.checkWire(ctx, name, op); err != nil {
		return err
	}
	return b.checkPredecessors(ctx, name, op)
}

// stands reports whether the journal has a record of the operation. A call that finds one goes on with it and begins nothing, so it need not look for
// other operations that forbid a begin. op.stood keeps a true answer for the later steps.
func (b *admission) stands(ctx context.Context, op *preparedRequest) bool {
	stands := standsIn(ctx, b.unbegun.journal, op.rec.ID)
	op.stood = op.stood || stands
	return stands
}

// checkUnassigned returns an error for a call with an account while an operation of its key stands under no account: a person must assign that one first
// (Client.Assign), since it may be the same. It returns nil if there is none, or if the account has an operation of the key, too: then nothing is begun. (Invariant
// 64.)
func (b *admission) checkUnassigned(ctx context.Context, name string, op *preparedRequest) error {
	id, found, err := b.unbegun.standsUnassigned(ctx, &op.named)
	if err == nil && !found {
		return nil
	}
	// The error must say as much to a caller that has left by now.
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return b.unbegun.errorOfPlace(ctx, name, op, err)
	}
	if b.stands(ctx, op) {
		return nil
	}
	return b.refusals.strangerError(ctx, name, id, b.refusals.unassignedCause(ctx, id, op.rec.Account))
}

// checkWire stops a call before it begins an operation under a key spelled, for the API, like the key of another one of the account and origin. A key with quotes,
// sent as it is, is on the wire a key without them, sent in quotes. Both may be the same business, so nothing is said of an effect. A call with a record of its own
// operation goes on with that, and is not stopped. Of two calls at once both may begin: keyTaken stops them before their first send.
func (b *admission) checkWire(ctx context.Context, name string, op *preparedRequest) error {
	// Nobody else can have this key, however it is spelled.
	if callKey(b.cfg, &op.named).Random {
		return nil
	}
	// One that is spelled alike on the wire.
	other, err := b.places.Namesake(ctx, op.rec)
	switch {
	case err != nil:
		return b.unbegun.errorOfPlace(ctx, name, op, err)
	case other == "":
		return nil
	}
	if b.stands(ctx, op) {
		return nil
	}
	return newError(name, unclear(op.rec.Key), errTaken(other), ErrConfig)
}

// mayBegin refuses a call that would begin an operation without credentials, at an origin to which other clients of the journal send with credentials
// (Config.Authorize): one of them would send it as somebody else. nil: the call may begin. It is nil, too, if a record exists or its read fails, since Begin
// meets both later. Nothing is written. In the errors made here, true says that this call itself is in the table of running calls, and no other one.
func (b *admission) mayBegin(ctx context.Context, name string, op *preparedRequest) *result {
	if err := b.cfg.authorized.Look(ctx); err != nil {
		return &result{err: b.unbegun.errorOfBegin(ctx, name, op, true, err)}
	}
	// Begun without them, it would be sent by another client with its own Authorize: as somebody else.
	lack := b.cfg.gate().lacksCredentials(op.rec.Origin, &op.credentials)
	if lack.Need == acts.Nothing {
		return nil
	}
	if _, err := b.journal.Get(context.WithoutCancel(ctx), op.rec.ID); !errors.Is(err, persist.ErrNotFound) {
		return nil
	}
	return &result{err: b.unbegun.errorAfterRead(ctx, name, op.named, true, lack.Err(), ErrConfig)}
}

// passes checks a request that is no operation for this client: the Config.Methods of another client of the journal may name it. It returns an error if the journal
// may have the same request as an operation under a generated key, unresolved or unreported: sent now, it might take effect twice. A request by a safe method passes.
// It is read as for a Do without a key. The caller must use same instead of req: the body may have been read. With an error, the body is closed.
func (b *admission) passes(req *http.Request, now time.Time) (same *http.Request, err error) {
	if request.Safe(request.Method(req)) {
		return req, nil
	}
	const name = "do"
	p, given := b.cfg.profiles().at(req.URL), givenBy(req, keySource{}, false, now)
	// A journal of a user's own may make requests with it, which are not this operation.
	ctx := inflight.WithoutKey(req.Context())
	named := b.cfg.reader.Named(req, p, given)
	switch may, err := b.alike.MayStand(ctx, named); {
	case err != nil:
		closeBody(req)
		return nil, newError(name, unclearTo(unnamed, intent.HasNotLooked, firstKey(&named)), err)
	// No body has to be read: the journal has no operation like it.
	case !may:
		return req, nil
	}
	s, named, err := b.cfg.reader.ReadUnkeyed(req, p, given)
	if err != nil {
		return nil, b.unbegun.errorBeforeRead(ctx, name, named, err, requestTrouble(err))
	}
	op := &preparedRequest{rec: &s.Record, prof: s.Profile, credentials: s.Credentials, target: &s.URL, read: s, named: named}
	if err := b.checkUnresolved(ctx, name, op); err != nil {
		return nil, err
	}
	// The body was read for the comparison.
	return request.WithBody(req, s.Record.Body), nil
}
