package explore

import (
	"net/http"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/profile"
)

// Answer is an answer of the server, or of something in front of it.
type Answer struct {
	Text   string // for the history
	Status int
	Body   string
	Replay bool
	Hint   time.Duration // Retry-After
}

// Header returns a header that fits the answer: JSON, problem details for an error, or HTML for a page; and the mark of a replay.
func (a *Answer) Header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if a.Status >= 400 {
		h.Set("Content-Type", "application/problem+json")
	}
	if a.Body == page {
		h.Set("Content-Type", "text/html")
	}
	if a.Replay {
		h.Set("Idempotent-Replayed", "true")
	}
	return h
}

// reaction is one possible reaction of a server to a send.
type reaction struct {
	answer Answer
	acts   bool // it takes effect
	keeps  int16
}

const (
	page      = "<!doctype html><title>Oops</title>"
	done      = `{"error":{"code":"done_before"}}`
	duplicate = `{"error":{"code":"duplicate_reference"}}`
	succeeded = `{"success":true}`
	refused   = `{"success":false}`
)

// ProfileOf returns the profile of an API of a kind.
func ProfileOf(kind ServerKind) *profile.Profile {
	p := profile.Draft07()
	p.Stored.Client = p.KeptErrors() // declared: the default profile takes no error for a stored one
	code := func(text string) []profile.Matcher {
		return []profile.Matcher{{Status: []int{409}, Pointer: "/error/code", Equals: []string{text}}}
	}
	switch kind {
	case KeepsSuccess:
		p.Stored.Client = nil
	case KeepsNothing:
		return profile.None()
	case SaysDone:
		p.AlreadyDone = code("done_before")
	case Hides:
		p.Verdicts = []profile.Verdict{
			{Pointer: "/success", Equals: []string{"true"}, Proves: profile.ProvesSucceeded},
			{Pointer: "/success", Equals: []string{"false"}, Proves: profile.ProvesRefused},
		}
	case References:
		p.Stored.Client = nil
		p.Duplicate = code("duplicate_reference")
	}
	return p
}

// react returns all possible reactions of the server to a send of key t under a token (the key that it handed out; 0 without): the answer, with or without an
// effect, and the status that it keeps under the key. flying: an earlier send may be at work there. inFront has the answers of a proxy before it, in each case.
func (s *Slice) react(w *World, t int, token int8, flying bool) []reaction {
	k := &w.Ops[t]
	kept := k.Kept != 0 && k.KeptWith == token && s.Times[w.Time]-s.Times[k.KeptAt] < window
	switch effects := w.Intents[k.Intent].Effects; {
	case s.Server == SaysDone && kept && k.Kept < 300:
		return append([]reaction{{answer: Answer{Text: "has done it before", Status: 409, Body: done}}}, inFront()...)
	case kept && s.Server == Hides: // a refusal is kept as a 200, a success as a 201
		body := map[int16]string{200: refused, 201: succeeded}[k.Kept]
		return append([]reaction{{answer: Answer{Text: "gives the kept answer", Status: int(k.Kept), Body: body, Replay: true}}}, inFront()...)
	case kept:
		return append([]reaction{{answer: Answer{Text: "gives the kept answer", Status: int(k.Kept), Body: "{}", Replay: true}}}, inFront()...)
	case s.Server == References && effects > 0:
		return append([]reaction{{answer: Answer{Text: "knows the reference", Status: 409, Body: duplicate}}}, inFront()...)
	}
	all := s.actions()
	if flying {
		all = append(all, reaction{answer: Answer{Text: "is at work on an earlier send", Status: 409, Body: `{"title":"in progress"}`}})
	}
	return append(all, inFront()...)
}

// actions returns all possible reactions of the modelled server to a send under a key that it does not know, by its kind. Each has the answer, tells if it takes
// effect, and has the status kept under the key for later sends; 0: none is kept. After an effect with a 500, failure is kept: the success itself, or the 500. A
// 404 is kept where refusals are.
func (s *Slice) actions() []reaction {
	var success, refusal, failure int16
	switch s.Server {
	case Hides:
		return []reaction{
			{Answer{Text: "pays", Status: 201, Body: succeeded}, true, 201},
			{Answer{Text: "declines in a 200", Status: 200, Body: refused}, false, 200},
			{Answer{Text: "pays, and a 200 does not say so", Status: 200, Body: "{}"}, true, 201},
			{Answer{Text: "does nothing, and a 200 does not say so", Status: 200, Body: "{}"}, false, 0},
			{Answer{Text: "pays and answers 500", Status: 500, Body: `{"title":"failed"}`}, true, 201},
		}
	case KeepsErrors:
		success, refusal, failure = 201, 402, 500
	case KeepsAll, SaysDone, Forgets:
		success, refusal, failure = 201, 402, 201
	case KeepsSuccess:
		success, failure = 201, 201
	}
	lacks := refusal
	if lacks != 0 {
		lacks = 404
	}
	return []reaction{
		{Answer{Text: "pays", Status: 201, Body: `{"id":1}`}, true, success},
		{Answer{Text: "declines", Status: 402, Body: `{"title":"declined"}`}, false, refusal},
		{Answer{Text: "pays and answers 500", Status: 500, Body: `{"title":"failed"}`}, true, failure},
		{Answer{Text: "fails before it acts", Status: 500, Body: `{"title":"failed"}`}, false, 0},
		{Answer{Text: "has no such path", Status: 404, Body: `{"title":"not found"}`}, false, lacks},
	}
}

// inFront returns the possible answers of a proxy or gateway in front of the API, which does not get the request.
func inFront() []reaction {
	return []reaction{
		{answer: Answer{Text: "is too busy", Status: 429, Body: "{}"}},
		{answer: Answer{Text: "is too busy for ten minutes", Status: 429, Body: "{}", Hint: 10 * time.Minute}},
		{answer: Answer{Text: "wants credentials", Status: 401, Body: "{}"}},
		{answer: Answer{Text: "shows a page with a 200", Status: 200, Body: page}},
		{answer: Answer{Text: "shows a page with a 404", Status: 404, Body: page}},
		{answer: Answer{Text: "redirects", Status: 302}},
	}
}

// Answers returns each possible answer of a server of a kind.
func Answers(kind ServerKind) []Answer {
	s := &Slice{Server: kind}
	var all []Answer
	for _, r := range slices.Concat(s.actions(), inFront()) {
		all = append(all, r.answer)
	}
	return append(all,
		Answer{Text: "is at work on an earlier send", Status: 409, Body: `{"title":"in progress"}`},
		Answer{Text: "knows the reference", Status: 409, Body: duplicate}, Answer{Text: "has done it before", Status: 409, Body: done})
}

// do changes w as the server's reaction r to a send of key t does: an effect is counted, and an answer kept. token is
// the key that the server handed out for it; 0 without.
func (s *Slice) do(w *World, t int, token int8, r *reaction) {
	k := &w.Ops[t]
	if r.acts {
		w.Intents[k.Intent].Effects++
		k.Effects++
	}
	if r.keeps != 0 {
		k.Kept, k.KeptAt, k.KeptWith = r.keeps, w.Time, token
	}
}

// verdict returns the verdict of package classify on an answer for client p's drive d; it is computed once for each
// kind of case.
func (s *Slice) verdict(p int, d *operation.Drive, a *Answer) classify.Verdict {
	op := d.Op()
	at := reading{*a, p, d.InDoubt(), op.Protected}
	v, known := s.verdicts[at]
	if !known {
		v = classify.Classify(s.Configs[p].Profile, classify.Answer{Status: a.Status, Header: a.Header(), Body: []byte(a.Body), Whole: true, Framed: true},
			classify.Facts{InDoubt: at.inDoubt, Protected: at.protected})
		if s.verdicts == nil {
			s.verdicts = map[reading]classify.Verdict{}
		}
		s.verdicts[at] = v
	}
	return v
}

// reading holds all inputs of a verdict.
type reading struct {
	answer             Answer
	client             int
	inDoubt, protected bool
}
