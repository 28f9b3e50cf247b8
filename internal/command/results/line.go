package results

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/coding"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Elsewhere reports whether a row was not tried because another process is sending it.
func (l *Line) Elsewhere() bool {
	return l.Error != nil && l.Error.Code == "in_flight" && l.Attempts == 0 && l.Sends == 0
}

// Line is the printed outcome of one operation: one JSON object a line, the fields in this order.
type Line struct {
	Row     int    `json:"row,omitempty"`
	Key     string `json:"key,omitempty"`
	Account string `json:"account,omitempty"`
	// Result is the result of the operation for the business; see result.go.
	Result Result `json:"result"`
	// OfRow is the row repeated by a duplicate.
	OfRow int `json:"of_row,omitempty"`
	// Outcome is the known outcome of the operation: an Outcome of package oncehttp.
	Outcome string `json:"outcome"`
	Status  int    `json:"status,omitempty"`
	// Source is wire, replay (the server's stored answer) or journal (nothing
	// was sent).
	Source   string `json:"source,omitempty"`
	Attempts int    `json:"attempts"`
	Sends    int    `json:"sends"`
	// State is the operation's state in the journal if the state kept it from being sent.
	State string `json:"state,omitempty"`
	// Body is the answer's body: itself if it is JSON, else a string, or base64 in BodyBase64 if it is not even text. BodyDropped: it is
	// larger than AnswerBytesMax, or a stream of events, and not shown.
	Body        json.RawMessage `json:"body,omitempty"`
	BodyBase64  []byte          `json:"body_base64,omitempty"`
	BodyDropped bool            `json:"body_dropped,omitempty"`
	// Dropped are the pointers to the members that the journal does not keep of this answer.
	Dropped []string `json:"dropped,omitempty"`
	// Doubt names the words of an answer against its success: see doubtOf. It changes no result.
	Doubt string `json:"doubt,omitempty"`
	// Error is the reason if the operation is not done.
	Error *LineError `json:"error,omitempty"`

	open       bool      // a --declined names a word that leaves the end open, such as pending
	unreadable bool      // see unreadable
	Idle       bool      `json:"-"` // this run has attempted nothing for it
	Untouched  bool      `json:"-"` // the end of the client came before the row was compared with the operation under its key
	Requests   int       `json:"-"` // handed to the network for it by this run: see Made
	Exit       int       `json:"-"`
	GoesOn     bool      `json:"-"` // it is in doubt, and the same command goes on with it
	Unread     bool      `json:"-"` // its message says how to teach the command the answer's meaning
	Joined     bool      `json:"-"` // another call has the same attempts
	Asked      bool      `json:"-"` // a success of an earlier run that was not judged by the --done of this one: see Asked
	Against    string    `json:"-"` // what the --done of this run has against it
	Due        time.Time `json:"-"` // of an operation that waits: when its next attempt may be made
	Next       Result    `json:"-"` // of the operation's latest later generation; empty: there is none
	NextAt     int       `json:"-"` // the number of that generation
	Was        string    `json:"-"` // the next step of an operation that was told as done before a --declined made a decline of it; "": it was not
	First      int       `json:"-"` // the generation of it that must be run before the one of this run; 0: none
	Bare       bool      `json:"-"` // it was rejected by a page or an empty answer, as something in front of the API gives
	Stands     Standing  `json:"-"` // what a mismatched row's key stands for
	Differs    string    `json:"-"` // the only part in which a mismatched row differs from the request of its key, if a flag gives that part; "": others
	Unkept     []string  `json:"-"` // the pointers of this run's --drop-answer, which the journal does not keep of the answer
	NotBegun   error     `json:"-"` // the journal's error that kept the operation from being tried; nil: another reason, or tried
}

// Standing names the request of the key of a mismatched row.
type Standing int

// The kinds of Standing.
const (
	StandsElsewhere Standing = iota // another request
	StandsRefused                   // another request, which was refused for certain
	StandsPending                   // another request, which is pending
	StandsHeld                      // another request, which is held
	StandsReplaced                  // this request, in whose place a person has begun another operation
)

// shortWait is a pause after an attempt that no line has to name: until somebody runs the command again, it is over.
const shortWait = time.Minute

// AnswerBytesMax bounds the printed part of an answer. The client keeps as much of an answer in the journal.
const AnswerBytesMax = 1 << 20

// Marshal returns the line as one line of JSON, with its line feed and its members in the order of the fields.
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
	if len(l.Dropped) > 0 {
		before := m.name("dropped")
		for i, pointer := range l.Dropped {
			before = words.AppendJSON(append(before, "[,"[min(i, 1)]), pointer) // a bracket before the first, a comma before the others
		}
		m = append(before, ']')
	}
	m = m.textIf("doubt", l.Doubt)
	if l.Error != nil {
		m = append(m.name("error"), members{}.text("code", l.Error.Code).text("message", l.Error.Message)...)
		m = append(m, '}')
	}
	return append(m, "}\n"...)
}

// setBody puts an answer's body into the line: as JSON, as a text, or in base64. If dropped is set (the body is not there, or not whole), or it is too large, the
// line only says that it is not shown. b is not copied.
func (l *Line) setBody(b []byte, dropped bool) {
	switch {
	case dropped || len(b) > AnswerBytesMax:
		l.BodyDropped = true
	case len(b) == 0:
	case json.Valid(b) && utf8.Valid(b):
		l.Body = b
	case utf8.Valid(b):
		l.Body = json.RawMessage(words.JSONString(string(b)))
	default:
		l.BodyBase64 = b
	}
}

// Answered returns the line of JSON that is printed for an operation whose call has brought a confirmed answer: one that decides it. It reads the body, unless that
// is a stream of events, and closes it. The list has the answers that count as refusals.
func (list Declines) Answered(resp *http.Response) Line {
	defer resp.Body.Close()
	if isEventStream(resp) { // it may never end
		return list.AnsweredWith(resp, nil, nil)
	}
	// The client has read the kept part whole before it returned. Only the rest of an answer over AnswerBytesMax can still fail, and such
	// an answer is not shown.
	body, err := io.ReadAll(io.LimitReader(resp.Body, AnswerBytesMax+1))
	return list.AnsweredWith(resp, body, err)
}

// AnsweredWith returns the line of JSON that is printed for a confirmed answer with a body read before: body has its first AnswerBytesMax+1 bytes, and unread is the
// error of that reading. The list has the answers that count as refusals.
func (list Declines) AnsweredWith(resp *http.Response, body []byte, unread error) Line {
	res := oncehttp.ResultOf(resp)
	l := lineOf(res)
	if res.Key == "" { // a safe request is no operation
		l.Outcome, l.Source = oncehttp.OutcomeConfirmed.String(), SourceName(oncehttp.SourceServer)
	}
	if isEventStream(resp) { // its head has decided
		l.Judge(list, resp.StatusCode, nil, true, res.AlreadyDone)
		return l
	}
	text := TextOf(resp.Header, body)
	l.Judge(list, resp.StatusCode, text, unread != nil, res.AlreadyDone)
	l.LookForDoubt(resp.Header, text, res.Source == oncehttp.SourceReplay)
	return l
}

// isEventStream reports whether an answer is a stream of events.
func isEventStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// TextOf returns a body without its content coding, or unchanged if it cannot be decoded, and without the byte order mark of UTF-8, which a reader of JSON may
// ignore (RFC 8259 section 8.1).
func TextOf(h http.Header, body []byte) []byte {
	if text, all := coding.Decode(h, body, true, AnswerBytesMax); all {
		body = text
	}
	return bytes.TrimPrefix(body, []byte("\uFEFF"))
}

// unreadable reports whether a body is no JSON, and may be meant as JSON in a form that nobody here reads: it begins nearly as JSON does, or is no UTF-8. Then no
// text in it is seen.
func unreadable(body []byte) bool {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] == '<' || json.Valid(body) {
		return false
	}
	return bytes.ContainsAny(body[:min(len(body), 64)], "{[\x00") || !utf8.Valid(body)
}

// isOwn reports whether an operation that the API calls done before, or that a lookup has found, is the one of this row: an earlier attempt, whose answer was
// lost, may have done it. At the first attempt it is another's.
func isOwn(attempts int) bool { return attempts > 1 }

// Judge puts a final answer and its result into the line. The line's Outcome, Attempts and Dropped must be set before. dropped: the body is not there, or not
// whole. alreadyDone: the API says that it had done the operation before; after an earlier attempt of the row that one may have done it (isOwn), and it is no
// duplicate.
func (l *Line) Judge(list Declines, status int, body []byte, dropped, alreadyDone bool) {
	l.Status, l.Result = status, list.ResultOfAnswer(status, body, alreadyDone && !isOwn(l.Attempts), l.Outcome == oncehttp.OutcomeRefused.String())
	l.Exit = l.Result.Exit()
	if l.Result == Declined || l.Result == Invalid {
		l.Error = errorOfAnswer(status, body)
	}
	l.setBody(body, dropped)
	l.unreadable = unreadable(body)
	l.open = l.Result == Declined && list.matchesOpen(body) // a refusal by a word such as pending: it may still succeed
	list.Unseen(l)
}

// lineOf returns the printed line for the result of a call, without what is read from its answer, such as the line's Result and Status.
func lineOf(res oncehttp.Result) Line {
	return Line{
		Key: string(res.Key), Outcome: res.Outcome.String(), Source: SourceName(res.Source),
		Attempts: res.Attempts, Sends: res.Sends, Joined: res.Joined, Dropped: res.Dropped,
	}
}

// Resumed returns the line that is printed for an operation that Resume has finished. The list says which answers count as refusals: an answer of success
// with such a text is no success. Without an answer the effect decides.
func (list Declines) Resumed(res oncehttp.Result) Line {
	l := lineOf(res)
	if a := res.Answer; a != nil {
		l.Dropped = a.Dropped
		text := TextOf(a.Header, a.Body)
		l.Judge(list, a.Status, text, a.BodyDropped, a.AlreadyDone)
		l.LookForDoubt(a.Header, text, res.Source == oncehttp.SourceReplay)
		return l
	}
	l.Result = Done
	if res.Effect == oncehttp.EffectAbsent { // as Config.Reconcile said
		l.Result = Rejected
	}
	l.Exit = l.Result.Exit()
	return l
}

// Failed returns the line of JSON that is printed for an operation whose call has ended with err: its result and its answer, as far as they are known, and the
// reason. key is the operation's, unless the error names another. NotBegun is a failure of the journal's server that kept it from being begun. GoesOn: it is in
// doubt, and the same command goes on with it. Due is the time of the next try, if that is not soon. State is that of an operation found under the key, which
// kept this one from being sent. Bare: a proxy may have given the answer.
func Failed(key oncehttp.Key, err error) Line {
	l := Line{
		Key: string(key), Result: resultOfError(err), Outcome: oncehttp.OutcomeUnknown.String(), Error: errorOf(err), Exit: StatusOfError(err), NotBegun: place.NotBegun(err),
	}
	var e *oncehttp.Error
	if !errors.As(err, &e) {
		return l
	}
	l.Outcome, l.Attempts, l.Sends, l.Joined = e.Outcome.String(), e.Attempts, e.Sends, e.Joined
	l.GoesOn = errors.Is(err, oncehttp.ErrOutcomeUnknown) && e.State == persist.StatePending && l.NotBegun == nil && !errors.Is(err, oncehttp.ErrAccount)
	if (l.Result == Rejected || l.GoesOn) && time.Until(e.NextAttempt) > shortWait {
		l.Due = e.NextAttempt
	}
	if e.Key != "" {
		l.Key = string(e.Key)
	}
	if mine := e.Attempts > 0 && e.State == persist.StatePending; standsInTheWay(err) && !mine { // it was pending before the attempt that ended it
		l.State = e.State.String()
	}
	if answerIsGone(err) || isErased(err) && l.Result == Done { // its outcome is known, and there is no more to do
		l.Source, l.Error = SourceName(oncehttp.SourceJournal), nil
	}
	if e.Answer != nil && !errors.Is(err, oncehttp.ErrKeyReused) { // it would show another request's answer
		l.Status = e.Answer.Status
		l.Bare = l.Result == Rejected && bareAnswer(e.Answer)
		if wait := retryAfter(e.Answer); l.Result == Rejected && l.Due.IsZero() && wait > shortWait { // of what was sent once, the error has no time
			l.Due = time.Now().Add(wait)
		}
		l.Dropped = e.Answer.Dropped
		l.setBody(TextOf(e.Answer.Header, e.Answer.Body), e.Answer.BodyDropped)
	}
	return l
}

// IsKeptBack reports whether nothing was sent for the line because of the state of the operation that stands under its key, such as held. A mismatch is kept
// back by another request, and does not count.
func (l *Line) IsKeptBack() bool {
	return l.State != "" && l.Result != Mismatch && l.Attempts == 0 && l.Sends == 0
}

// IsOfRecord reports whether the line is about an operation of an earlier call: the journal answered it, or its state kept it from being sent.
func (l *Line) IsOfRecord() bool {
	return l.Source == SourceName(oncehttp.SourceJournal) || l.IsKeptBack()
}

// TakeRecord puts the attempts and sends of a recorded operation (IsOfRecord) into its line, since an error counts those of its own call alone. It also takes the
// doubt about an answer that was too large to keep.
func (l *Line) TakeRecord(rec *persist.Record) {
	l.Attempts, l.Sends = rec.Attempts, rec.Sends
	l.doubtRecorded(rec)
}

// retryAfter returns the wait for which the head of an answer asks; 0: for none.
func retryAfter(a *persist.Answer) time.Duration {
	return classify.Wait([]profile.Hint{{Header: "Retry-After"}}, classify.Answer{Header: a.Header}, time.Now())
}

// Standing adds to the line the facts of the record that kept its operation from being sent: a stated lack of an effect, or the reason and the next step if it
// is held (a person decides). settle is the beginning of the command that settles it, up to its key; journal is its end, the flag --journal.
func (l *Line) Standing(rec *persist.Record, settle, journal string) {
	l.Source = SourceName(oncehttp.SourceJournal)
	switch {
	case rec.State == persist.StateSettled && rec.Effect == persist.EffectAbsent && rec.Sends > 0:
		l.Outcome = string(persist.EffectAbsent) // it was sent, and took no effect
	case rec.State == persist.StateHeld && l.Error != nil:
		if why := words.LookupCause(rec.Note); why != "" {
			l.Error.Message += "; " + why
		} else if n := len(rec.History); n > 0 && rec.History[n-1].Error != "" {
			if why := words.ClipCause(words.CauseWords(words.FlagWords(rec.History[n-1].Error))); !strings.Contains(l.Error.Message, why) {
				l.Error.Message += "; last attempt: " + why
			}
		}
		l.Error.Message += "; look at the server, and say what happened: " + settle + " --happened" + journal + "; or, if it took no effect: " + settle + " --absent" + journal
	}
}

// Why returns the message of the line's error, "" if it has none.
func (l *Line) Why() string {
	if l.Error == nil {
		return ""
	}
	return l.Error.Message
}

// standsInTheWay reports whether the State in an error is the state of an operation already under the key.
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

// SourceName returns the name of a source in lines; "" for an unknown one.
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
