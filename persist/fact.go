package persist

import (
	"fmt"
	"strings"
)

// The bounds of facts (Journal.Fact).
const (
	FactNameMax = 16  // bytes of a name: letters from a to z, and hyphens
	FactMax     = 256 // bytes of a value, at least one
)

// FactSeal is the name of the fact about the sealing of a journal's records: FactPlain, or the value written by package seal.
// Whoever begins the first record writes it.
const FactSeal = "seal"

// FactPlain is the value of FactSeal in a journal whose records are not sealed.
const FactPlain = "plain"

// FactOrigins is the name of the fact about origins to which clients send with credentials kept by no journal.
const FactOrigins = "origins"

// FactDeclined is the name of the fact about answers that the command counts as refusals of the business: the values of --declined, a line
// each. No client reads it.
const FactDeclined = "declined"

// FactDeclinedSince is the name of the fact about the times from which the values of FactDeclined hold, a line each. The command writes it, and no client reads it.
const FactDeclinedSince = "declined-since"

// FactBatches is the name of the fact about the flags of the latest batches of the command, a line each, the latest first: a hash of --url and --key, the profile, and
// the value of --ordered-by, with spaces between. The command writes it, and no client reads it.
const FactBatches = "batches"

// FactRestored is the name of the fact about the latest restore of a journal from a backup: the time of the restore, a space, and that of the backup, both in
// the form of RFC 3339. The command writes it, and no client reads it.
const FactRestored = "restored"

// FactNames returns the names of the facts written by oncehttp: small values that belong to a journal as a whole, and to no record. The copy of a journal
// takes these facts along. A new fact is to be added here.
func FactNames() []string {
	return []string{FactSeal, FactOrigins, FactDeclined, FactDeclinedSince, FactBatches, FactRestored}
}

// CheckFact checks the arguments of Journal.Fact, the method to read or write a fact (a small value that belongs to the journal as a whole). It returns
// ErrInvalid for a name that is not made of 1 to FactNameMax lower-case letters and hyphens, and for a value that is empty or longer than FactMax bytes. A
// nil value is valid: then Fact only reads.
func CheckFact(name string, value []byte) error {
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' }
	switch {
	case name == "" || len(name) > FactNameMax || strings.ContainsFunc(name, odd):
		return fmt.Errorf("%w: the name of a fact is 1 to %d letters from a to z and hyphens", ErrInvalid, FactNameMax)
	case value != nil && (len(value) == 0 || len(value) > FactMax):
		return fmt.Errorf("%w: the fact %q of %d bytes; want 1 to %d", ErrInvalid, name, len(value), FactMax)
	}
	return nil
}
