package main

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
	"github.com/oncehttp/oncehttp/persist"
)

// line is what became of one operation, as it is printed: one JSON object a
// line, the fields in this order.
type line struct {
	Row     int    `json:"row,omitempty"`
	Key     string `json:"key,omitempty"`
	Account string `json:"account,omitempty"`
	// Result is what the operation came to for the business; see result.go.
	Result result `json:"result"`
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
	// than answerBytesMax, or a stream of events, and not shown.
	Body        json.RawMessage `json:"body,omitempty"`
	BodyBase64  []byte          `json:"body_base64,omitempty"`
	BodyDropped bool            `json:"body_dropped,omitempty"`
	// Error is why it is not done.
	Error *lineError `json:"error,omitempty"`

	exit     int
	goesOn   bool  // it is in doubt, and the same command goes on with it
	unread   bool  // its message says how the command learns what the answer means
	notBegun error // of the journal, which is why the operation was not tried; nil: it has another reason, or was tried
}

// answerBytesMax is how much of an answer is printed; it is what the client
// keeps of one in the journal.
const answerBytesMax = 1 << 20

// marshal gives the line with its line feed, as encoding/json would.
func (l *line) marshal() []byte {
	m := make(members, 0, 256+len(l.Key)+len(l.Body)+2*len(l.BodyBase64))
	m = m.numberIf("row", l.Row).textIf("key", l.Key).textIf("account", l.Account).text("result", string(l.Result)).numberIf("of_row", l.OfRow)
	m = m.text("outcome", l.Outcome).numberIf("status", l.Status).textIf("source", l.Source)
	m = m.number("attempts", l.Attempts).number("sends", l.Sends).textIf("state", l.State)
	if len(l.Body) > 0 {
		b := bytes.NewBuffer(m.name("body"))
		if err := json.Compact(b, l.Body); err != nil { // cannot be: setBody has checked it
			l.Body, l.Error = nil, &lineError{Code: "unprintable", Message: err.Error()}
			return l.marshal()
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

func (m members) text(name, value string) members { return appendJSON(m.name(name), value) }

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
func (l *line) setBody(b []byte, dropped bool) {
	switch {
	case dropped || len(b) > answerBytesMax:
		l.BodyDropped = true
	case len(b) == 0:
	case json.Valid(b):
		l.Body = b
	case utf8.Valid(b):
		l.Body = json.RawMessage(jsonString(string(b)))
	default:
		l.BodyBase64 = b
	}
}

// answered is the line of a confirmed answer, whose body it reads and closes.
func (list declines) answered(resp *http.Response) line {
	defer resp.Body.Close()
	res := oncehttp.ResultOf(resp)
	l := lineOf(res)
	if res.Key == "" { // a safe request, which is no operation
		l.Outcome, l.Source = oncehttp.OutcomeConfirmed.String(), sourceName(oncehttp.SourceServer)
	}
	if isEventStream(resp) { // which may never end, and whose head has decided
		l.judge(list, resp.StatusCode, nil, true, res.AlreadyDone)
		return l
	}
	// What is kept was read whole before the client returned. Only the rest of
	// an answer over answerBytesMax can still fail, and that is not shown.
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax+1))
	l.judge(list, resp.StatusCode, textOf(resp.Header, body), err != nil, res.AlreadyDone)
	return l
}

// isEventStream reports whether an answer is a stream of events.
func isEventStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// textOf returns a body without its content coding, or unchanged where it cannot be decoded.
func textOf(h http.Header, body []byte) []byte {
	if text, all := coding.Decode(h, body, true, answerBytesMax); all {
		return text
	}
	return body
}

// judge puts a final answer and its result into the line, whose outcome is set.
func (l *line) judge(list declines, status int, body []byte, dropped, alreadyDone bool) {
	l.Status, l.Result = status, list.resultOfAnswer(status, body, alreadyDone, l.Outcome == oncehttp.OutcomeRefused.String())
	l.exit = l.Result.exit()
	if l.Result == resultDeclined || l.Result == resultInvalid {
		l.Error = errorOfAnswer(status, body)
	}
	l.setBody(body, dropped)
}

func lineOf(res oncehttp.Result) line {
	return line{
		Key: string(res.Key), Outcome: res.Outcome.String(), Source: sourceName(res.Source),
		Attempts: res.Attempts, Sends: res.Sends,
	}
}

// resumed is the line of an operation that Resume finished.
func (list declines) resumed(res oncehttp.Result) line {
	l := lineOf(res)
	if a := res.Answer; a != nil {
		l.judge(list, a.Status, textOf(a.Header, a.Body), a.BodyDropped, a.AlreadyDone)
		return l
	}
	l.Result = resultDone
	if res.Effect == oncehttp.EffectAbsent { // as Config.Reconcile said
		l.Result = resultRejected
	}
	l.exit = l.Result.exit()
	return l
}

// failed is the line of an operation that ended with an error.
func failed(key oncehttp.Key, err error) line {
	l := line{
		Key: string(key), Result: resultOfError(err), Outcome: oncehttp.OutcomeUnknown.String(), Error: errorOf(err), exit: statusOfError(err), notBegun: notBegun(err),
	}
	var e *oncehttp.Error
	if !errors.As(err, &e) {
		return l
	}
	l.Outcome, l.Attempts, l.Sends = e.Outcome.String(), e.Attempts, e.Sends
	l.goesOn = errors.Is(err, oncehttp.ErrOutcomeUnknown) && e.State == persist.StatePending && l.notBegun == nil && !errors.Is(err, oncehttp.ErrAccount)
	if e.Key != "" {
		l.Key = string(e.Key)
	}
	if standsInTheWay(err) {
		l.State = e.State.String()
	}
	if answerIsGone(err) { // what became of it is known, and there is no more to do
		l.Source, l.Error = sourceName(oncehttp.SourceJournal), nil
	}
	if e.Answer != nil && !errors.Is(err, oncehttp.ErrKeyReused) { // which would show another request's
		l.Status = e.Answer.Status
		l.setBody(textOf(e.Answer.Header, e.Answer.Body), e.Answer.BodyDropped)
	}
	return l
}

// why is the message of the line's error, "" if it has none.
func (l *line) why() string {
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

func sourceName(s oncehttp.Source) string {
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
