package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// full has every field set, each to something of its own.
func full() persist.Record {
	at := time.Date(2026, 3, 4, 5, 6, 7, 890_000_001, time.UTC)
	return persist.Record{
		ID: persist.ID{Account: "acct|Stripe-Account=a%20b", Key: "idemp:order:u1:o1"}, Revision: 1 << 40,
		State: persist.StateHeld, HoldReason: persist.HoldExpired, Generated: true, PlainHTTP: true, Enqueued: true, Unreported: true, KeyTold: true, Results: true,
		Origin: "https://api.example:443", Method: "POST", Target: "/v1/charges?x=1",
		Header: http.Header{"Content-Type": {"application/json"}, "X-Many": {"a", "", "b"}, "X-None": {}},
		Body:   []byte("{\"amount\":100}"), Omitted: []string{"Authorization", "userinfo"},
		KeptFields:  []persist.KeptField{{Pointer: "/amount", Value: "100"}, {Pointer: "/note", Omitted: true}},
		Credentials: []persist.Credential{{Name: "Authorization", Digest: "d1"}, {Name: "?token", Digest: "\xff"}},
		Business:    true, AskFirst: true, Facts: "facts", Content: "\x00content", Trace: "00-trace", DropAnswer: []string{"/a", "/b\xff"}, Scopes: []persist.Scope{{Name: "Stripe-Account", Value: "acct_1"}, {Name: "X"}},
		Carrier: "header", CarrierName: "Idempotency-Key", Protected: true, WireKey: "\"quoted\"",
		Profile: "stripe-v1", ProfileVersion: "2026-01-01", Window: 24 * time.Hour, KeepAnswer: -1, KeepKey: 1 << 62, KeepText: -1, SealedEnd: "end \xff", Pauses: persist.Pauses{Attempts: 2, First: time.Second, Most: time.Hour},
		Fingerprint: bytes.Repeat([]byte{7}, 32), Recipe: "1 content-type",
		Created: at, MaybeSent: true, FirstSent: at.Add(1), NextAttempt: at.Add(2), SendBefore: at.Add(3), SendUntil: at.Add(11), OwedFrom: at.Add(12), DesertedUntil: at.Add(13),
		Attempts: 4, Sends: 5, Drives: 6, LeaseOwner: "worker 1", LeaseUntil: at.Add(6),
		Answer: &persist.Answer{Status: 409, Header: http.Header{"A": {"b"}}, Body: []byte("answer"), Dropped: []string{"/client_secret", "/card/number"},
			BodyDropped: true, Replayed: true, AlreadyDone: true, Stored: true, At: at.Add(7)},
		Token: "tok_1", Replaces: "idemp:order:u1:o0", Credential: "sha256:00", Region: "eu", SealedNeeds: "1 seal=a hidden=AAAA", Effect: persist.EffectAbsent, Finished: at.Add(8), Swept: true, Erased: true, RequestDropped: true, KeepRequest: persist.RequestUntilEnd, Status: 402, Note: "looked at it, it is paid",
		Told: true, ReplacedBy: "idemp:order:u1:o1:gen=2", RedriveRun: "run 1", Acts: []persist.Act{{At: at.Add(13), Did: persist.ActAbsent, Note: "no"}, {At: at.Add(14), Did: persist.ActReopened}},
		Evidence: &persist.Evidence{Event: "evt_1", Type: "payment.\xff", By: "key", Scheme: "stripe", Digest: "\x00digest", At: at.Add(16)},
		History:  []persist.Attempt{{At: at.Add(9), Took: 3, Status: 503, Sent: true, Error: "no answer"}, {At: at.Add(10)}},
	}
}

// bare has nothing set that may be absent.
func bare() persist.Record {
	return persist.Record{ID: persist.ID{Key: "k"}, Fingerprint: make([]byte, 32), WireKey: "k"}
}

func roundTrip(t *testing.T, r persist.Record, limit int) (persist.Record, codec.Outside, codec.Outside) {
	t.Helper()
	intent := codec.AppendIntent(nil, &r, limit)
	if size := codec.IntentSize(&r, limit); len(intent) > size {
		t.Errorf("intent of %d bytes, IntentSize said at most %d", len(intent), size)
	}
	progress := codec.AppendProgress(nil, &r, limit)
	if size := codec.ProgressSize(&r, limit); len(progress) > size {
		t.Errorf("progress of %d bytes, ProgressSize said at most %d", len(progress), size)
	}
	var got persist.Record
	request, err := codec.DecodeIntent(intent, &got)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := codec.DecodeProgress(progress, &got)
	if err != nil {
		t.Fatal(err)
	}
	clear(intent)
	clear(progress)
	return got, request, answer
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	empty := bare()
	empty.Header, empty.Body, empty.Omitted = http.Header{}, []byte{}, []string{}
	empty.Answer = &persist.Answer{Header: http.Header{}, Body: []byte{}}
	same := full()
	same.WireKey = same.Key
	token, pending := full(), bare()
	token.WireKey, token.ServerToken = "", true
	pending.WireKey, pending.ServerToken = "", true
	for name, want := range map[string]persist.Record{
		"full": full(), "bare": bare(), "empty": empty, "same key": same, "server's token": token, "token to be fetched": pending,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, _ := roundTrip(t, want, codec.Inline)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// TestUnknownFlag: a flag of a later version is damage, and not left out.
func TestUnknownFlag(t *testing.T) {
	t.Parallel()
	rec := bare()
	intent := codec.AppendIntent(nil, &rec, codec.Inline)
	_, n := binary.Uvarint(intent)
	intent = append(binary.AppendUvarint(nil, 1<<20), intent[n:]...)
	if _, err := codec.PeekIntent(intent); !errors.Is(err, persist.ErrCorrupt) {
		t.Errorf("an unknown flag: %v, want ErrCorrupt", err)
	}
}

// TestEveryField fails when a field is added to the record and not to the codec.
func TestEveryField(t *testing.T) {
	t.Parallel()
	r := full()
	r.Seq = 1
	for _, v := range []reflect.Value{reflect.ValueOf(r), reflect.ValueOf(*r.Answer)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() && v.Type().Field(i).Name != "ServerToken" { // TestRoundTrip has records with it
				t.Errorf("%s.%s is zero in full(), so that TestRoundTrip proves nothing of it", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
}

func TestOutside(t *testing.T) {
	t.Parallel()
	want := full()
	got, request, answer := roundTrip(t, want, 5)
	if got.Body != nil || got.Answer.Body != nil {
		t.Errorf("bodies %q and %q are inside", got.Body, got.Answer.Body)
	}
	if request != (codec.Outside{Len: len(want.Body), Sum: codec.Checksum(want.Body)}) {
		t.Errorf("request body outside: %+v", request)
	}
	i, _ := codec.PeekIntent(codec.AppendIntent(nil, &want, 5))
	f, _ := codec.PeekProgress(codec.AppendProgress(nil, &want, 5))
	if !i.Outside || !f.Outside {
		t.Errorf("peeking does not show that the bodies are outside: %+v, %+v", i, f)
	}
	if answer != (codec.Outside{Len: 6, Sum: codec.Checksum(want.Answer.Body)}) {
		t.Errorf("answer body outside: %+v", answer)
	}
	if _, request, answer = roundTrip(t, want, len(want.Body)); request.Len != 0 || answer.Len != 0 {
		t.Errorf("bodies of the limit's size are outside")
	}
}

// TestWithRequestDropped: only the mark changes, also beside an answer's body that is kept outside.
func TestWithRequestDropped(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{codec.Inline, 0} {
		want := full()
		want.RequestDropped = false
		progress := codec.AppendProgress(nil, &want, limit)
		want.RequestDropped = true
		if got := codec.WithRequestDropped(progress); !bytes.Equal(got, codec.AppendProgress(nil, &want, limit)) {
			t.Errorf("with a body of %d bytes inside: %x", limit, got)
		}
	}
}

func TestPeek(t *testing.T) {
	t.Parallel()
	r := full()
	intent, progress := codec.AppendIntent(nil, &r, codec.Inline), codec.AppendProgress(nil, &r, codec.Inline)
	i, err := codec.PeekIntent(intent)
	if err != nil || string(i.Account) != r.Account || string(i.Key) != r.Key || !bytes.Equal(i.Fingerprint, r.Fingerprint) ||
		!i.Generated || i.Window != r.Window || !i.Created.Equal(r.Created) || string(i.Origin) != r.Origin || i.KeepRequest != r.KeepRequest {
		t.Errorf("PeekIntent: %+v, %v", i, err)
	}
	f, err := codec.PeekProgress(progress)
	want := codec.Progress{State: r.State, Revision: r.Revision, Swept: true, Unreported: true, RequestGone: true, KeyTold: true, OwedFrom: r.OwedFrom, Finished: r.Finished, NextAttempt: r.NextAttempt, SendUntil: r.SendUntil, KeepAnswer: r.KeepAnswer, KeepKey: r.KeepKey, KeepText: r.KeepText, HoldReason: []byte(r.HoldReason)}
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("PeekProgress: %+v, %v; want %+v", f, err, want)
	}
}

// TestPeekAllocates nothing. It counts allocations, so it is not parallel.
func TestPeekAllocates(t *testing.T) {
	r := full()
	intent, progress := codec.AppendIntent(nil, &r, codec.Inline), codec.AppendProgress(nil, &r, codec.Inline)
	if n := testing.AllocsPerRun(10, func() {
		_, _ = codec.PeekIntent(intent)
		_, _ = codec.PeekProgress(progress)
	}); n != 0 {
		t.Errorf("peeking allocates %v times", n)
	}
}

func TestCutShort(t *testing.T) {
	t.Parallel()
	r := full()
	for name, part := range map[string]struct {
		b      []byte
		decode func([]byte, *persist.Record) (codec.Outside, error)
	}{
		"intent":   {codec.AppendIntent(nil, &r, codec.Inline), codec.DecodeIntent},
		"progress": {codec.AppendProgress(nil, &r, codec.Inline), codec.DecodeProgress},
	} {
		for n := range part.b {
			if _, err := part.decode(part.b[:n], new(persist.Record)); !errors.Is(err, persist.ErrCorrupt) {
				t.Fatalf("%s cut to %d of %d bytes: %v", name, n, len(part.b), err)
			}
		}
		_, err := part.decode(append(part.b, 0), new(persist.Record))
		if !errors.Is(err, persist.ErrCorrupt) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s with a byte too many: %v", name, err)
		}
	}
}

// FuzzDecode: no bytes make a decoder panic, and what it accepts survives
// another round.
func FuzzDecode(f *testing.F) {
	for _, r := range []persist.Record{full(), bare()} {
		for _, limit := range []int{0, codec.Inline} {
			f.Add(codec.AppendIntent(nil, &r, limit))
			f.Add(codec.AppendProgress(nil, &r, limit))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = codec.PeekIntent(b)
		_, _ = codec.PeekProgress(b)
		var r, again persist.Record
		if out, err := codec.DecodeIntent(b, &r); err == nil && out.Len == 0 {
			if _, err := codec.DecodeIntent(codec.AppendIntent(nil, &r, codec.Inline), &again); err != nil || !reflect.DeepEqual(r, again) {
				t.Errorf("intent: %+v came back as %+v, %v", r, again, err)
			}
		}
		r, again = persist.Record{}, persist.Record{}
		if out, err := codec.DecodeProgress(b, &r); err == nil && out.Len == 0 {
			if _, err := codec.DecodeProgress(codec.AppendProgress(nil, &r, codec.Inline), &again); err != nil || !reflect.DeepEqual(r, again) {
				t.Errorf("progress: %+v came back as %+v, %v", r, again, err)
			}
		}
	})
}
