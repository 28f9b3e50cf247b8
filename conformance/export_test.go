package conformance

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/oncehttp/oncehttp/profile"
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
	events := eventsOf(history)
	r := judgeHistory(events, effects)
	return r.legal && r.known, checkModel(events, effects) == porcupine.Ok
}

// LegalAsItStands asks the checker alone for the whole history, of which nothing is left out.
func LegalAsItStands(history []Event, effects int) bool {
	return porcupine.CheckOperations(keyModel(), operationsOf(eventsOf(history), effects))
}

func eventsOf(history []Event) []event {
	zero := time.Now()
	var events []event
	for _, e := range history {
		made := event{call: zero.Add(e.Call), name: e.Name, fate: map[string]fate{"outcome": outcome, "waiting": waiting, "maybe": maybe}[e.Fate]}
		if e.Ret >= e.Call {
			made.ret = zero.Add(e.Ret)
		}
		events = append(events, made)
	}
	return events
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
func (v *Evidence) Found() { v.e.endFinding() }

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

// CountOf is the number at a pointer of a witness's answer.
func CountOf(body, pointer string) (int, Witness, error) { return countOf([]byte(body), pointer) }

// NamedAnswer is what an answer names, for tests of the counting of names.
type NamedAnswer struct{ Ref, ID, Place string }

// CountNames counts the effects of a reference that answers have named.
func CountNames(answers []NamedAnswer, ref string) int {
	s := names{owner: &owners{}}
	for _, a := range answers {
		s.saw(a.Ref, &answer{id: a.ID, place: a.Place})
	}
	return s.count(ref)
}

// Hint is how long an answer with these header fields says to wait.
func Hint(p *profile.Profile, header http.Header) (time.Duration, bool) {
	return hint(p, &answer{header: header})
}

// HintIn is how long an answer with this body says to wait.
func HintIn(p *profile.Profile, body string) (time.Duration, bool) {
	return hint(p, &answer{body: []byte(body)})
}

// BumpNumbers makes every number of a body one higher.
func BumpNumbers(body string) string { return string(bumpNumbers([]byte(body))) }

// WithMember adds a member to a JSON object.
func WithMember(object, name, value string) string {
	return string(withMember([]byte(object), name, value))
}

// Quote is a structured-field String.
func Quote(key string) string { return quote(key) }

// WorstOf is the verdict that counts.
func WorstOf(verdicts ...Verdict) Verdict { return worstOf(verdicts...) }

// SameOutcome compares what two answers with these ids and Locations name.
func SameOutcome(a, b [2]string) (same, known bool) {
	return sameOutcome(&answer{kind: done, id: a[0], place: a[1]}, &answer{kind: done, id: b[0], place: b[1]})
}

// Consequences are level, impact and fix of each harm, by its name; TellsOf are the
// cases whose own impact and fix speak of it.
func Consequences() map[string][3]string {
	all := map[string][3]string{}
	for h, c := range consequences() {
		all[string(h)] = [3]string{string(c.level), c.impact, c.fix}
	}
	return all
}

// TellsOf are the cases whose own impact and fix speak of a harm, by its name.
func TellsOf() map[string][]string {
	all := map[string][]string{}
	for h, ids := range tellsOf() {
		all[string(h)] = ids
	}
	return all
}

// ConsequenceOf is the level and the impact of a finding of a case.
func (c *Case) ConsequenceOf(harmName string, v Verdict) (Level, string) {
	is := c.consequenceOf(harm(harmName), v)
	return is.level, is.impact
}

// ProbesAllowed is how many operations a run with these options may send to find a way in.
func ProbesAllowed(o Options) int {
	r, err := newRunner(o)
	if err != nil {
		return -1
	}
	return r.probesAllowed()
}

// LessonIDs are the cases from which something is learned.
func LessonIDs() []string {
	var ids []string
	for _, l := range lessons() {
		ids = append(ids, l.id)
	}
	return ids
}

// RunOver is Run over connections of the test's own.
func RunOver(ctx context.Context, o Options, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Report, error) {
	return runOver(ctx, o, dial)
}

// RunHandlerOver is RunHandler over connections of the test's own: dial leads to the
// handler that serve was given.
func RunHandlerOver(ctx context.Context, middleware func(http.Handler) http.Handler, o Options,
	serve func(http.Handler), dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Report, error) {
	return runHandler(ctx, middleware, o, func(wrapped http.Handler) (string, func(), dialFunc, error) {
		serve(wrapped)
		return "127.0.0.1:1", func() {}, dial, nil
	})
}

// SettledFreedom notes observations of one relation, each a letter: s, r or o for the same, refused or its own. It returns the
// letter that is settled then, or "".
func SettledFreedom(seen string) string {
	const letters = "sro"
	f := freedoms{}
	for i := range len(seen) {
		f.note("query", freedom(1+strings.IndexByte(letters, seen[i])))
	}
	if is, settled := f.settled("query"); settled {
		return letters[is-1 : is]
	}
	return ""
}
