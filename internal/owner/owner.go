// Package owner compares the owners of operations without an account. A record has keyed digests of the credentials in its request, under the
// secret of the journal. A call with other credentials learns nothing of the operation.
package owner

import (
	"context"
	"sync"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Secrets keeps the secret of a journal. The zero value is ready; it is safe for concurrent use.
type Secrets struct {
	mu      sync.Mutex
	value   []byte
	content *request.ContentKey // of value
}

// contentKey returns the key of Record.Content; nil if the journal does not tell its secret.
func (s *Secrets) contentKey(ctx context.Context, j persist.Journal) *request.ContentKey {
	if _, err := s.of(ctx, j); err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.content
}

// of returns the journal's secret. It asks for the secret once, also if ctx has ended. Errors: the journal's.
func (s *Secrets) of(ctx context.Context, j persist.Journal) ([]byte, error) {
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

// Owners compares the owners in a journal. It is safe for concurrent use.
type Owners struct {
	Journal persist.Journal
	Secrets *Secrets // common to the clients of the journal in this process
}

// Identify notes in an operation's record its owner, and the digest of its content. secret is the journal's, for Strange; nil if the call's owner
// is not compared. After an error the operation must not be begun. Errors: the journal's.
func (o Owners) Identify(ctx context.Context, owner *request.Owner, rec *persist.Record) (secret []byte, err error) {
	if key := o.Secrets.contentKey(ctx, o.Journal); key != nil {
		rec.Content = key.Content(rec)
	}
	if !owner.Asked {
		return nil, nil
	}
	if secret, err = o.Secrets.of(ctx, o.Journal); err != nil {
		return nil, err
	}
	if rec.Credentials = owner.Credentials(secret); len(rec.Credentials) > 0 {
		rec.KeepText = 0 // the text is kept as long as the record: without it nobody would know the owner
	}
	return secret, nil
}

// Secret returns the secret of the journal. Errors: the journal's.
func (o Owners) Secret(ctx context.Context) ([]byte, error) { return o.Secrets.of(ctx, o.Journal) }

// Reference returns the reference to an operation in errors; "" if the journal does not tell its secret.
func (o Owners) Reference(ctx context.Context, id persist.ID) string {
	secret, err := o.Secret(ctx)
	if err != nil {
		return ""
	}
	return request.Reference(id, secret)
}

// IsStrange reports whether an operation may belong to another caller than owner, whose request was possibly not read whole. If the journal does not
// tell the secret for the comparison, any operation may.
func (o Owners) IsStrange(ctx context.Context, owner *request.Owner, rec *persist.Record) bool {
	if !owner.Asked {
		return false
	}
	secret, err := o.Secret(ctx)
	return err != nil || Strange(owner, rec, secret)
}

// Strange reports whether an operation may belong to another than owner. If their credentials cannot be compared, a key chosen by a caller, or made
// of the request, tells more than they, and the operation is not strange; a key made at random for one call does not, and it is. Without owner.Asked
// nothing is compared.
func Strange(owner *request.Owner, rec *persist.Record, secret []byte) bool {
	if !owner.Asked {
		return false
	}
	switch owner.Compare(rec, secret) {
	case persist.SameOwner:
		return false
	case persist.OtherOwner:
		return true
	}
	return rec.KeyOfOneCall()
}
