package journaltest

import (
	"bytes"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// Sealed returns the journal with encryption by keys for tests. Each key is named by one letter of keys, and made of it. The first one encrypts; all decrypt.
// The result is as another process sees the journal.
func Sealed(t *testing.T, j persist.Journal, keys string) persist.Journal {
	t.Helper()
	var c seal.Config
	for _, id := range keys {
		c.Keys = append(c.Keys, seal.Key{ID: string(id), Secret: bytes.Repeat([]byte{byte(id)}, seal.SecretSize)})
	}
	s, err := seal.New(c)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := s.Journal(t.Context(), &OwnProcess{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}
