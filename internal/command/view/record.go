// Package view shows records of a journal: as JSON, and in words.
package view

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// StateText returns the state of a record in words, with its reason, its effect or its outcome.
func StateText(rec *persist.Record) string {
	switch {
	case rec.State == persist.StateHeld:
		return "held (" + string(rec.HoldReason) + ")"
	case persist.IsSkipped(rec.Acts) && rec.State == persist.StateSettled: // no operation: nothing was begun under the key
		return "skipped (" + words.Clip(rec.ReplacedBy) + " was sent)"
	case rec.State == persist.StateSettled:
		return "settled (" + string(rec.Effect) + ")"
	case oncehttp.OutcomeOf(rec) == oncehttp.OutcomeRefused, oncehttp.OutcomeOf(rec) == oncehttp.OutcomeAccepted:
		return rec.State.String() + " (" + oncehttp.OutcomeOf(rec).String() + ")"
	}
	return rec.State.String()
}

// Roughly returns a duration in its largest unit, rounded down, such as "3h"; days begin at 48 hours.
func Roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Parts selects the shown parts of a record.
type Parts struct {
	Bodies bool   // query string, headers, bodies, and the kept parts of them
	Needs  string // needs of a client for the record
}

// Record is a record in the JSON of journal list, show and export.
type Record struct {
	Key            string             `json:"key"`
	Seen           string             `json:"seen,omitempty"` // KEY@SEEN of the listed record
	Account        string             `json:"account"`
	State          string             `json:"state"`
	Result         results.Result     `json:"result"`
	Why            persist.HoldReason `json:"why,omitempty"`
	Effect         persist.Effect     `json:"effect,omitempty"`
	Generated      bool               `json:"generated,omitempty"`
	PlainHTTP      bool               `json:"plain_http,omitempty"`
	Method         string             `json:"method"`
	Origin         string             `json:"origin"`
	Target         string             `json:"target"`
	Profile        string             `json:"profile"`
	ProfileVersion string             `json:"profile_version"`
	WindowSeconds  int64              `json:"window_seconds"`
	Fingerprint    string             `json:"fingerprint"`
	Replaces       string             `json:"replaces,omitempty"`
	ReplacedBy     string             `json:"replaced_by,omitempty"`
	RedriveRun     string             `json:"redrive_run,omitempty"`
	Told           bool               `json:"told,omitempty"` // a caller was told of the end, or may have been
	Acts           []actView          `json:"acts,omitempty"`
	Credential     string             `json:"credential,omitempty"`
	Region         string             `json:"region,omitempty"`
	Token          *string            `json:"token,omitempty"` // "": it is to be fetched
	Created        time.Time          `json:"created"`
	MaybeSent      bool               `json:"maybe_sent"`
	FirstSent      time.Time          `json:"first_sent,omitzero"`
	NextAttempt    time.Time          `json:"next_attempt,omitzero"`
	SendBefore     time.Time          `json:"send_before,omitzero"`
	Finished       time.Time          `json:"finished,omitzero"`
	Attempts       int                `json:"attempts"`
	Sends          int                `json:"sends"`
	Swept          bool               `json:"swept,omitempty"`
	Erased         bool               `json:"erased,omitempty"`
	RequestDropped bool               `json:"request_dropped,omitempty"` // after its end; the answer stays
	Omitted        []string           `json:"omitted,omitempty"`
	KeptFields     map[string]*string `json:"kept_fields,omitempty"` // by pointer; null: not kept, since it was too long or no text
	Header         http.Header        `json:"header,omitempty"`
	BodyBytes      int                `json:"body_bytes"`
	Body           json.RawMessage    `json:"body,omitempty"`
	BodyBase64     []byte             `json:"body_base64,omitempty"`
	Answer         *answerView        `json:"answer,omitempty"`
	Status         int                `json:"status,omitempty"` // of a pruned answer
	Note           string             `json:"note,omitempty"`
	Needs          string             `json:"needs,omitempty"` // of an operation not done, as in journal stuck
	Evidence       *evidenceView      `json:"evidence,omitempty"`
	History        []attemptView      `json:"history,omitempty"`
}

// actView is one act of a person on a record.
type actView struct {
	At   time.Time `json:"at"`
	Did  string    `json:"did"`
	Note string    `json:"note,omitempty"`
}

// evidenceView is the event of the API that proves a record's effect.
type evidenceView struct {
	Event  string    `json:"event,omitempty"`
	Type   string    `json:"type"`
	By     string    `json:"by"`
	Scheme string    `json:"scheme"`
	Digest string    `json:"sha256"`
	At     time.Time `json:"at"`
}

// attemptView is one attempt of a record's history.
type attemptView struct {
	At     time.Time `json:"at"`
	TookMS int64     `json:"took_ms"`
	Sent   bool      `json:"sent"`
	Status int       `json:"status,omitempty"`
	Error  string    `json:"error,omitempty"`
}

// answerView is the answer of a record.
type answerView struct {
	Status      int             `json:"status"`
	At          time.Time       `json:"at,omitzero"`
	Replayed    bool            `json:"replayed,omitempty"`
	AlreadyDone bool            `json:"already_done,omitempty"`
	Header      http.Header     `json:"header,omitempty"`
	BodyBytes   int             `json:"body_bytes"`
	BodyDropped bool            `json:"body_dropped,omitempty"`
	Dropped     []string        `json:"dropped,omitempty"`
	Body        json.RawMessage `json:"body,omitempty"`
	BodyBase64  []byte          `json:"body_base64,omitempty"`
}

// Of returns a record for display in JSON. Without parts.Bodies it has no headers, no bodies, no kept values and no query. Its Result counts no --declined: a
// caller with such values sets another. Token is that of the server, sent in place of the key, if the API works so. Swept: the request and the answer were
// pruned.
func Of(rec *persist.Record, parts Parts) Record {
	v := Record{
		Key: rec.Key, Account: rec.ScopedAccount(), State: rec.State.String(), Why: rec.HoldReason, Effect: rec.FinalEffect(),
		Replaces: rec.Replaces, ReplacedBy: rec.ReplacedBy, RedriveRun: rec.RedriveRun, Told: rec.Told, Credential: rec.Credential, Region: rec.Region, Generated: rec.Generated, PlainHTTP: rec.PlainHTTP,
		Method: rec.Method, Origin: rec.Origin, Target: words.PathOf(rec.Target),
		Profile: rec.Profile, ProfileVersion: rec.ProfileVersion, WindowSeconds: int64(rec.Window / time.Second),
		Fingerprint: hex.EncodeToString(rec.Fingerprint),
		Created:     rec.Created.UTC(), MaybeSent: rec.MaybeSent, FirstSent: utc(rec.FirstSent), NextAttempt: utc(rec.NextAttempt),
		SendBefore: utc(rec.SendBefore), Finished: utc(rec.Finished),
		Attempts: rec.Attempts, Sends: rec.Sends, Swept: rec.Swept, Erased: rec.Erased, RequestDropped: rec.RequestDropped, Omitted: rec.Omitted, BodyBytes: len(rec.Body),
	}
	if rec.ServerToken {
		v.Token = &rec.Token
	}
	v.Result, v.Status, v.Note = results.Declines(nil).ResultOfRecord(rec), rec.Status, rec.Note
	for _, a := range actsOf(rec) {
		v.Acts = append(v.Acts, actView{utc(a.At), a.Did, a.Note})
	}
	for _, a := range rec.History {
		v.History = append(v.History, attemptView{utc(a.At), a.Took.Milliseconds(), a.Sent, a.Status, a.Error})
	}
	if e := rec.Evidence; e != nil {
		v.Evidence = &evidenceView{e.Event, e.Type, e.By, e.Scheme, hex.EncodeToString([]byte(e.Digest)), utc(e.At)}
	}
	if a := rec.Answer; a != nil {
		v.Answer = &answerView{
			Status: a.Status, At: utc(a.At), Replayed: a.Replayed, AlreadyDone: a.AlreadyDone,
			BodyBytes: len(a.Body), BodyDropped: a.BodyDropped, Dropped: a.Dropped,
		}
	}
	if !parts.Bodies {
		return v
	}
	v.Target, v.Header, v.KeptFields = rec.Target, rec.Header, keptView(rec)
	v.Body, v.BodyBase64 = Body(rec.Body)
	if a := rec.Answer; a != nil {
		v.Answer.Header = a.Header
		v.Answer.Body, v.Answer.BodyBase64 = Body(a.Body)
	}
	return v
}

// keptView returns the values that the journal keeps of a request, by their pointers; nil for a value that was left out.
func keptView(rec *persist.Record) map[string]*string {
	if len(rec.KeptFields) == 0 {
		return nil
	}
	view := make(map[string]*string, len(rec.KeptFields))
	for _, f := range rec.KeptFields {
		view[f.Pointer] = &f.Value
		if f.Omitted {
			view[f.Pointer] = nil
		}
	}
	return view
}

// Body returns a body for display in JSON: text is the body itself if it is JSON, or a JSON string of other text; binary is set for the rest, and encoded in base64
// later.
func Body(b []byte) (text json.RawMessage, binary []byte) {
	switch {
	case len(b) == 0:
		return nil, nil
	case json.Valid(b) && utf8.Valid(b):
		return b, nil
	case utf8.Valid(b):
		return json.RawMessage(words.JSONString(string(b))), nil
	}
	return nil, b
}

// utc returns a time in UTC. The zero time stays as it is, so that it is left out of JSON.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// SendingText names the process that sends an operation, and the time until its lease (the claim to send) ends; "" if no process does. The record must have been
// prepared for display: its LeaseOwner is set only during a send.
func SendingText(rec *persist.Record, now time.Time) string {
	if rec.LeaseOwner == "" {
		return ""
	}
	who := rec.LeaseOwner
	if len(who) == 36 && strings.Count(who, "-") == 4 { // a client's own is a UUID
		who = "worker " + who[:8]
	}
	switch {
	case rec.LeaseUntil.IsZero():
		return "sent by " + who
	case !rec.LeaseUntil.After(now):
		return "sent by " + who + ", free now"
	}
	return "sent by " + who + ", free in " + Roughly(rec.LeaseUntil.Sub(now)+time.Second-1) // rounded up
}

// actsOf returns the acts of persons in a record; nil for a sealed (encrypted) record, whose acts cannot be read.
func actsOf(rec *persist.Record) []persist.Act {
	if rec.Carrier == persist.CarrierSealed {
		return nil
	}
	return rec.Acts
}
