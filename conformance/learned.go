package conformance

import "strings"

// Learned is one observation of a run about the server.
type Learned struct {
	// Topic is "takes", "compares", "keeps", "forgets", "waits", "marks", or "note".
	Topic string `json:"topic"`
	// Text is the observation: the rest of a sentence that begins with the topic.
	Text string `json:"text"`
	// Source is the id of the case behind it, or "probe".
	Source string `json:"source"`
}

// lesson holds the texts for the result of one case. An empty pass is left out of Learned.
// seen goes before an observation; so it does for a failure without a text in fail.
type lesson struct {
	topic, id        string
	pass, fail, seen string
}

// lessons returns the sentences that the report says about the target, in the order of Report.Learned. Each has a heading, a case, the words for a
// pass and for a failure of that case, and the words before an observation. Where there are none for a pass, it says nothing; for a failure, it says
// what was observed.
func lessons() []lesson {
	return []lesson{
		{"takes", "key/missing", "", "", "without a key: "},
		{"takes", "key/sf-string-accepted", "a key in double quotes", "no key in double quotes", "a key in double quotes: "},
		{"takes", "key/quoted-equals-bare", "", "", "a key quoted and the same key bare: "},
		{"takes", "net/chunked-equals-length", "a chunked body as the same request", "no chunked body as the same request", ""},
		{"takes", "replay/other-content-type", "bodies of type text/plain, protected", "bodies of type text/plain, unprotected", ""},
		{"compares", "conflict/not-silent", "the body: another one is not answered as the first", "not the body: another one is answered as the first", ""},
		{"compares", "conflict/one-number-differs", "each number of the body", "not each number of the body", ""},
		{"compares", "conflict/nested-differs", "what is inside objects and lists", "not what is inside objects and lists", ""},
		{"compares", "conflict/large-numbers", "numbers beyond 2^53 exactly", "numbers beyond 2^53 as floats", ""},
		{"compares", "conflict/json-respelled", "", "", "the same members in another order: "},
		{"compares", "conflict/null-vs-absent", "", "", "null and absent: "},
		{"compares", "conflict/1.0-vs-1", "", "", "1 and 1.0: "},
		{"compares", "conflict/array-order", "", "", "a list in another order: "},
		{"compares", "scope/other-path-not-answered", "the path", "not the path", ""},
		{"compares", "scope/other-method", "the method", "not the method", ""},
		{"compares", "scope/other-query", "", "", ""},
		{"compares", "scope/other-principal-not-answered", "the caller", "not the caller", ""},
		{"keeps", "replay/answered", "the outcome of a success", "no outcome of a success", ""},
		{"keeps", "replay/status", "its status", "another status", ""},
		{"keeps", "replay/body-bytes", "its body, byte for byte", "another body", ""},
		{"keeps", "replay/headers", "Content-Type, Location and Content-Encoding", "not all of Content-Type, Location and Content-Encoding", ""},
		{"keeps", "outcome/4xx", "a 402 as the profile declares", "a 402 otherwise than the profile declares", "a 402: "},
		{"keeps", "outcome/5xx", "a 500 as the profile declares", "a 500 otherwise than the profile declares", "a 500: "},
		{"keeps", "outcome/transient-not-pinned", "neither 429 nor 503", "a 429 or 503 for the whole window", ""},
		{"keeps", "outcome/corrected-body", "", "", "a refused body, corrected: "},
		{"forgets", "replay/after-a-pause", "no key within two seconds", "a key within two seconds", ""},
		{"forgets", "replay/after-100-requests", "no key after a hundred others", "a key after a hundred others", ""},
		{"forgets", "time/expires", "keys after their window", "no key after its window", "after the window: "},
		{"forgets", "restart/replay-survives", "no key when it is killed", "keys when it is killed", ""},
		{"waits", "inflight/once", "a duplicate in flight has no effect", "a duplicate in flight is executed", ""},
		{"waits", "inflight/status-or-wait", "and it waits, or is told to as the profile declares", "and it is told otherwise than the profile declares", ""},
		{"waits", "inflight/retry-after-present", "with Retry-After", "without Retry-After", ""},
		{"marks", "replay/marker", "", "", ""},
	}
}

// Learned lists the observations of the run about the server: how it takes a request, and the things that it compares, keeps, forgets and waits for.
// Before the results of cases stand WayIn, the way of sending keys that the probe had to find, and Headline, what limits the verdicts. Results
// without an observation are left out. The slice is never nil.
func (r *Report) Learned() []Learned {
	found := map[string]*Result{}
	for i := range r.Cases {
		found[r.Cases[i].ID] = &r.Cases[i]
	}
	all := []Learned{}
	if r.WayIn != "" {
		all = append(all, Learned{"takes", "operations with " + r.WayIn, "probe"})
	}
	if r.Headline != "" {
		all = append(all, Learned{"note", r.Headline, "probe"})
	}
	for _, l := range lessons() {
		if c := found[l.id]; c != nil {
			if text := l.told(c); text != "" {
				all = append(all, Learned{l.topic, text, l.id})
			}
		}
	}
	return all
}

// told returns the sentence about the target that the result of a case gives; "" if it gives none. seen is the text before an observation.
func (l *lesson) told(c *Result) string {
	switch c.Verdict {
	case VerdictPass:
		return l.pass
	case VerdictSeen:
		return l.seen + c.Actual
	case VerdictFail, VerdictWarn:
		if l.fail == "" {
			return strings.TrimSpace(l.seen + c.Actual)
		}
		return l.fail + ": " + c.Actual
	}
	return ""
}
