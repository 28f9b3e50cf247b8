package audit

import (
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// prefixes looks whether keys are missing on both sides only because one side has them behind a text such as "idemp:order:", or in quotes.
type prefixes struct {
	ours  func(key string) bool // the journal has the key
	tries int

	here, there string // the first one found, of the journal's keys and of the export's; "": none
}

const prefixTriesMax = 200 // keys looked at, of each side

// rests looks for a prefix of a key: it calls try with what follows each ":" or "/", and returns the text up to the first of them for which try is true; "" if there
// is none.
func (p *prefixes) rests(key string, try func(string) bool) string {
	for at := range len(key) {
		if (key[at] == ':' || key[at] == '/') && at+1 < len(key) && try(key[at+1:]) {
			return key[:at+1]
		}
	}
	return ""
}

// absent takes a key of the journal that the export lacks, and keeps the prefix without which the export has it, for a hint. theirs reports whether the export has a
// text. Nothing is tried once a prefix of either side (here, there) is known, or after some hundred keys.
func (p *prefixes) absent(key string, theirs func(string) bool) {
	if p.here == "" && p.there == "" && p.tries < prefixTriesMax {
		p.tries++
		p.here = p.rests(key, theirs)
	}
}

// behindPrefix adds to the finding of an operation without rows that the exports have the end of its key, and reports whether they do. Then nothing is advised that
// sends it again.
func (a *audit) behindPrefix(key string, x *Finding) bool {
	if a.flags.reference != "" {
		return false // then rows are found by a field of the request, and not by the key
	}
	prefix := a.prefixes.rests(key, a.theirs.knows)
	if prefix == "" {
		return false
	}
	x.Why = fmt.Sprintf("the exports have %q, which is its key without %q", words.Clip(key[len(prefix):]), words.Clip(prefix))
	x.Next = "send it under no other key: compare again by a field of the requests, --reference /FIELD"
	return true
}

// foreign takes a text of the export, no key here, and keeps the prefix or quotes without which it is one, for a hint. Nothing is tried once a prefix is
// known, or after some hundred texts. absent counts its tries in p.tries, too, so that the bound is twice the one of absent.
func (p *prefixes) foreign(match string) {
	if p.here != "" || p.there != "" || p.tries >= 2*prefixTriesMax {
		return
	}
	p.tries++
	p.there = p.rests(match, p.ours)
	// Quotes around a key, as of a cell that was quoted twice.
	if bare := strings.Trim(match, `"`); p.there == "" && bare != match && p.ours(bare) {
		p.there = `"`
	}
}

// hint returns a line with the prefix, or the quotes, by which the keys of the two sides differ; "" if no such difference was found.
func (p *prefixes) hint() string {
	switch {
	case p.here != "":
		return fmt.Sprintf("the keys here begin with %q, and the export has them without: match by a field of the requests instead, --reference /FIELD", words.Clip(p.here))
	case p.there == `"`:
		return "the export has the keys in quotes: take them off, or match by a field of the requests, --reference /FIELD"
	case p.there != "":
		return fmt.Sprintf("the export has the keys behind %q, and here they stand without: take that off, or match by a field of the requests, --reference /FIELD", words.Clip(p.there))
	}
	return ""
}
