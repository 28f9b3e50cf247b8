package audit

import (
	"bytes"
	"context"
	"sync"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
)

// This file finds the rows of operations whose keys are gone: erased, or their text pruned. A digest of the key under the secret of the journal is left. In a journal
// file a listing has its beginning alone.

// erasedDigits is the number of characters by which such a key is told from others: the first word of it, and 14 bytes of the digest.
const erasedDigits = len("erased:") + 2*14

// goneKeys returns a function for operations whose record was erased, and their key with it. The function returns the text in the column --match whose digest is in
// such a record, or why no row has it: match is "" then. It hashes the references of all rows at its first call. The first erasedDigits characters of the digest are
// compared: a record may have no more of it.
func goneKeys(ctx context.Context, ses *session.Session, theirs *exportIndex) func(rec *persist.Record) (match, why string) {
	byDigest := sync.OnceValues(func() (map[string]string, error) {
		secret, err := ses.Journal.Secret(ctx)
		if err != nil {
			return nil, err
		}
		found := map[string]string{}
		err = theirs.look.Bucket(rowsBucket).ForEach(func(key, _ []byte) error {
			match, _, _ := bytes.Cut(key, []byte{0})
			// The digest as an erased record has it, made with the journal's secret.
			if digest := persist.ErasedKey(secret, string(match)); digest != "" {
				found[digest[:erasedDigits]] = string(match)
			}
			return nil
		})
		return found, err
	})
	return func(rec *persist.Record) (match, why string) {
		found, err := byDigest()
		switch {
		case err != nil:
			return "", "its key was erased, and cannot be looked for: " + err.Error()
		case len(rec.Key) >= erasedDigits && found[rec.Key[:erasedDigits]] != "":
			return found[rec.Key[:erasedDigits]], ""
		}
		return "", "its key was erased, and is that of no row of the exports"
	}
}
