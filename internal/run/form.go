package run

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/oncehttp/oncehttp/persist"
)

// form is the form of the records in a journal: in clear, as seen by everybody above the keys. The zero value is ready; it is safe for
// concurrent use.
type form struct{ known atomic.Bool }

// begin makes the journal note, before this process begins its first record, whether records are sealed (encrypted) or in clear. The first writer decides.
// Errors: persist.ErrSealed if this process would write the other form, with the key of the seal if a record tells it (sealedJournal), and those of Fact; no
// record was begun then.
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

// sealedJournal returns an error if the journal's oldest record is sealed, or if the journal says that it is sealed. A record begun now
// would be in clear beside it. Any other error is left to the calls meeting it.
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

// checkForm returns persist.ErrSealed if standing, the journal's note about its records, says that they are sealed: a record in clear must not be written beside
// them. An empty note says nothing.
func checkForm(standing []byte) error {
	if text := string(standing); text != "" && text != persist.FactPlain {
		return fmt.Errorf("%w: the journal is sealed; open it with its keys (package persist/seal)", persist.ErrSealed)
	}
	return nil
}
