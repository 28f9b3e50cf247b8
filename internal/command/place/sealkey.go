package place

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// BindSealKey binds --seal-key. Every command with --journal has it.
func BindSealKey(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, "seal-key", "", "@FILE with the keys that seal the journal, one 'id:base64' a line, the current one first; see help journals")
}

// ParseSealed reads a journal's place from text, with the keys of --seal-key if its records are sealed (encrypted); an empty sealKey means that they are not. Errors
// of the place begin with source, the flag that held the text.
func ParseSealed(source, text, sealKey string) (Place, error) {
	at, err := placeFrom(source, text)
	if err != nil || sealKey == "" {
		return at, err
	}
	name, isFile := strings.CutPrefix(sealKey, "@")
	if !isFile {
		return Place{}, errors.New("--seal-key: want @FILE; a key in the arguments would stand in the process list")
	}
	keys, err := seal.ReadFile(name)
	if err == nil {
		at.Keys = sealKey
		at.Sealer, err = seal.New(keys)
	}
	if err != nil {
		return Place{}, fmt.Errorf("--seal-key: %w", err)
	}
	return at, nil
}

// Unsealed returns the journal as the command uses it: behind a layer that decrypts its sealed records with the keys of --seal-key, or as it is. A journal is sealed
// as a whole or not at all, so that its oldest operation decides; a missing key is an error. With p.Adopt, one in clear may be read although there are keys.
func (p Place) Unsealed(j persist.Journal) (persist.Journal, error) {
	if p.Sealer == nil || p.Adopt { // else Sealing refuses a journal in clear
		oldest, err := oldestOf(j)
		switch sealed := oldest.Sealed(); {
		case err != nil:
			return nil, JournalError(p.Name, err)
		case sealed == nil:
			return j, nil
		case p.Sealer == nil: // CarrierName of a sealed record is the id of its key
			text := fmt.Sprintf("it is sealed with the key %q: give --seal-key @FILE", oldest.CarrierName)
			return nil, JournalError(p.Name, &terminal.SaidError{Text: text, Err: sealed})
		}
	}
	return p.Sealing(context.Background(), j)
}

// Sealing returns j behind a layer that seals (encrypts) records as they are written, and unseals them as they are read, by the keys of --seal-key; j itself without
// keys.
func (p Place) Sealing(ctx context.Context, j persist.Journal) (persist.Journal, error) {
	if p.Sealer == nil {
		return j, nil
	}
	sealed, err := p.Sealer.Journal(ctx, j)
	if err != nil {
		return nil, JournalError(p.Name, err)
	}
	return sealed, nil
}

// oldestOf returns the oldest operation of a journal, by which it is told whether the journal is sealed (encrypted); an empty record if there is none. It skips
// damaged records, which later readers report.
func oldestOf(j persist.Journal) (persist.Record, error) {
	for rec, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if !persist.OfOneRecord(err) {
			return rec, err
		}
	}
	return persist.Record{}, nil
}

// Shell returns the value of --journal for a command line that a person copies, quoted for a shell; the flag --seal-key follows it if the journal is sealed.
func (p Place) Shell() string {
	if p.Keys == "" {
		return words.ShellQuote(p.Arg)
	}
	return words.ShellQuote(p.Arg) + " --seal-key " + words.ShellQuote(p.Keys)
}
