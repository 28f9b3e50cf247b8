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

// fold returns a text in lower case, without blanks, dashes and underscores, without the zeros in front of numbers, without the first word of keys, and unescaped.
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
	return frontZeros.ReplaceAllString(strings.TrimPrefix(text, words.KeyPrefix), "$1$2")
}

// frontZeros matches the zeros in front of a number, with what stands before and after them.
var frontZeros = regexp.MustCompile(`(^|[^0-9])0+([0-9])`)

// butFor are the differences between alike references.
const butFor = "capitals, blanks, dashes, zeros in front, percent signs or the first word idemp:"

// addAlike indexes the match of a row below its folded text, unless an earlier row has done so. number is the row's.
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

// alikeTo returns the match of rows that are alike to a reference without rows, and that are no other operation's; "" if there is none.
func (a *audit) alikeTo(reference string) string {
	folded := fold(reference)
	if folded == "" {
		return ""
	}
	prefix := []byte(folded + "\x00")
	c := a.theirs.look.Bucket(alikeBucket).Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		match, number := string(k[len(prefix):]), binary.BigEndian.Uint64(v)
		if match == strings.TrimSpace(reference) || a.theirs.done.has(number) || a.flags.reference == "" && a.prefixes.ours(match) {
			continue
		}
		a.theirs.alike.add(number)
		return match
	}
	return ""
}

// spelled adds to the finding of an operation without rows that the exports may have it in another spelling, and reports whether they may. Then nothing is
// advised that sends it again.
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

// spellingHint returns a line about what is missing here and foreign there in another spelling; "" if there is nothing.
func (a *audit) spellingHint() string {
	if a.spellings == 0 {
		return ""
	}
	return fmt.Sprintf("%s here without a row, and rows there of no operation here, are alike but for "+butFor+": write the references alike on both sides, and compare again; send none of them before that",
		words.Count(a.spellings, "operation"))
}
