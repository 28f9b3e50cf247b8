package run

import (
	"context"
	"errors"
	"sync"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the owner of an operation, for operations without an account. The record has keyed digests of the credentials in the
// request. A call with other credentials learns nothing of the operation.

// errOtherCredentials is the error for an operation possibly of another caller.
var errOtherCredentials = errors.New("there is an operation of the same key or request that was begun with other credentials, or with none; " +
	"name the account of each call by Config.Account or ContextWithAccount, or settle or assign the operation by its reference")

// secrets keeps the secret of a journal. The zero value is ready; it is safe for concurrent use.
type secrets struct {
	mu      sync.Mutex
	value   []byte
	content *request.ContentKey // of value
}

// contentKey returns the key of Record.Content; nil if the journal does not tell its secret.
func (s *secrets) contentKey(ctx context.Context, j persist.Journal) *request.ContentKey {
	if _, err := s.of(ctx, j); err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.content
}

// of returns the journal's secret. It asks for the secret once, also if ctx has ended. Errors: the journal's.
func (s *secrets) of(ctx context.Context, j persist.Journal) ([]byte, error) {
	s.mu.Lock()
	value := s.value
	s.mu.Unlock()
	if value != nil {
		return value, nil
	}
	// Without the lock: a journal without an answer must not make calls wait one after the other.
	value, err := j.Secret(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.content = value, request.NewContentKey(value)
	return value, nil
}

// identify notes in the operation's record its owner, and the digest of its content. Errors: the journal's.
func (e *engine) identify(ctx context.Context, op *preparedRequest) error {
	if key := e.shared.secrets.contentKey(ctx, e.journal); key != nil {
		op.rec.Content = key.Content(op.rec)
	}
	if !op.named.Owner.Asked {
		return nil
	}
	secret, err := e.shared.secrets.of(ctx, e.journal)
	if err != nil {
		return err
	}
	op.secret, op.rec.Credentials = secret, op.named.Owner.Credentials(secret)
	return nil
}

// strange reports whether an operation may belong to another caller than op.
func (op *preparedRequest) strange(rec *persist.Record) bool {
	return strange(&op.named.Owner, rec, op.secret)
}

// strange reports whether an operation may belong to another than owner. If their credentials cannot be compared, a key chosen by a
// caller, or made of the request, tells more than they; a key made at random does not.
func strange(owner *request.Owner, rec *persist.Record, secret []byte) bool {
	if !owner.Asked {
		return false
	}
	switch owner.Compare(rec, secret) {
	case persist.SameOwner:
		return false
	case persist.OtherOwner:
		return true
	}
	return rec.Generated && !rec.Business
}

// isStrange is strange for a call with a request possibly not read whole. If the journal does not tell its secret, any
// operation may be another's.
func (e *engine) isStrange(ctx context.Context, named *request.Named, rec *persist.Record) bool {
	if !named.Owner.Asked {
		return false
	}
	secret, err := e.shared.secrets.of(ctx, e.journal)
	return err != nil || strange(&named.Owner, rec, secret)
}

// referenceTo returns the reference to an operation in errors; "" if the journal does not tell its secret.
func (e *engine) referenceTo(ctx context.Context, id persist.ID) string {
	secret, err := e.shared.secrets.of(ctx, e.journal)
	if err != nil {
		return ""
	}
	return request.Reference(id, secret)
}

// stranger returns the subject of a call not allowed to learn anything of an operation but its reference.
func (e *engine) stranger(ctx context.Context, id persist.ID) subject {
	return subject{sent: true, reference: e.referenceTo(ctx, id)}
}

// strangerError returns the error of a call stopped by an operation possibly belonging to another caller.
func (e *engine) strangerError(ctx context.Context, name string, id persist.ID, cause error) *Error {
	return newError(name, e.stranger(ctx, id), cause, ErrAccount)
}

// refuseStranger returns the result of a call on an operation possibly belonging to another caller. Others waiting for the same result
// may know more, and start again.
func (e *engine) refuseStranger(ctx context.Context, name string, id persist.ID) *result {
	return &result{err: e.strangerError(ctx, name, id, errOtherCredentials), notShared: true}
}
