package results

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/coding"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// Elsewhere reports whether a row was not tried because another process is sending it.
func (l *Line) Elsewhere() bool {
	return l.Error != nil && l.Error.Code == "in_flight" && l.Attempts == 0 && l.Sends == 0
}

// Line is what became of one operation, as it is printed: one JSON object a
// line, the fields in this order.
type Line struct {
	Row     int    `json:"row,omitempty"`
	Key     string `json:"key,omitempty"`
	Account string `json:"account,omitempty"`
	// Result is what the operation came to for the business; see result.go.
	Result Result `json:"result"`
	// OfRow is the row that a duplicate repeats.
	OfRow int `json:"of_row,omitempty"`
	// Outcome is what is known of it: an Outcome of package oncehttp.
	Outcome string `json:"outcome"`
	Status  int    `json:"status,omitempty"`
	// Source is wire, replay (the server's stored answer) or journal (nothing
	// was sent).
	Source   string `json:"source,omitempty"`
	Attempts int    `json:"attempts"`
	Sends    int    `json:"sends"`
	// State is how the operation stands in the journal, where that is why it
	// was not sent.
	State string `json:"state,omitempty"`
	// Body is the answer's body: itself where it is JSON, else a string, or
	// base64 in BodyBase64 where it is not even text. BodyDropped: it is larger
	// than AnswerBytesMax, or a stream of events, and not shown.
	Body        json.RawMessage `json:"body,omitempty"`
	BodyBase64  []byte          `json:"body_base64,omitempty"`
	BodyDropped bool            `json:"body_dropped,omitempty"`
	// Error is why it is not done.
	Error *LineError `json:"error,omitempty"`

	Exit     int   `json:"-"`
	GoesOn   bool  `json:"-"` // it is in doubt, and the same command goes on with it
	Unread   bool  `json:"-"` // its message says how the command learns what the answer means
	Bare     bool  `json:"-"` // it was rejected by a page or an empty answer, as something in front of the API gives
	NotBegun error `json:"-"` // of the journal, which is why the operation was not tried; nil: it has another reason, or was tried
}

// AnswerBytesMax is how much of an answer is printed; it is what the client
// keeps of one in the journal.
const AnswerBytesMax = 1 << 20

// Marshal gives the line with its line feed, as encoding/json would.
func (l *Line) Marshal() []byte {
	m := make(members, 0, 256+len(l.Key)+len(l.Body)+2*len(l.BodyBase64))
	m = m.numberIf("row", l.Row).textIf("key", l.Key).textIf("account", l.Account).text("result", string(l.Result)).numberIf("of_row", l.OfRow)
	m = m.text("outcome", l.Outcome).numberIf("status", l.Status).textIf("source", l.Source)
	m = m.number("attempts", l.Attempts).number("sends", l.Sends).textIf("state", l.State)
	if len(l.Body) > 0 {
		b := bytes.NewBuffer(m.name("body"))
		if err := json.Compact(b, l.Body); err != nil { // cannot be: setBody has checked it
			l.Body, l.Error = nil, &LineError{Code: "unprintable", Message: err.Error()}
			return l.Marshal()
		}
		m = b.Bytes()
	}
	if len(l.BodyBase64) > 0 {
		m = append(base64.StdEncoding.AppendEncode(append(m.name("body_base64"), '"'), l.BodyBase64), '"')
	}
	if l.BodyDropped {
		m = append(m.name("body_dropped"), "true"...)
	}
	if l.Error != nil {
		m = append(m.name("error"), members{}.text("code", l.Error.Code).text("message", l.Error.Message)...)
		m = append(m, '}')
	}
	return append(m, "}\n"...)
}

// members are those of a JSON object that is not closed yet. Its methods append one; those
// that end in If do not where the value is zero.
type members []byte

func (m members) name(name string) members {
	before := byte(',')
	if len(m) == 0 {
		before = '{'
	}
	return append(append(append(m, before, '"'), name...), `":`...)
}

func (m members) text(name, value string) members { return words.AppendJSON(m.name(name), value) }

func (m members) number(name string, value int) members {
	return strconv.AppendInt(m.name(name), int64(value), 10)
}

func (m members) textIf(name, value string) members {
	if value == "" {
		return m
	}
	return m.text(name, value)
}

func (m members) numberIf(name string, value int) members {
	if value == 0 {
		return m
	}
	return m.number(name, value)
}

// setBody puts an answer's body in. b is not copied.
func (l *Line) setBody(b []byte, dropped bool) {
	switch {
	case dropped || len(b) > AnswerBytesMax:
		l.BodyDropped = true
	case len(b) == 0:
	case json.Valid(b):
		l.Body = b
	case utf8.Valid(b):
		l.Body = json.RawMessage(words.JSONString(string(b)))
	default:
		l.BodyBase64 = b
	}
}

// Answered is the line of a confirmed answer, whose body it reads and closes.
func (list Declines) Answered(resp *http.Response) Line {
	defer resp.Body.Close()
	res := oncehttp.ResultOf(resp)
	l := lineOf(res)
	if res.Key == "" { // a safe request, which is no operation
		l.Outcome, l.Source = oncehttp.OutcomeConfirmed.String(), SourceName(oncehttp.SourceServer)
	}
	if isEventStream(resp) { // which may never end, and whose head has decided
		l.Judge(list, resp.StatusCode, nil, true, res.AlreadyDone)
		return l
	}
	// What is kept was read whole before the client returned. Only the rest of
	// an answer over AnswerBytesMax can still fail, and that is not shown.
	body, err := io.ReadAll(io.LimitReader(resp.Body, AnswerBytesMax+1))
	l.Judge(list, resp.StatusCode, TextOf(resp.Header, body), err != nil, res.AlreadyDone)
	return l
}

// isEventStream reports whether an answer is a stream of events.
func isEventStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// TextOf returns a body without its content coding, or unchanged where it cannot be decoded.
func TextOf(h http.Header, body []byte) []byte {
	if text, all := coding.Decode(h, body, true, AnswerBytesMax); all {
		return text
	}
	return body
}

// Judge puts a final answer and its result into the line, whose outcome is set.
func (l *Line) Judge(list Declines, status int, body []byte, dropped, alreadyDone bool) {
	l.Status, l.Result = status, list.ResultOfAnswer(status, body, alreadyDone, l.Outcome == oncehttp.OutcomeRefused.String())
	l.Exit = l.Result.Exit()
	if l.Result == Declined || l.Result == Invalid {
		l.Error = errorOfAnswer(status, body)
	}
	l.setBody(body, dropped)
}

func lineOf(res oncehttp.Result) Line {
	return Line{
		Key: string(res.Key), Outcome: res.Outcome.String(), Source: SourceName(res.Source),
		Attempts: res.Attempts, Sends: res.Sends,
	}
}

// Resumed is the line of an operation that Resume finished.
func (list Declines) Resumed(res oncehttp.Result) Line {
	l := lineOf(res)
	if a := res.Answer; a != nil {
		l.Judge(list, a.Status, TextOf(a.Header, a.Body), a.BodyDropped, a.AlreadyDone)
		return l
	}
	l.Result = Done
	if res.Effect == oncehttp.EffectAbsent { // as Config.Reconcile said
		l.Result = Rejected
	}
	l.Exit = l.Result.Exit()
	return l
}

// Failed is the line of an operation that ended with an error.
func Failed(key oncehttp.Key, err error) Line {
	l := Line{
		Key: string(key), Result: resultOfError(err), Outcome: oncehttp.OutcomeUnknown.String(), Error: errorOf(err), Exit: StatusOfError(err), NotBegun: place.NotBegun(err),
	}
	var e *oncehttp.Error
	if !errors.As(err, &e) {
		return l
	}
	l.Outcome, l.Attempts, l.Sends = e.Outcome.String(), e.Attempts, e.Sends
	l.GoesOn = errors.Is(err, oncehttp.ErrOutcomeUnknown) && e.State == persist.StatePending && l.NotBegun == nil && !errors.Is(err, oncehttp.ErrAccount)
	if e.Key != "" {
		l.Key = string(e.Key)
	}
	if standsInTheWay(err) {
		l.State = e.State.String()
	}
	if answerIsGone(err) { // what became of it is known, and there is no more to do
		l.Source, l.Error = SourceName(oncehttp.SourceJournal), nil
	}
	if e.Answer != nil && !errors.Is(err, oncehttp.ErrKeyReused) { // which would show another request's
		l.Status = e.Answer.Status
		l.Bare = l.Result == Rejected && bareAnswer(e.Answer)
		l.setBody(TextOf(e.Answer.Header, e.Answer.Body), e.Answer.BodyDropped)
	}
	return l
}

// Why is the message of the line's error, "" if it has none.
func (l *Line) Why() string {
	if l.Error == nil {
		return ""
	}
	return l.Error.Message
}

// standsInTheWay: the errors whose State is that of an operation which stands
// under the key already.
func standsInTheWay(err error) bool {
	for _, s := range []error{
		oncehttp.ErrKeyReused, oncehttp.ErrHeld, oncehttp.ErrSettled, oncehttp.ErrAbandoned, oncehttp.ErrAnswerGone,
	} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

func SourceName(s oncehttp.Source) string {
	switch s {
	case oncehttp.SourceServer:
		return "wire"
	case oncehttp.SourceReplay:
		return "replay"
	case oncehttp.SourceJournal:
		return "journal"
	}
	return ""
}
