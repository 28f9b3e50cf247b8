package codec

import (
	"encoding/binary"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Intent is the head of an intent: the values for an index. Its slices point into the encoded bytes.
type Intent struct {
	Account     []byte        // Record.Account
	Key         []byte        // Record.Key
	Fingerprint []byte        // Record.Fingerprint
	Generated   bool          // Record.Generated
	Outside     bool          // the body is kept outside
	Window      time.Duration // Record.Window
	Created     time.Time     // Record.Created
	Origin      []byte        // Record.Origin
	KeepRequest persist.RequestKeeping
	Erased      bool // Record.Erased
}

// Progress is the head of a progress: the values asked first by a listing or a sweep.
type Progress struct {
	State       persist.State // Record.State
	Revision    uint64        // Record.Revision
	Swept       bool          // Record.Swept
	RequestGone bool          // Record.RequestGone
	Unreported  bool          // Record.Unreported
	KeyTold     bool          // Record.KeyTold
	OwedFrom    time.Time     // Record.OwedFrom
	Outside     bool          // the answer's body is kept outside
	Finished    time.Time     // Record.Finished
	NextAttempt time.Time     // Record.NextAttempt
	SendUntil   time.Time     // Record.SendUntil
	KeepAnswer  time.Duration // Record.KeepAnswer
	KeepKey     time.Duration // Record.KeepKey
	KeepText    time.Duration // Record.KeepText
	HoldReason  []byte        // Record.HoldReason
}

// PeekIntent reads the head of an encoded intent (the part of a record frozen by Begin): the fields by which journals build their indexes. It allocates
// nothing, and the results point into b.
// Error: persist.ErrCorrupt.
func PeekIntent(b []byte) (Intent, error) {
	d := decoder{b: b}
	head, _, _ := d.intentHead()
	head.Origin = d.bytes()
	return head, d.err("intent")
}

// PeekProgress reads the head of an encoded progress (the changeable part of a record): the fields by which journals build their indexes. It allocates
// nothing. The reason of a hold (why a person must look at the record) lies behind more times, which are read and thrown away. It is read only for a held
// record.
// Error: persist.ErrCorrupt.
func PeekProgress(b []byte) (Progress, error) {
	d := decoder{b: b}
	var r persist.Record
	times, _ := d.progressHead(&r)
	var reason []byte // points into b
	if r.State == persist.StateHeld {
		for _, set := range [...]byte{timeFirstSent, timeSendBefore, timeLeaseUntil, timeAnswer} {
			_ = d.timeIf(times, set)
		}
		reason = d.bytes()
	}
	f := Progress{
		State: r.State, Revision: r.Revision, Swept: r.Swept, RequestGone: r.RequestGone(), Unreported: r.Unreported, KeyTold: r.KeyTold, OwedFrom: r.OwedFrom,
		Outside: times&answerIsOutside != 0, Finished: r.Finished, NextAttempt: r.NextAttempt, SendUntil: r.SendUntil,
		KeepAnswer: r.KeepAnswer, KeepKey: r.KeepKey, KeepText: r.KeepText, HoldReason: reason,
	}
	return f, d.err("progress")
}

// DecodeIntent reads an intent, the part frozen by Begin, into r. Nothing in r points into b afterwards. If the body is stored outside, the result has its
// length and checksum, and the caller reads it; else it is zero.
// Error: persist.ErrCorrupt, if b is not exactly one intent.
func DecodeIntent(b []byte, r *persist.Record) (Outside, error) {
	d := decoder{b: b}
	head, flags, body := d.intentHead()
	if d.bad {
		return Outside{}, d.err("intent")
	}
	d.strings(body.inside) // all but the body becomes one string, of which the texts below are parts
	r.ID = persist.ID{Account: string(head.Account), Key: string(head.Key)}
	r.Fingerprint = append([]byte(nil), head.Fingerprint...)
	r.Generated, r.Window, r.Created, r.KeepRequest, r.Erased = head.Generated, head.Window, head.Created, head.KeepRequest, head.Erased
	for _, s := range [...]*string{&r.Origin, &r.Method, &r.Target, &r.Carrier, &r.CarrierName, &r.Profile, &r.ProfileVersion, &r.Recipe} {
		*s = d.string()
	}
	r.WireKey = r.Key
	if flags&intentSameKey == 0 {
		r.WireKey = d.string()
	}
	r.ServerToken = r.WireKey == "" // without a key on the wire, the server hands out a token in its place
	r.Protected = flags&intentProtected != 0
	if flags&intentOmitted != 0 {
		r.Omitted = d.list()
	}
	if flags&intentKept != 0 {
		r.KeptFields = d.kept()
	}
	if flags&intentCredentials != 0 {
		r.Credentials = d.credentials()
	}
	if flags&intentPauses != 0 {
		r.Pauses = persist.Pauses{Attempts: int(d.varint()), First: time.Duration(d.varint()), Most: time.Duration(d.varint())}
	}
	if flags&intentReading != 0 {
		d.reading(r)
	}
	r.Results = flags&intentResults != 0
	if flags&intentTrace != 0 {
		r.Trace = d.string()
	}
	if flags&intentDrops != 0 {
		r.DropAnswer = d.list()
	}
	r.Business, r.AskFirst = flags&intentBusiness != 0, flags&intentAskFirst != 0
	if flags&intentHeader != 0 {
		r.Header = d.header()
	}
	if flags&intentInside != 0 {
		r.Body = d.body(body.inside)
	}
	return body.Outside, d.end("intent")
}

// DecodeProgress reads a progress, the changeable part, into r. Nothing in r points into b afterwards. If the answer's body is stored outside, the result has
// its length and checksum, and the caller reads it; else it is zero.
// Error: persist.ErrCorrupt, if b is not exactly one progress.
func DecodeProgress(b []byte, r *persist.Record) (Outside, error) {
	d := decoder{b: b}
	times, flags := d.progressHead(r)
	r.FirstSent = d.timeIf(times, timeFirstSent)
	r.SendBefore = d.timeIf(times, timeSendBefore)
	r.LeaseUntil = d.timeIf(times, timeLeaseUntil)
	at := d.timeIf(times, timeAnswer)
	r.HoldReason = persist.HoldReason(d.string())
	r.Effect = persist.Effect(d.string())
	r.Attempts = int(d.varint())
	r.Sends = int(d.varint())
	r.Drives = int(d.varint())
	r.LeaseOwner = d.string()
	if flags&progressForOperators != 0 {
		d.forOperators(r)
	}
	if flags&progressTexts != 0 {
		d.texts(r)
	}
	if flags&progressActs != 0 {
		r.Acts = d.acts()
	}
	if flags&progressEvidence != 0 {
		r.Evidence = d.evidence()
	}
	if flags&progressAnswer == 0 {
		return Outside{}, d.end("progress")
	}
	a := &persist.Answer{At: at}
	out := d.answer(a)
	r.Answer = a
	return out, d.end("progress")
}

// intentHead reads the beginning of an encoded intent (the part of a record frozen by Begin), for PeekIntent and DecodeIntent. It returns the values for the
// indexes of journals, the flags that tell what follows, and the size of the body, stored inside or outside. A flag unknown to this version (from intentFlags
// on) is damage.
func (d *decoder) intentHead() (head Intent, flags uint64, body bodySize) {
	flags = d.uvarint()
	d.bad = d.bad || flags >= intentFlags
	body = d.bodySize(flags&intentOutside != 0)
	head.Generated, head.Erased = flags&intentGenerated != 0, flags&intentErased != 0
	switch {
	case flags&intentUntilSuccess != 0:
		head.KeepRequest = persist.RequestUntilSuccess
	case flags&intentUntilEnd != 0:
		head.KeepRequest = persist.RequestUntilEnd
	}
	head.Outside = flags&intentOutside != 0
	head.Window = time.Duration(d.varint())
	head.Fingerprint = d.bytes()
	head.Account = d.bytes()
	head.Key = d.bytes()
	head.Created = d.time()
	return head, flags, body
}

// progressHead reads the beginning of an encoded progress (the changeable part of a record) into r. It returns two sets of flags: the times that are set,
// and the optional parts that follow. PeekProgress stops soon after it, and DecodeProgress reads on. A flag unknown to this version (from progressFlags
// on) is damage.
func (d *decoder) progressHead(r *persist.Record) (times byte, flags uint64) {
	flags = d.uvarint()
	d.bad = d.bad || flags >= progressFlags
	r.State = persist.State(flags & progressState)
	r.MaybeSent = flags&progressMaybeSent != 0
	r.PlainHTTP = flags&progressPlainHTTP != 0
	r.Swept = flags&progressSwept != 0
	r.Enqueued = flags&progressEnqueued != 0
	r.Unreported = flags&progressUnreported != 0
	r.KeyTold = flags&progressKeyTold != 0
	r.Told = flags&progressTold != 0
	r.RequestDropped = flags&progressRequestDropped != 0
	r.Revision = d.uvarint()
	if flags&progressKeeping != 0 {
		r.KeepAnswer, r.KeepKey = time.Duration(d.varint()), time.Duration(d.varint())
	}
	if flags&progressKeepText != 0 {
		r.KeepText = time.Duration(d.varint())
	}
	if flags&progressOwed != 0 {
		r.OwedFrom = d.time()
	}
	if flags&progressDeserted != 0 {
		r.DesertedUntil = d.time()
	}
	times = d.byte()
	r.Finished = d.timeIf(times, timeFinished)
	r.NextAttempt = d.timeIf(times, timeNextAttempt)
	r.SendUntil = d.timeIf(times, timeSendUntil)
	return times, flags
}

// kept reads the kept fields, single values of the request's body that outlast it: their number, then the pointer, a mark for a value left out, and the
// value of each. nil means that there is none, or damage (d.bad tells).
func (d *decoder) kept() []persist.KeptField {
	n := d.count()
	if d.bad || n == 0 {
		return nil
	}
	fields := make([]persist.KeptField, n)
	for i := range fields {
		f := &fields[i]
		f.Pointer = d.string()
		f.Omitted = d.byte() != 0
		f.Value = d.string()
	}
	return fields
}

// credentials reads the credentials of a request: their number, then the name and the digest of each. nil means that there is none, or damage (d.bad tells).
func (d *decoder) credentials() []persist.Credential {
	n := d.count()
	if d.bad || n == 0 {
		return nil
	}
	all := make([]persist.Credential, n)
	for i := range all {
		all[i].Name, all[i].Digest = d.string(), d.string()
	}
	return all
}

// reading reads into r the values by which a later request is compared with the record: Facts, Content and Scopes, as appendReading writes them. After
// damage d.bad is set.
func (d *decoder) reading(r *persist.Record) {
	r.Facts, r.Content = d.string(), d.string()
	n := d.count()
	if d.bad || n == 0 {
		return
	}
	r.Scopes = make([]persist.Scope, n)
	for i := range r.Scopes {
		r.Scopes[i].Name, r.Scopes[i].Value = d.string(), d.string()
	}
}

// forOperators reads the fields of a record that are for people: status, note and history, as appendForOperators writes them. The
// decoder is bad after damaged bytes.
func (d *decoder) forOperators(r *persist.Record) {
	r.Status = int(d.varint())
	r.Note = d.string()
	n := d.count()
	if d.bad || n == 0 {
		return
	}
	r.History = make([]persist.Attempt, n)
	for i := range r.History {
		a := &r.History[i]
		a.At, a.Took, a.Status = d.time(), time.Duration(d.varint()), int(d.varint())
		a.Sent = d.byte() != 0
		a.Error = d.string()
	}
}

// acts reads the acts of persons on the operation, such as a settlement: their number, then the time, the name and the note of each. nil means that there is
// none, or damage (d.bad tells).
func (d *decoder) acts() []persist.Act {
	n := d.count()
	if d.bad || n == 0 {
		return nil
	}
	all := make([]persist.Act, n)
	for i := range all {
		all[i] = persist.Act{At: d.time(), Did: d.string(), Note: d.string()}
	}
	return all
}

// texts reads into r the texts that few records have: their number, then a tag and the text of each. An unknown tag is damage.
func (d *decoder) texts(r *persist.Record) {
	for range d.count() {
		switch d.byte() {
		case textToken:
			r.Token = d.string()
		case textReplaces:
			r.Replaces = d.string()
		case textCredential:
			r.Credential = d.string()
		case textRegion:
			r.Region = d.string()
		case textNeeds:
			r.SealedNeeds = d.string()
		case textReplacedBy:
			r.ReplacedBy = d.string()
		case textRun:
			r.RedriveRun = d.string()
		case textEnd:
			r.SealedEnd = d.string()
		default:
			d.bad = true
		}
	}
}

// evidence reads an event of the API that proves the effect of an operation: its texts, and the time at which it was stored. After damage d.bad is set.
func (d *decoder) evidence() *persist.Evidence {
	e := &persist.Evidence{}
	for _, s := range [...]*string{&e.Event, &e.Type, &e.By, &e.Scheme, &e.Digest} {
		*s = d.string()
	}
	e.At = d.time()
	return e
}

// answer reads an answer into a. If its body is stored outside, the result has its length and checksum; else it is zero.
func (d *decoder) answer(a *persist.Answer) Outside {
	flags := d.byte()
	body := d.bodySize(flags&answerOutside != 0)
	a.BodyDropped = flags&answerDropped != 0
	a.Replayed = flags&answerReplayed != 0
	a.AlreadyDone = flags&answerAlreadyDone != 0
	a.Stored = flags&answerStored != 0
	a.Status = int(d.varint())
	d.strings(body.inside) // all but the body becomes one string, of which the texts below are parts
	if flags&answerLess != 0 {
		a.Dropped = d.list()
	}
	if flags&answerHeader != 0 {
		a.Header = d.header()
	}
	if flags&answerInside != 0 {
		a.Body = d.body(body.inside)
	}
	return body.Outside
}

// WithRequestDropped returns a copy of an encoded progress (the changeable part of a record) with Record.RequestDropped set: the request is not kept any
// more. Everything else is as it was, also an answer's body that is kept outside and was not read. The flags are the first number of a progress. A progress
// that does not begin with a number (n <= 0) is damaged, and stays so.
func WithRequestDropped(progress []byte) []byte {
	flags, n := binary.Uvarint(progress)
	b := binary.AppendUvarint(make([]byte, 0, len(progress)+binary.MaxVarintLen64), flags|progressRequestDropped)
	return append(b, progress[max(n, 0):]...)
}
