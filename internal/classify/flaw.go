package classify

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// Flaw is the reason for doubt in an answer: it may come from something in front of the API, may lack its end, or may say that
// the API failed. The zero value is FlawNone.
type Flaw uint8

// The flaws.
const (
	FlawNone   Flaw = iota
	FlawPage        // an unrequested HTML document
	FlawEmpty       // a 4xx without a body
	FlawCut         // JSON, XML or a content coding that ends early
	FlawErrors      // errors and no data of a GraphQL API
	FlawKey         // a 4xx that speaks of the key in words unknown to the profile
)

// String returns a name of the flaw for people; empty for FlawNone. A flaw is the reason for which an answer is not believed to come from the API
// itself, such as an HTML page of a proxy.
func (f Flaw) String() string {
	names := [...]string{"", "an HTML page", "no body", "a body that ends early", "errors and no data", "words about the idempotency key that the profile does not know"}
	if int(f) >= len(names) {
		return ""
	}
	return names[f]
}

// success returns the verdict on a 2xx: final, unless it has a flaw, or its outcome stands in its body. A flawed answer is requested again in two cases
// (again), if the key protects: the connection may have cut it off, or the profile names an API. A second equal answer is held; without a recorded body, a
// second one of the same status and Content-Type. The first is held, too, if another send is not known to be safe.
func (r *reader) success(p *profile.Profile) Verdict {
	flaw := r.successFlaw(p)
	switch {
	case flaw != FlawNone:
	case len(p.Verdicts) > 0:
		return r.byVerdicts(p)
	case r.graphQLFailed():
		return Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonUnclear, Flaw: FlawErrors}
	default:
		return Verdict{Kind: KindFinal}
	}
	again := p.Named() || flaw == FlawCut && !r.answer.Framed
	if !again || !r.facts.Protected || r.facts.Repeated {
		return Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonUnclear, Flaw: flaw}
	}
	return Verdict{Kind: KindUnknown, Again: true, Flaw: flaw}
}

// refusal returns the verdict on a 4xx that is final by its status alone. One that speaks of the key may mean a key used before, with an effect, and is held.
// If something in front of the API may have given the 4xx, it proves only the refusal of this send. Bare lists the statuses that this API itself gives with a
// page or without a body.
func (r *reader) refusal(p *profile.Profile) Verdict {
	if r.speaksOfKey(p) {
		return Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonUnclear, Flaw: FlawKey}
	}
	flaw := refusalFlaw(&r.answer.Answer)
	if flaw == FlawNone || slices.Contains(p.Own.Bare, r.answer.Status) {
		return Verdict{Kind: KindFinal}
	}
	return Verdict{Kind: KindRefused, Flaw: flaw}
}

// SuccessFlaw returns the reason for not believing an answer of success (2xx), such as a page of a proxy, or a body without its end. It returns the empty Flaw for
// most answers.
func SuccessFlaw(p *profile.Profile, a Answer, f Facts) Flaw {
	r := reader{answer: content{Answer: a}, facts: f}
	return r.successFlaw(p)
}

// isUnaskedPage reports whether an answer is an HTML page that neither the profile nor the request lets expect.
func (r *reader) isUnaskedPage(p *profile.Profile) bool {
	return p.Own.HTML != profile.Yes && !r.facts.TakesHTML && isPage(&r.answer.Answer)
}

// isUnaskedText reports whether a 2xx is a text with the type text/html, expected by neither the profile nor the request. Interpreters of scripts give their
// messages this type, also those of a lost database.
func (r *reader) isUnaskedText(p *profile.Profile) bool {
	a := &r.answer
	if p.Own.HTML == profile.Yes || r.facts.TakesHTML || a.Unread || a.Status < 200 || a.Status > 299 || !isHTML(a.Header.Get("Content-Type")) {
		return false
	}
	return isMessage(a.Body)
}

// speaksOfKey reports whether a 400 or 422 speaks of idempotency, or of a used key, without a meaning in the profile. The key may have been used before, with an effect: the
// journal of that program may be lost. It is false for a stored answer. A 409 claims nothing in any case.
func (r *reader) speaksOfKey(p *profile.Profile) bool {
	a := &r.answer
	switch {
	case a.Status != http.StatusBadRequest && a.Status != http.StatusUnprocessableEntity, p.Carrier.Place == profile.Nowhere:
		return false
	case a.matchAny(p.Replay) == hit, a.matchAny(p.Stored.Client) == hit:
		return false
	}
	return namesUsedKey(a.Body)
}

// successFlaw returns the flaw of a 2xx, the reason for which it may not be the API's own whole answer: a page or a text although the request asked
// for none, or a body without its end.
func (r *reader) successFlaw(p *profile.Profile) Flaw {
	switch {
	case r.isUnaskedPage(p), r.isUnaskedText(p):
		return FlawPage
	case isCut(&r.answer.Answer):
		return FlawCut
	}
	return FlawNone
}

// refusalFlaw returns the flaw of a 4xx, the reason for which it may not be the API's own answer: a page, or no body. The statuses 421, 425 and 429
// have no flaw: they only ask the client to wait or to connect anew, and this is true from any sender.
func refusalFlaw(a *Answer) Flaw {
	switch {
	case a.Status == http.StatusMisdirectedRequest, a.Status == http.StatusTooEarly, a.Status == http.StatusTooManyRequests:
		return FlawNone
	case isPage(a):
		return FlawPage
	case a.Whole && len(bytes.TrimSpace(a.Body)) == 0:
		return FlawEmpty
	}
	return FlawNone
}

// isPage reports whether the body is an HTML document, by its first bytes: a page may come with the Content-Type of the API.
// Elements shared with other XML count only if neither the Content-Type nor an XML declaration says XML. If a body could
// not be decoded, only its Content-Type is known.
func isPage(a *Answer) bool {
	if a.Unread {
		return isHTML(a.Header.Get("Content-Type"))
	}
	body, declared := skipProlog(fromUTF16(a.Body))
	kind, _, _ := strings.Cut(http.DetectContentType(body), ";")
	said := a.Header.Get("Content-Type")
	switch {
	case startsElement(body, "<!doctype html"), startsElement(body, "<html"):
		return true
	case declared || isXML(said):
		return false
	}
	return kind == "text/html" || isHTML(said) && slices.ContainsFunc(htmlAlone, func(tag string) bool { return startsElement(body, tag) })
}

// htmlAlone are elements at the start of some pages, unknown to [http.DetectContentType]. Other XML hardly begins with
// them, and is rarely called HTML.
var htmlAlone = []string{"<meta", "<center", "<noscript", "<span", "<img", "<hr", "<h2", "<h3", "<h4", "<h5", "<h6"}

// fromUTF16 returns the head of a text that begins with a byte order mark of UTF-16, with "?" for all but ASCII: 2048 bytes show whether it is a page. It returns any other
// text as it is.
func fromUTF16(text []byte) []byte {
	var high int // index of the high byte in a unit
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")):
		high = 1
	case bytes.HasPrefix(text, []byte("\xfe\xff")):
	default:
		return text
	}
	var head []byte
	for unit := range slices.Chunk(text[2:min(len(text), 2048)], 2) {
		switch {
		case len(unit) < 2:
		case unit[high] == 0 && unit[1-high] < 0x80:
			head = append(head, unit[1-high])
		default:
			head = append(head, '?')
		}
	}
	return head
}

// skipProlog returns a document without its prolog: a byte order mark, blank space, comments, and an XML declaration, as
// in XHTML. declared is true if there is a declaration.
func skipProlog(body []byte) (rest []byte, declared bool) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	for {
		body = bytes.TrimLeft(body, " \t\r\n\f")
		end := "-->"
		switch {
		case bytes.HasPrefix(body, []byte("<!--")):
		case bytes.HasPrefix(body, []byte("<?")):
			end, declared = "?>", true
		default:
			return body, declared
		}
		var found bool
		if _, body, found = bytes.Cut(body, []byte(end)); !found {
			return nil, declared
		}
	}
}

// startsElement reports whether a body begins with an HTML tag. tag lacks the closing character, and upper and lower case are the same.
func startsElement(body []byte, tag string) bool {
	if len(body) <= len(tag) || !strings.EqualFold(string(body[:len(tag)]), tag) {
		return false
	}
	return strings.IndexByte("> \t\r\n\f/", body[len(tag)]) >= 0
}

// isHTML reports whether a Content-Type is HTML or XHTML.
func isHTML(contentType string) bool {
	kind := mediaType(contentType)
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// isXML reports whether a Content-Type is XML, other than XHTML.
func isXML(contentType string) bool {
	kind := mediaType(contentType)
	return kind == "application/xml" || kind == "text/xml" || strings.HasSuffix(kind, "+xml") && kind != "application/xhtml+xml"
}

// mediaType returns a Content-Type in lower case, without its parameters.
func mediaType(contentType string) string {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	return strings.TrimSpace(kind)
}
