package audit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// This file finds what is missing here and foreign there only since one side writes the references in other capitals, with other blanks or dashes, without zeros in
// front, as a spreadsheet does, or without the first word of keys, or their escapes.

// fold returns a reference reduced to the part in which two spellings of it agree: unescaped, in lower case, without blanks, dashes and underscores, without zeros in
// front of numbers, and without the word that begins generated keys.
func fold(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || r == '_' {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	return frontZeros.ReplaceAllString(strings.TrimPrefix(text, words.KeyPrefix), "$1$2") // $1 and $2 stand before and behind the zeros, and stay
}

// frontZeros matches the zeros in front of a number, with what stands before and after them.
var frontZeros = regexp.MustCompile(`(^|[^0-9])0+([0-9])`)

// butFor are the differences between alike references.
const butFor = "capitals, blanks, dashes, zeros in front, percent signs or the first word idemp:"

// addAlike indexes a row of an export by its folded reference, so that rows with another spelling of a reference are found. match is the row's reference, and number
// its number in the index. A reference that is there already is not added again, and one with nothing left when folded (blanks, say) is not added at all.
func addAlike(tx *bbolt.Tx, match string, number []byte) error {
	folded := fold(match)
	if folded == "" {
		return nil
	}
	b, key := tx.Bucket(alikeBucket), []byte(folded+"\x00"+match)
	if b.Get(key) != nil {
		return nil
	}
	return b.Put(key, number)
}

// alikeTo returns another spelling of a reference, as a row of the exports has it; "" if there is none. Call it where no row has the reference itself. Rows of other
// operations here do not count: those of operations done and, if keys are matched (without --reference), texts that are keys of the journal. The row is marked as
// alike, so that its own finding, "foreign", says so.
func (a *audit) alikeTo(reference string) string {
	folded := fold(reference)
	if folded == "" {
		return ""
	}
	prefix := []byte(folded + "\x00")
	c := a.theirs.look.Bucket(alikeBucket).Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		match, number := string(k[len(prefix):]), binary.BigEndian.Uint64(v) // of the first row with this match
		// The same text is no other spelling. theirs.done has the rows of operations done here; ours asks the journal for the text as a key.
		if match == strings.TrimSpace(reference) || a.theirs.done.has(number) || a.flags.reference == "" && a.prefixes.ours(match) {
			continue
		}
		a.theirs.alike.add(number)
		return match
	}
	return ""
}

// spelled looks for another spelling of the reference of an operation without a row in the exports. If there is one, it says so in the finding x, and returns true:
// then nothing may be advised that sends the operation again.
func (a *audit) spelled(reference string, x *Finding) bool {
	match := a.alikeTo(reference)
	if match == "" {
		return false
	}
	a.spellings++
	x.Why = fmt.Sprintf("the exports have %q, which is it but for "+butFor, words.Clip(match))
	x.Next = "send it under no other key: write the references alike on both sides, and compare again"
	return true
}

// spellingHint returns a line for the end of the report if operations here and rows there seem to differ only in the spelling of their references; "" otherwise.
func (a *audit) spellingHint() string {
	if a.spellings == 0 {
		return ""
	}
	return fmt.Sprintf("%s here without a row, and rows there of no operation here, are alike but for "+butFor+": write the references alike on both sides, and compare again; send none of them before that",
		words.Count(a.spellings, "operation"))
}
