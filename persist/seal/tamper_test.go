package seal_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// full is a held record with something in every sealed part.
func full(key string) persist.Record {
	at := time.Date(2026, 7, 1, 2, 3, 4, 567, time.UTC)
	return persist.Record{
		ID: persist.ID{Account: "shop", Key: key}, State: persist.StateHeld, HoldReason: persist.HoldStoredError, Generated: true,
		Origin: "https://api.example:443", Method: "PATCH", Target: "/secret-target?q=secret-query",
		Header: http.Header{"X-Note": {"secret-header"}}, Body: []byte("secret-body"), Omitted: []string{"X-Secret-Omitted"},
		KeptFields: []persist.KeptField{{Pointer: "/secret-pointer", Value: "secret-kept"}},
		Carrier:    "header", CarrierName: "X-Secret-Carrier", ServerToken: true, Token: "secret-token", Replaces: "secret-replaces", ReplacedBy: "secret-successor", RedriveRun: "secret-run", Acts: []persist.Act{{Did: "secret-did", Note: "secret-act"}}, Credential: "secret-credential", Region: "secret-region", Profile: "secret-profile", ProfileVersion: "secret-version",
		Window: 24 * time.Hour, Fingerprint: []byte("secret-fingerprint-of-32-bytes!!"), Recipe: "secret-recipe", Created: at,
		Credentials: []persist.Credential{{Name: "X-Secret-Credential", Digest: "secret-digest"}}, Protected: true, Pauses: persist.Pauses{Attempts: 3, First: 1, Most: 2},
		Business: true, AskFirst: true, Facts: "secret-facts", Content: "secret-content", Trace: "secret-trace", Scopes: []persist.Scope{{Name: "X-Secret-Scope", Value: "secret-scope"}},
		MaybeSent: true, FirstSent: at, SendUntil: at.Add(time.Minute), Attempts: 2, Sends: 2,
		Answer:   &persist.Answer{Status: 500, Header: http.Header{"X-Answer": {"secret-answer-header"}}, Body: []byte("secret-answer-body"), Stored: true, At: at},
		Evidence: &persist.Evidence{Event: "secret-event", Type: "secret-type", By: "/secret-by", Scheme: "secret-scheme", Digest: "secret-digest-of-the-event-body!", At: at},
		History:  []persist.Attempt{{At: at, Error: "secret-history"}}, Note: "secret-note",
	}
}

// secrets are what must not be found where the record is sealed.
func secrets() []string {
	return []string{
		"PATCH", "secret-target", "secret-query", "secret-header", "secret-body", "X-Secret-Omitted", "secret-pointer", "secret-kept",
		"X-Secret-Carrier", "secret-token", "secret-replaces", "secret-credential", "X-Secret-Credential", "secret-digest", "secret-region", "secret-profile", "secret-version", "secret-fingerprint-of-32-bytes!!", "secret-recipe",
		"X-Answer", "secret-answer-header", "secret-answer-body", "secret-history", "secret-note", "secret-facts", "secret-content", "secret-trace", "X-Secret-Scope", "secret-scope",
		"secret-event", "secret-type", "/secret-by", "secret-scheme", "secret-digest-of-the-event-body!",
	}
}

// sealedPart is one sealed part of a record as the journal keeps it.
type sealedPart struct {
	name string
	get  func(*persist.Record) []byte
	set  func(*persist.Record, []byte)
}

func parts() []sealedPart {
	return []sealedPart{
		{"identity", func(r *persist.Record) []byte { return []byte(r.Target) }, func(r *persist.Record, b []byte) { r.Target = string(b) }},
		{"request", func(r *persist.Record) []byte { return r.Body }, func(r *persist.Record, b []byte) { r.Body = b }},
		{"answer", func(r *persist.Record) []byte { return r.Answer.Body }, func(r *persist.Record, b []byte) { r.Answer.Body = b }},
		{"evidence", func(r *persist.Record) []byte { return []byte(r.Evidence.Type) }, func(r *persist.Record, b []byte) { r.Evidence.Type = string(b) }},
		{"history", func(r *persist.Record) []byte { return []byte(r.History[0].Error) }, func(r *persist.Record, b []byte) { r.History[0].Error = string(b) }},
		{"token", func(r *persist.Record) []byte { return []byte(r.Token) }, func(r *persist.Record, b []byte) { r.Token = string(b) }},
		{"replaces", func(r *persist.Record) []byte { return []byte(r.Replaces) }, func(r *persist.Record, b []byte) { r.Replaces = string(b) }},
		{"replaced by", func(r *persist.Record) []byte { return []byte(r.ReplacedBy) }, func(r *persist.Record, b []byte) { r.ReplacedBy = string(b) }},
		{"run", func(r *persist.Record) []byte { return []byte(r.RedriveRun) }, func(r *persist.Record, b []byte) { r.RedriveRun = string(b) }},
		{"standing", func(r *persist.Record) []byte { return []byte(r.Acts[0].Note) }, func(r *persist.Record, b []byte) { r.Acts = []persist.Act{{Note: string(b)}} }},
		{"credential", func(r *persist.Record) []byte { return []byte(r.Credential) }, func(r *persist.Record, b []byte) { r.Credential = string(b) }},
		{"region", func(r *persist.Record) []byte { return []byte(r.Region) }, func(r *persist.Record, b []byte) { r.Region = string(b) }},
		{"note", func(r *persist.Record) []byte { return []byte(r.Note) }, func(r *persist.Record, b []byte) { r.Note = string(b) }},
	}
}

// sealed is rec as a journal keeps it.
func sealed(t testing.TB, s *seal.Sealer, rec persist.Record) persist.Record {
	t.Helper()
	r, err := s.Seal(rec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealAndUnseal(t *testing.T) {
	t.Parallel()
	for name, s := range sealers(t) {
		for what, change := range map[string]func(*persist.Record){
			"full":      func(*persist.Record) {},
			"nothing":   func(r *persist.Record) { r.Header, r.Body, r.Omitted, r.KeptFields = nil, nil, nil, nil },
			"empty":     func(r *persist.Record) { r.Header, r.Body, r.Omitted = http.Header{}, []byte{}, []string{} },
			"wire key":  func(r *persist.Record) { r.ServerToken, r.Token, r.WireKey = false, "", "secret-token" },
			"no answer": func(r *persist.Record) { r.Answer, r.History, r.Note = nil, nil, "" },
			"long note": func(r *persist.Record) { r.Note = strings.Repeat("n", persist.NoteBytesMax) },
		} {
			rec := full("k")
			change(&rec)
			raw := sealed(t, s, rec)
			got, err := s.Unseal(raw)
			if err != nil || !reflect.DeepEqual(got, rec) {
				t.Errorf("%s, %s: %v: got %+v, want %+v", name, what, err, got, rec)
			}
			if err := raw.Validate(); err != nil {
				t.Errorf("%s, %s: no journal takes it: %v", name, what, err)
			}
			text := fmt.Sprintf("%+v %+v %s %s", raw, raw.Answer, raw.Body, raw.Fingerprint)
			if raw.Evidence != nil {
				text += fmt.Sprintf("%+v", *raw.Evidence)
			}
			if raw.Answer != nil {
				text += string(raw.Answer.Body)
			}
			for _, secret := range secrets() {
				if strings.Contains(text, secret) {
					t.Errorf("%s, %s: %q is in clear", name, what, secret)
				}
			}
		}
	}
}

// Every field of a record is known here as sealed or in clear: whoever adds one has to decide.
func TestEveryField(t *testing.T) {
	t.Parallel()
	const known = "Method Target Header Body Omitted KeptFields Carrier CarrierName WireKey Profile ProfileVersion Fingerprint Recipe Credentials Business AskFirst Facts Content Scopes DropAnswer Trace " + // sealed by Begin
		"Token Replaces ReplacedBy RedriveRun Acts Credential Region Answer History Evidence Note " + // sealed by each change
		"ID Seq Revision State HoldReason Generated PlainHTTP Enqueued Unreported KeyTold Told Results OwedFrom Origin ServerToken Protected Pauses Window KeepAnswer KeepKey KeepText KeepRequest RequestDropped Erased Created MaybeSent FirstSent SendUntil DesertedUntil " + // in clear
		"NextAttempt SendBefore Attempts Sends Drives LeaseOwner LeaseUntil Effect Finished Swept Status " +
		"SealedNeeds SealedEnd" // hidden by itself, so that equal needs look alike
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[persist.Record]()) {
		if len(f.Index) == 1 { // not those of the ID
			fields = append(fields, f.Name)
		}
	}
	slices.Sort(fields)
	if want := slices.Sorted(slices.Values(strings.Fields(known))); !slices.Equal(fields, want) {
		t.Errorf("a record has the fields\n%v; known are\n%v", fields, want)
	}
}

// Two records that are alike do not look alike, and a record that is sealed twice does not either.
func TestSealedApart(t *testing.T) {
	t.Parallel()
	s := sealers(t)["one key"]
	one, again, other := sealed(t, s, full("k")), sealed(t, s, full("k")), sealed(t, s, full("l"))
	for _, p := range parts() {
		if bytes.Equal(p.get(&one), p.get(&again)) || bytes.Equal(p.get(&one), p.get(&other)) {
			t.Errorf("two sealed parts %s are the same", p.name)
		}
	}
}

// Whatever is put in the place of a sealed part, it is damage: a part of another record, of another field, of an earlier
// record of the same key, and one that was changed or cut off.
func TestTampered(t *testing.T) {
	t.Parallel()
	s := sealers(t)["three keys"]
	other, later := full("other"), full("k")
	later.Created = later.Created.Add(1)
	elsewhere := full("k")
	elsewhere.Account = "shop|Stripe-Account=2"
	for _, p := range parts() {
		part := func(rec persist.Record) []byte {
			r := sealed(t, s, rec)
			return p.get(&r)
		}
		bad := map[string][]byte{
			"of another record":      part(other),
			"of another account":     part(elsewhere),
			"of another incarnation": part(later),
			"of no length":           {},
			"of another version":     append([]byte{9}, part(full("k"))[1:]...),
		}
		for _, q := range parts() {
			if r := sealed(t, s, full("k")); q.name != p.name {
				bad["of the field "+q.name] = q.get(&r)
			}
		}
		whole := part(full("k"))
		for _, n := range []int{1, 2, 3, 6, 7, 8, 19, 34, len(whole) - 16, len(whole) - 1} {
			bad[fmt.Sprintf("cut off after %d bytes", n)] = whole[:n]
		}
		for i := range whole {
			if i >= 2 && i < 7 { // the key's id and check: another key, which is an error of its own
				continue
			}
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1
			bad[fmt.Sprintf("with byte %d changed", i)] = flipped
		}
		for name, b := range bad {
			raw := sealed(t, s, full("k"))
			if p.set(&raw, b); len(b) == 0 && slices.Contains([]string{"note", "token", "replaces", "replaced by", "run", "credential", "region"}, p.name) {
				continue // the same as none, which is not sealed
			}
			if rec, err := s.Unseal(raw); !errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrSealed) || !strings.Contains(err.Error(), `"k"`) || !reflect.DeepEqual(rec, persist.Record{}) {
				t.Errorf("a part %s %s: %+v, %v; want ErrCorrupt that names the record", p.name, name, rec, err)
			}
		}
	}
}

// What a journal finds a sealed record by has to be what belongs to it.
func TestTamperedIndex(t *testing.T) {
	t.Parallel()
	s := sealers(t)["one key"]
	other := sealed(t, s, func() persist.Record { r := full("k"); r.Fingerprint = bytes.Repeat([]byte("x"), 32); return r }())
	for name, change := range map[string]func(*persist.Record){
		"key":                func(r *persist.Record) { r.Key = "l" },
		"account":            func(r *persist.Record) { r.Account = "" },
		"fingerprint":        func(r *persist.Record) { r.Fingerprint = other.Fingerprint },
		"time of creation":   func(r *persist.Record) { r.Created = r.Created.Add(-1) },
		"kind of key":        func(r *persist.Record) { r.Generated = false },
		"carrier of a token": func(r *persist.Record) { r.ServerToken, r.Token, r.WireKey = false, "", "k" },
		"origin":             func(r *persist.Record) { r.Origin = "https://evil.example:443" },
		"window":             func(r *persist.Record) { r.Window++ },
		"state":              func(r *persist.Record) { r.State, r.HoldReason = persist.StatePending, "" },
		"state, ended":       func(r *persist.Record) { r.State, r.HoldReason, r.Finished = persist.StateConfirmed, "", r.Created },
		"effect": func(r *persist.Record) {
			r.State, r.HoldReason, r.Effect, r.Finished = persist.StateSettled, "", persist.EffectAbsent, r.Created
		},
		"hold":                   func(r *persist.Record) { r.HoldReason = persist.HoldExpired },
		"mark":                   func(r *persist.Record) { r.MaybeSent = false },
		"number of attempts":     func(r *persist.Record) { r.Attempts-- },
		"number of sends":        func(r *persist.Record) { r.Sends = 0 },
		"first send":             func(r *persist.Record) { r.FirstSent = r.FirstSent.Add(1) },
		"end":                    func(r *persist.Record) { r.Finished = r.Created },
		"bound of a first send":  func(r *persist.Record) { r.SendBefore = r.Created },
		"promise":                func(r *persist.Record) { r.Enqueued = true },
		"caller":                 func(r *persist.Record) { r.PlainHTTP = true },
		"caller that was told":   func(r *persist.Record) { r.Told = true },
		"status without answer":  func(r *persist.Record) { r.Answer, r.Status = nil, 201 },
		"answer, removed":        func(r *persist.Record) { r.Answer, r.Status = nil, r.Answer.Status },
		"answer's time":          func(r *persist.Record) { r.Answer.At = r.Answer.At.Add(1) },
		"evidence, removed":      func(r *persist.Record) { r.Evidence = nil },
		"evidence's time":        func(r *persist.Record) { r.Evidence.At = r.Evidence.At.Add(1) },
		"history, removed":       func(r *persist.Record) { r.History = nil },
		"note, removed":          func(r *persist.Record) { r.Note = "" },
		"predecessor, removed":   func(r *persist.Record) { r.Replaces = "" },
		"successor, removed":     func(r *persist.Record) { r.ReplacedBy = "" },
		"run, removed":           func(r *persist.Record) { r.RedriveRun = "" },
		"credential, removed":    func(r *persist.Record) { r.Credential = "" },
		"region, removed":        func(r *persist.Record) { r.Region = "" },
		"acts, removed":          func(r *persist.Record) { r.Acts = nil },
		"sweep of no end":        func(r *persist.Record) { r.Strip() },
		"abandoned, other sends": func(r *persist.Record) { abandon(r); r.Sends = 0 },
		"answer's status":        func(r *persist.Record) { r.Answer.Status = 201 },
		"request, as swept":      func(r *persist.Record) { r.Body = nil },
	} {
		raw := sealed(t, s, full("k"))
		if change(&raw); raw.Validate() != nil {
			t.Fatalf("%s: %v", name, raw.Validate())
		}
		if _, err := s.Unseal(raw); !errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrSealed) {
			t.Errorf("with another %s: %v; want ErrCorrupt", name, err)
		}
	}
}

// abandon ends a record as abandoned, as it can be ended without the keys.
func abandon(r *persist.Record) {
	r.State, r.HoldReason, r.Finished, r.Answer = persist.StateAbandoned, "", r.Created.Add(1), nil
}

// A part of an earlier version of the same record is not taken for that of this one, and an answer that comes back after a sweep is not
// taken for the one that was swept.
func TestPutBack(t *testing.T) {
	t.Parallel()
	s := sealers(t)["one key"]
	first := full("k")
	was := sealed(t, s, first)
	for _, p := range parts() {
		if p.name == "identity" || p.name == "request" {
			continue // frozen by Begin
		}
		is := sealed(t, s, first)
		p.set(&is, p.get(&was))
		if _, err := s.Unseal(is); !errors.Is(err, persist.ErrCorrupt) {
			t.Errorf("%s of an earlier version: %v; want ErrCorrupt", p.name, err)
		}
	}
	ended := full("k")
	ended.State, ended.HoldReason, ended.Effect, ended.Finished = persist.StateConfirmed, "", persist.EffectHappened, ended.Created.Add(1)
	ended.Answer.Status = 201
	raw, before := sealed(t, s, ended), sealed(t, s, ended)
	raw.Strip()
	if rec, err := s.Unseal(raw); err != nil || rec.Status != 201 || len(rec.Acts) != 1 || rec.Evidence == nil {
		t.Errorf("swept: %+v, %v", rec, err)
	}
	for name, change := range map[string]func(*persist.Record){
		"status":  func(r *persist.Record) { r.Status = 404 },
		"effect":  func(r *persist.Record) { r.Effect = persist.EffectRefused },
		"state":   func(r *persist.Record) { r.State, r.Effect = persist.StateSettled, persist.EffectAbsent },
		"end":     func(r *persist.Record) { r.State, r.Effect = persist.StateAbandoned, "" },
		"answer":  func(r *persist.Record) { r.Answer, r.Status = before.Answer, 0 },
		"history": func(r *persist.Record) { r.History, r.Swept = before.History, false },
	} {
		forged := raw.Clone()
		change(&forged)
		if _, err := s.Unseal(forged); !errors.Is(err, persist.ErrCorrupt) {
			t.Errorf("swept, with another %s: %v; want ErrCorrupt", name, err)
		}
	}
}

// Without the keys an operation can be abandoned, and is then read as such with them. That proves nothing of its effect.
func TestAbandonedWithoutKeys(t *testing.T) {
	t.Parallel()
	s := sealers(t)["one key"]
	raw := sealed(t, s, full("k"))
	abandon(&raw)
	rec, err := s.Unseal(raw)
	if err != nil || rec.State != persist.StateAbandoned || rec.FinalEffect() != persist.EffectUnknown || rec.Sends != 2 || len(rec.Acts) != 1 {
		t.Errorf("%+v, %v", rec, err)
	}
	raw.Strip()
	if _, err := s.Unseal(raw); err != nil {
		t.Errorf("swept: %v", err)
	}
	ended := full("k")
	ended.State, ended.HoldReason, ended.Finished = persist.StateMismatched, "", ended.Created
	raw = sealed(t, s, ended)
	abandon(&raw)
	if _, err := s.Unseal(raw); !errors.Is(err, persist.ErrCorrupt) {
		t.Errorf("after another end: %v; want ErrCorrupt", err)
	}
}

// A damaged record hides no other, and nothing overwrites it.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	s, ctx, below := sealers(t)["one key"], t.Context(), memory.New()
	first, second := sealed(t, s, full("first")), sealed(t, s, full("second"))
	first.Body, second.Body = second.Body, first.Body
	for _, raw := range []persist.Record{first, second, sealed(t, s, full("third"))} {
		if _, _, err := below.Begin(ctx, raw); err != nil {
			t.Fatal(err)
		}
	}
	j, err := s.Journal(ctx, below)
	if err != nil {
		t.Fatal(err)
	}
	before, err := below.Get(ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, created, err := j.Begin(ctx, full("first")); created || !errors.Is(err, persist.ErrCorrupt) {
		t.Errorf("Begin: created %t, %v; want ErrCorrupt", created, err)
	}
	if _, err := j.Get(ctx, first.ID); !errors.Is(err, persist.ErrCorrupt) {
		t.Errorf("Get: %v; want ErrCorrupt", err)
	}
	for _, q := range []persist.Query{{AllAccounts: true}, {AllAccounts: true, Unresolved: full("").Fingerprint}} {
		damaged, whole := 0, ""
		for rec, err := range j.List(ctx, q) {
			switch {
			case errors.Is(err, persist.ErrCorrupt):
				damaged++
			case err != nil:
				t.Fatal(err)
			default:
				whole += rec.Key
			}
		}
		if damaged != 2 || whole != "third" {
			t.Errorf("List: %d damaged, whole %q; want 2, and the third", damaged, whole)
		}
	}
	if after, err := below.Get(ctx, first.ID); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the damaged record has changed: %v", err)
	}
}
