package conformance

import (
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Event is an event of a history, for tests of the judge. Times count from one
// zero; Ret below Call means that it may take effect at any later time.
type Event struct {
	Call, Ret time.Duration
	Fate      string // outcome, waiting or maybe
	Name      string
}

// JudgeHistory judges a history, first without the short cuts that find what can
// be said in a sentence.
func JudgeHistory(history []Event, effects int) (legal, legalWithout bool) {
	zero := time.Now()
	var events []event
	for _, e := range history {
		made := event{call: zero.Add(e.Call), name: e.Name, fate: map[string]fate{"outcome": outcome, "waiting": waiting, "maybe": maybe}[e.Fate]}
		if e.Ret >= e.Call {
			made.ret = zero.Add(e.Ret)
		}
		events = append(events, made)
	}
	r := judgeHistory(events, effects)
	return r.legal && r.known, checkModel(events, effects) == porcupine.Ok
}

// GlobMatch is the matching of --run and --skip.
func GlobMatch(pattern, id string) bool { return globMatch(pattern, id) }

// LookupText is the JSON pointer.
func LookupText(document, pointer string) (string, bool) {
	return lookupText([]byte(document), pointer)
}

// Summarize counts results by verdict.
func Summarize(cases []Result) Summary { return summarize(cases) }

// Repairs are the texts on what to fix.
func Repairs() map[string]string { return repairs() }

// NewMessage keeps a body as evidence.
func NewMessage(body []byte) *Message { return newMessage(nil, body, evidenceBytesMax) }

// Evidence drives what a trial keeps.
type Evidence struct{ e evidence }

// Send keeps an exchange.
func (v *Evidence) Send(key, ref string) { v.e.add(Exchange{Key: key, Ref: ref}) }

// Found is a finding.
func (v *Evidence) Found() { v.e.found() }

// Shown makes a finding and lists what shows it, by position.
func (v *Evidence) Shown() string {
	v.e.show()
	var list []string
	for i := range v.e.kept {
		if v.e.kept[i].Shows {
			list = append(list, strconv.Itoa(i))
		}
	}
	return strings.Join(list, " ")
}

// Kept is how many exchanges are kept, and First the key of the first.
func (v *Evidence) Kept() int     { return len(v.e.kept) }
func (v *Evidence) First() string { return v.e.kept[0].Key }
