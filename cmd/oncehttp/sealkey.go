package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// bindSealKey binds --seal-key, which belongs to every --journal.
func bindSealKey(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, "seal-key", "", "@FILE with the keys that seal the journal, one 'id:base64' a line, the current one first; see help journals")
}

// parseSealedPlace is placeFrom for a journal that is sealed with the keys that
// --seal-key names; "" is none.
func parseSealedPlace(source, text, sealKey string) (place, error) {
	at, err := placeFrom(source, text)
	if err != nil || sealKey == "" {
		return at, err
	}
	name, isFile := strings.CutPrefix(sealKey, "@")
	if !isFile {
		return place{}, errors.New("--seal-key: want @FILE; a key in the arguments would stand in the process list")
	}
	keys, err := seal.ReadFile(name)
	if err == nil {
		at.sealer, err = seal.New(keys)
	}
	if err != nil {
		return place{}, fmt.Errorf("--seal-key: %w", err)
	}
	return at, nil
}

// unsealed is the journal as the command uses it: through the keys of --seal-key, or as
// it is. A journal is sealed whole or not at all, so that its oldest operation decides.
// With adopt set, one in clear may be read although there are keys.
func (p place) unsealed(j persist.Journal) (persist.Journal, error) {
	if p.sealer == nil || p.adopt {
		oldest, err := oldestOf(j)
		switch sealed := oldest.Sealed(); {
		case err != nil:
			return nil, journalError(p.name, err)
		case sealed == nil:
			return j, nil
		case p.sealer == nil:
			text := fmt.Sprintf("it is sealed with the key %q: give --seal-key @FILE", oldest.CarrierName)
			return nil, journalError(p.name, &saidError{text: text, err: sealed})
		}
	}
	return p.sealing(context.Background(), j)
}

// sealing is the journal through the keys of --seal-key, if there are any.
func (p place) sealing(ctx context.Context, j persist.Journal) (persist.Journal, error) {
	if p.sealer == nil {
		return j, nil
	}
	sealed, err := p.sealer.Journal(ctx, j)
	if err != nil {
		return nil, journalError(p.name, err)
	}
	return sealed, nil
}

// oldestOf is the oldest operation of a journal, or an empty record. One that is damaged
// is for those who meet it.
func oldestOf(j persist.Journal) (persist.Record, error) {
	for rec, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if !persist.OfOneRecord(err) {
			return rec, err
		}
	}
	return persist.Record{}, nil
}
