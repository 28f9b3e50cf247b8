package explore

import (
	"net/http"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
)

// answer is an answer of the server, or of something in front of it.
type answer struct {
	text   string // for the history
	status int
	body   string
	replay bool
}

// header returns the answer's header: errors of the API are problem details.
func (a *answer) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if a.status >= 400 {
		h.Set("Content-Type", "application/problem+json")
	}
	if a.replay {
		h.Set("Idempotent-Replayed", "true")
	}
	return h
}

// reaction is one of the things that a server may do with a send.
type reaction struct {
	answer answer
	server Server
}

// page is an HTML page of something in front of the API.
const page = "<!doctype html><title>Oops</title>"

// react returns all that the server may do with a send. flying reports whether an earlier send may be at work there.
func (s *Slice) react(w *World, flying bool) []reaction {
	now := w.Server
	if kept := w.Server.Kept; kept != 0 && s.Server != KeepsNothing && times[w.Time]-times[w.Server.KeptAt] < window {
		return append([]reaction{{answer{"kept answer", int(kept), "{}", true}, now}}, inFront(now)...)
	}
	pays, declines, fails, lacks := now, now, now, now
	pays.Effects++
	fails.Effects++
	if s.Server != KeepsNothing {
		pays.Kept, pays.KeptAt = 201, w.Time
		fails.Kept, fails.KeptAt = 201, w.Time
	}
	switch s.Server {
	case KeepsErrors:
		fails.Kept = 500
		fallthrough
	case KeepsAll:
		declines.Kept, declines.KeptAt = 402, w.Time
		lacks.Kept, lacks.KeptAt = 404, w.Time
	}
	all := []reaction{
		{answer{"pays", 201, `{"id":1}`, false}, pays},
		{answer{"declines", 402, `{"title":"declined"}`, false}, declines},
		{answer{"pays and answers 500", 500, `{"title":"failed"}`, false}, fails},
		{answer{"fails before it acts", 500, `{"title":"failed"}`, false}, now},
		{answer{"has no such path", 404, `{"title":"not found"}`, false}, lacks},
	}
	if flying {
		all = append(all, reaction{answer{"is at work on an earlier send", 409, `{"title":"in progress"}`, false}, now})
	}
	return append(all, inFront(now)...)
}

// inFront returns what something in front of the API may answer. Nothing happens.
func inFront(now Server) []reaction {
	return []reaction{
		{answer{"is too busy", 429, "{}", false}, now},
		{answer{"wants credentials", 401, "{}", false}, now},
		{answer{"a page with a 200", 200, page, false}, now},
		{answer{"a page with a 404", 404, page, false}, now},
		{answer{"a redirect", 302, "", false}, now},
	}
}

// verdict returns what an answer proves for a drive.
func (s *Slice) verdict(d *operation.Drive, a *answer) classify.Verdict {
	op := d.Op()
	at := reading{*a, d.InDoubt(), op.Protected}
	v, known := s.verdicts[at]
	if !known {
		v = s.classify(d, a)
		if s.verdicts == nil {
			s.verdicts = map[reading]classify.Verdict{}
		}
		s.verdicts[at] = v
	}
	return v
}

// reading is all that a verdict depends on.
type reading struct {
	answer             answer
	inDoubt, protected bool
}

func (s *Slice) classify(d *operation.Drive, a *answer) classify.Verdict {
	op := d.Op()
	return classify.Classify(s.Profile(), classify.Answer{Status: a.status, Header: a.header(), Body: []byte(a.body), Whole: true, Framed: true},
		classify.Facts{InDoubt: d.InDoubt(), Protected: op.Protected})
}
