package results

import (
	"bytes"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
)

// This file looks for words against a success in an answer of 2xx. Only the API knows their meaning. So they change no result: the summary names them,
// and the flag that gives them one.

// LookForDoubt sets the line's doubt: what in the answer of a success speaks against it, such as /status=declined. A person is told of it; the result stays.
// An answer of Accepted (202) promises no end, so that neither a word such as pending nor an empty body speaks against it. replayed is true if the answer has
// the mark of a replay.
func (l *Line) LookForDoubt(h http.Header, body []byte, replayed bool) {
	switch {
	case l.Result == Accepted && !l.BodyDropped: // it tells no end, and may say that it is open
		if doubt := doubtOf(h, body); !saysOpen(doubt) && doubt != "" && len(bytes.Trim(body, " \t\r\n[]{}")) > 0 {
			l.Doubt = doubt
		}
	case l.Result != Done && l.Result != Accepted: // no success: there is nothing to doubt
	case l.Status == http.StatusMultiStatus:
		l.Doubt = "several outcomes (207)"
	case l.BodyDropped:
		l.Doubt = notKept
	default:
		l.Doubt = doubtOf(h, body)
		if l.Doubt == "" && l.Key != "" && isSilent(l.Status, h, body) {
			l.Doubt = noContent
		}
		if l.Doubt == "" && replayed && l.Sends == 1 {
			l.Doubt = "the mark of a replay at the first send, so it may be of another request under the same key"
		}
	}
}

// saysOpen reports whether a doubt (what in an answer speaks against its success) is of a word that leaves the end open, such as /status=pending.
func saysOpen(doubt string) bool {
	_, word, _ := strings.Cut(doubt, "=")
	return slices.ContainsFunc(wordsOf(word), func(w string) bool { return slices.Contains(openWords, w) })
}

// doubtRecorded sets the doubt of a line whose answer was too large to keep, from its record: no words against its success could be looked for. An answer that was
// pruned was looked at before.
func (l *Line) doubtRecorded(rec *persist.Record) {
	if a := rec.Answer; a != nil && a.BodyDropped && !rec.Swept && rec.State == persist.StateConfirmed {
		l.LookForDoubt(a.Header, nil, false)
	}
}

// Asked are the answers that are a success by the --done of this run, and those that are held by its --unknown. The verdicts of an operation are frozen when it
// is begun: they judge none that an earlier run has ended.
type Asked struct {
	done, unknown Declines
	texts         string // of done, for people
}

// ParseAsked parses the values of --done (the answers that are a success) and --unknown (those that leave the outcome open), each POINTER=TEXT.
func ParseAsked(done, unknown []string) (Asked, error) {
	a := Asked{texts: strings.Join(done, " or ")}
	var err error
	if a.done, err = ParseDeclines(done); err == nil {
		a.unknown, err = ParseDeclines(unknown)
	}
	return a, err
}

// Judge adds notes to the printed line of a recorded success: that it was not judged by --done (the answers that are a success), and whether its answer, if
// it is there, would not be one (l.Against). The result stays. l.Asked notes the first.
func (a *Asked) Judge(rec *persist.Record, l *Line) {
	if l.Result != Done && l.Result != Accepted {
		return
	}
	l.Asked = true
	if rec.State != persist.StateConfirmed || rec.Answer == nil || rec.Answer.BodyDropped {
		return
	}
	switch text := TextOf(rec.Answer.Header, rec.Answer.Body); {
	case a.unknown.match(text):
		l.Against = "is one of those that --unknown holds"
	case a.done.MayHide(Done, false, rec.Answer.Dropped): // the journal lacks that member: nobody can tell
	case !a.done.match(text):
		l.Against = "lacks " + words.Clip(a.texts) + ", which --done asks for"
	}
}

// Explain adds to the error in the line of an operation that is held after a 2xx (a person decides) what --done and --unknown have against its answer.
func (a *Asked) Explain(l *Line) {
	if l.Result != Held || l.Status < 200 || l.Status > 299 || l.Error == nil {
		return
	}
	switch {
	case a.unknown.match(l.Body):
		l.Error.Message += "; it is one of those that --unknown holds"
	case l.BodyDropped:
		l.Error.Message += "; it is not kept whole, so that --done cannot be looked for in it"
	case !a.done.match(l.Body):
		l.Error.Message += "; it lacks " + words.Clip(a.texts) + ", which --done asks for"
	}
}

// doubtNames are the last words in the names of members about an end.
var doubtNames = []string{"status", "state", "outcome", "result", "success", "ok"}

// doubtWords are words of such members that a success seldom has.
var doubtWords = []string{
	"failed", "failure", "fail", "declined", "denied", "refused", "canceled", "cancelled", "rejected", "error", "invalid", "false",
	"void", "voided", "expired", "aborted", "blocked", "reversed", "returned", "unpaid",
	"pending", "processing", "queued", "waiting", "review", "incomplete", "requires",
}

// openWords are those of doubtWords that leave the end open: the operation may still succeed, so a new key could pay twice.
var openWords = []string{"pending", "processing", "queued", "waiting", "review", "incomplete", "requires"}

// doubtDepth is the number of objects within each other that doubtOf looks into: enough for /data/MUTATION/userErrors of a GraphQL API.
const doubtDepth = 3

// doubtOf returns the first words in an answer of 2xx against a success, such as /status=declined; "" if there are none. It looks at a JSON
// object, at the objects in its members, and at those in theirs. A list of one object counts as that object.
func doubtOf(h http.Header, body []byte) string {
	if len(bytes.TrimSpace(body)) == 0 {
		if kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); kind == "application/json" || strings.HasSuffix(kind, "+json") {
			return "no content, although it is called " + kind
		}
		return ""
	}
	switch small := string(bytes.TrimSpace(body[:min(len(body), 64)])); {
	case unreadable(body):
		return "a body that cannot be read as JSON, and no words were looked for in it"
	case small == "{}" || small == "[]" || small == "null" || small == "false":
		return "nothing but " + small
	case !mayDoubt(body):
		return ""
	}
	top := jsonpointer.Decode(body)
	if top == nil {
		return doubtOfText(body)
	}
	if object, pointer := onlyObject("", top); object != nil {
		return doubtWithin(pointer, object, doubtDepth)
	}
	return ""
}

// onlyObject returns the object that a JSON value at a pointer is, or that stands alone in its list, and the pointer to the object. It returns nil for other values.
func onlyObject(pointer string, value any) (object map[string]any, at string) {
	if list, isList := value.([]any); isList && len(list) == 1 {
		pointer, value = pointer+"/0", list[0]
	}
	object, _ = value.(map[string]any)
	return object, pointer
}

// furtherDoubts stands for the kinds of doubt beyond doubtsMax.
const furtherDoubts = "further doubts"

// notKept is the doubt of a success whose answer was too large to keep.
const notKept = "a body that is not kept whole, and no words were looked for in it"

// noContent is the doubt of a success that nothing but its status speaks for.
const noContent = "no content"

// isSilent reports whether an answer is a bare 200: without content, and without the address of something new. A 201 or a 204 says more by its status.
func isSilent(status int, h http.Header, body []byte) bool {
	return status == http.StatusOK && len(bytes.TrimSpace(body)) == 0 && h.Get("Location") == ""
}

// The doubts of answers that are no JSON, beside an element of XML.
const (
	soapFault  = "a fault of SOAP"
	textBegins = "a text that begins with "
)

// doubtOfText returns what speaks against a success in a body that is no JSON: a fault of SOAP, another element of XML, or a first word such as
// error. It returns "" if there is nothing.
func doubtOfText(body []byte) string {
	switch isXML := bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")); {
	case isXML && bytes.Contains(body, []byte("Fault>")):
		return soapFault
	case isXML:
		return doubtOfXML(body)
	}
	if first := wordsOf(string(body[:min(len(body), 64)])); len(first) > 0 && slices.Contains(doubtWords, first[0]) {
		return fmt.Sprintf(textBegins+"%q", first[0])
	}
	return ""
}

// doubtWithin returns the first words against a success, such as /status=declined, in an object and the objects inside it, down to levels levels;
// with 1, in the object alone. "": there are none. before is the JSON pointer to the object.
func doubtWithin(before string, object map[string]any, levels int) string {
	text := doubtIn(before, object)
	if levels == 1 || text != "" {
		return text
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if within, pointer := onlyObject(pointerTo(before, name), object[name]); within != nil && isPlain(name) {
			if text := doubtWithin(pointer, within, levels-1); text != "" {
				return text
			}
		}
	}
	return ""
}

// errorStatus matches a member "status" with the number of an error.
var errorStatus = regexp.MustCompile(`"status"\s*:\s*[45][0-9][0-9]\b`)

// mayDoubt reports whether a body may have words against a success, so that it has to be decoded and looked through. It is a cheap look at the bytes: it may
// say yes in vain, and most answers are spared the rest.
func mayDoubt(body []byte) bool {
	low := bytes.ToLower(body)
	has := func(text string) bool { return bytes.Contains(low, []byte(text)) }
	if has(`code"`) || errorStatus.Match(low) || slices.ContainsFunc(codeNames, func(name string) bool { return has(`"` + name + `"`) }) {
		return true
	}
	if bytes.HasPrefix(bytes.TrimSpace(low), []byte("<")) && (slices.ContainsFunc(doubtWords, has) || slices.ContainsFunc(codeNames, has)) {
		return true
	}
	return has(`error"`) || has(`errors"`) || has(`fault"`) || has("fault>") || slices.ContainsFunc(doubtWords, func(word string) bool { return bytes.HasPrefix(bytes.TrimSpace(low), []byte(word)) }) || slices.ContainsFunc(doubtNames, func(name string) bool { return has(name + `"`) }) && slices.ContainsFunc(doubtWords, has)
}

// doubtIn returns the first words against a success, such as /status=declined, in the members of one object. "": there are none. before is the JSON
// pointer to the object. It looks at members for errors, at names that end in a word such as status (doubtNames), and last at codes.
func doubtIn(before string, object map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !isPlain(name) {
			continue
		}
		pointer, value := pointerTo(before, name), object[name]
		if namesErrors(name) && isSomething(value) {
			return errorIn(pointer, value, doubtDepth)
		}
		split := nameWords(name)
		if len(split) == 0 || !slices.Contains(doubtNames, split[len(split)-1]) {
			continue
		}
		switch value.(type) {
		case string, bool:
			if text := fmt.Sprint(value); isPlain(text) && slices.ContainsFunc(wordsOf(text), func(w string) bool { return slices.Contains(doubtWords, w) }) {
				return pointer + "=" + text
			}
		}
	}
	return doubtOfCode(before, object)
}

// isPlain reports whether a name or a value can stand in a line of a summary.
func isPlain(text string) bool {
	return len(text) <= 64 && !strings.ContainsFunc(text, unicode.IsControl)
}

// pointerTo returns the pointer to a member of the object at before.
func pointerTo(before, name string) string {
	return before + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// namesErrors reports whether a name is that of a member for errors, such as error, errors, userErrors or fault.
func namesErrors(name string) bool {
	name = strings.ToLower(name)
	return name == "error" || name == "fault" || strings.HasSuffix(name, "errors")
}

// isSomething reports whether the value of a member for errors, such as "error", says that something went wrong: an object, a text or a list, not empty, or
// true. A number alone says nothing.
func isSomething(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) > 0
	case []any:
		return len(value) > 0
	case string:
		return value != ""
	case bool:
		return value
	}
	return false
}

// errorIn returns the pointer to the text of an error, with the text if it can stand in a line: /errors/0/message=declined. Without a text it returns the
// pointer to the error itself. levels bounds the objects and lists within each other.
func errorIn(pointer string, value any, levels int) string {
	switch value := value.(type) {
	case map[string]any:
		if levels == 0 {
			return pointer
		}
		names := slices.Sorted(maps.Keys(value))
		for _, first := range []string{"code", "message"} { // the order is then: message, code, the others
			if at := slices.Index(names, first); at >= 0 {
				names = slices.Insert(slices.Delete(names, at, at+1), 0, first)
			}
		}
		for _, name := range names {
			if found := errorIn(pointerTo(pointer, name), value[name], levels-1); isPlain(name) && strings.Contains(found, "=") {
				return found
			}
		}
	case []any:
		if found := ""; levels > 0 && len(value) > 0 {
			if found = errorIn(pointer+"/0", value[0], levels-1); strings.Contains(found, "=") {
				return found
			}
		}
	default:
		if text, _ := jsonpointer.Text([]any{value}, "/0"); text != "" && isPlain(text) {
			return pointer + "=" + text
		}
	}
	return pointer
}

// isInErrors reports whether a pointer leads to a member for errors, or into one.
func isInErrors(pointer string) bool {
	return slices.ContainsFunc(strings.Split(pointer, "/"), namesErrors)
}

// wordsOf returns the words of a text in small letters.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
}

// nameWords returns the words of a member's name in small letters; a capital letter behind a small one begins another word, as in paymentStatus.
func nameWords(name string) []string {
	var b strings.Builder
	last := ' '
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		last = r
	}
	return wordsOf(b.String())
}

// isOpen reports whether a word, such as pending, leaves the end of an operation open.
func isOpen(word string) bool { return slices.Contains(openWords, word) }

// doubtDropped reports whether --drop-answer keeps the member named by the line's doubt out of the journal. l.Dropped has the pointers to the members missing
// in this answer; l.Unkept, those of this run's flag.
func (l *Line) doubtDropped() bool {
	pointer, _, _ := strings.Cut(l.Doubt, "=")
	return strings.HasPrefix(pointer, "/") && (leftOut(pointer, l.Dropped) || leftOut(pointer, l.Unkept))
}
