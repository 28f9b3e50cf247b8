package run

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/oncehttp/oncehttp/persist"
)

// form is how a journal keeps its records: in clear, as all see it who are above the keys. The zero value is ready; it is safe for
// concurrent use.
type form struct{ known atomic.Bool }

// begin has the journal hold, before this process begins its first record, that it is in clear; a sealed one, that it is sealed. Whoever
// is first decides. Errors: persist.ErrSealed, and those of Fact; no record was begun then.
func (f *form) begin(ctx context.Context, j persist.Journal) error {
	if f.known.Load() {
		return nil
	}
	standing, err := j.Fact(context.WithoutCancel(ctx), persist.FactSeal, nil, []byte(persist.FactPlain))
	if err == nil && checkForm(standing) != nil {
		err = cmp.Or(sealedJournal(ctx, j), checkForm(standing))
	}
	if err != nil {
		return err
	}
	f.known.Store(true)
	return nil
}

// sealedJournal returns an error if the journal's oldest record is sealed, or if the journal says that it is: what is begun now would be in
// clear beside it. Any other error is for the calls that meet it.
func sealedJournal(ctx context.Context, j persist.Journal) error {
	for rec, err := range j.List(context.WithoutCancel(ctx), persist.Query{AllAccounts: true}) {
		if err == nil && rec.Sealed() != nil {
			return rec.Sealed() // it names the key
		}
		break
	}
	standing, err := j.Fact(context.WithoutCancel(ctx), persist.FactSeal, nil, nil)
	if err != nil {
		return nil
	}
	return checkForm(standing)
}

// checkForm returns persist.ErrSealed if a journal holds that its records are sealed.
func checkForm(standing []byte) error {
	if text := string(standing); text != "" && text != persist.FactPlain {
		return fmt.Errorf("%w: the journal is sealed; open it with its keys (package persist/seal)", persist.ErrSealed)
	}
	return nil
}
