package persist_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/persist"
)

func valid() persist.Record {
	return persist.Record{
		ID: persist.ID{Account: "a", Key: "k"}, Origin: "https://api.example:443", Method: "POST", Target: "/",
		WireKey: "k", Fingerprint: make([]byte, 32), Window: time.Hour,
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	for name, c := range map[string]struct {
		change func(*persist.Record)
		ok     bool
	}{
		"pending":                {func(r *persist.Record) {}, true},
		"unnamed account":        {func(r *persist.Record) { r.Account = "" }, true},
		"no key":                 {func(r *persist.Record) { r.Key = "" }, false},
		"no origin":              {func(r *persist.Record) { r.Origin = "" }, false},
		"no method":              {func(r *persist.Record) { r.Method = "" }, false},
		"no wire key":            {func(r *persist.Record) { r.WireKey = "" }, false},
		"fingerprint too short":  {func(r *persist.Record) { r.Fingerprint = make([]byte, 31) }, false},
		"fingerprint too long":   {func(r *persist.Record) { r.Fingerprint = make([]byte, 33) }, false},
		"state out of range":     {func(r *persist.Record) { r.State = 6 }, false},
		"held with a reason":     {func(r *persist.Record) { r.State, r.HoldReason = persist.StateHeld, persist.HoldCaller }, true},
		"held without":           {func(r *persist.Record) { r.State = persist.StateHeld }, false},
		"pending with a reason":  {func(r *persist.Record) { r.HoldReason = persist.HoldCaller }, false},
		"maybe sent":             {func(r *persist.Record) { r.MaybeSent, r.FirstSent = true, now }, true},
		"maybe sent, but never":  {func(r *persist.Record) { r.MaybeSent = true }, false},
		"confirmed":              {func(r *persist.Record) { r.State, r.Finished = persist.StateConfirmed, now }, true},
		"confirmed without time": {func(r *persist.Record) { r.State = persist.StateConfirmed }, false},
		"settled": {func(r *persist.Record) {
			r.State, r.Finished, r.Effect = persist.StateSettled, now, persist.EffectAbsent
		}, true},
		"settled as nothing":  {func(r *persist.Record) { r.State, r.Finished = persist.StateSettled, now }, false},
		"note too long":       {func(r *persist.Record) { r.Note = strings.Repeat("x", persist.NoteBytesMax+1) }, false},
		"history too long":    {func(r *persist.Record) { r.History = make([]persist.Attempt, persist.HistoryMax+1) }, false},
		"pending with effect": {func(r *persist.Record) { r.Effect = persist.EffectHappened }, false},
		"abandoned and effect": {func(r *persist.Record) {
			r.State, r.Finished, r.Effect = persist.StateAbandoned, now, persist.EffectAbsent
		}, false},
		"unreported": {func(r *persist.Record) {
			r.State, r.Finished, r.Generated, r.Unreported = persist.StateConfirmed, now, true, true
		}, true},
		"unreported, chosen key": {func(r *persist.Record) {
			r.State, r.Finished, r.Unreported = persist.StateConfirmed, now, true
		}, false},
		"token to be fetched": {func(r *persist.Record) { r.ServerToken, r.WireKey = true, "" }, true},
		"token": {func(r *persist.Record) {
			r.ServerToken, r.WireKey, r.Token, r.MaybeSent, r.FirstSent, r.Sends = true, "", "t", true, now, 1
		}, true},
		"token and wire key":           {func(r *persist.Record) { r.ServerToken = true }, false},
		"token of nothing":             {func(r *persist.Record) { r.Token = "t" }, false},
		"sent before its token":        {func(r *persist.Record) { r.ServerToken, r.WireKey, r.MaybeSent, r.FirstSent = true, "", true, now }, false},
		"token taken back after sends": {func(r *persist.Record) { r.ServerToken, r.WireKey, r.Sends = true, "", 1 }, false},
		"kept fields at their bounds":  {func(r *persist.Record) { r.KeptFields = keptFields(persist.KeptFieldsMax, persist.KeptFieldsBytesMax) }, true},
		"too many kept fields":         {func(r *persist.Record) { r.KeptFields = keptFields(persist.KeptFieldsMax+1, 100) }, false},
		"too long kept fields":         {func(r *persist.Record) { r.KeptFields = keptFields(2, persist.KeptFieldsBytesMax+1) }, false},
		"a kept field of nothing":      {func(r *persist.Record) { r.KeptFields = []persist.KeptField{{Value: "1"}} }, false},
		"an omitted value": {func(r *persist.Record) {
			r.KeptFields = []persist.KeptField{{Pointer: "/a", Value: "1", Omitted: true}}
		}, false},
		"credentials at their bounds": {func(r *persist.Record) {
			r.Credentials = credentials(persist.CredentialsMax, persist.CredentialNameBytesMax, persist.CredentialDigestBytesMax)
		}, true},
		"too many credentials":         {func(r *persist.Record) { r.Credentials = credentials(persist.CredentialsMax+1, 4, 4) }, false},
		"a credential's name too long": {func(r *persist.Record) { r.Credentials = credentials(1, persist.CredentialNameBytesMax+1, 1) }, false},
		"a digest too long":            {func(r *persist.Record) { r.Credentials = credentials(1, 4, persist.CredentialDigestBytesMax+1) }, false},
		"a credential without a name":  {func(r *persist.Record) { r.Credentials = []persist.Credential{{Digest: "d"}} }, false},
		"a credential of nothing":      {func(r *persist.Record) { r.Credentials = []persist.Credential{{Name: "Cookie"}} }, false},
		"two digests of one credential": {func(r *persist.Record) {
			r.Credentials = []persist.Credential{{Name: "Cookie", Digest: "1"}, {Name: "Cookie", Digest: "2"}}
		}, false},
		"scopes at their bounds":  {func(r *persist.Record) { r.Scopes = scopes(persist.ScopesMax, persist.ScopeBytesMax) }, true},
		"too many scopes":         {func(r *persist.Record) { r.Scopes = scopes(persist.ScopesMax+1, 4) }, false},
		"a scope too long":        {func(r *persist.Record) { r.Scopes = scopes(1, persist.ScopeBytesMax+1) }, false},
		"a scope without a name":  {func(r *persist.Record) { r.Scopes = []persist.Scope{{Value: "v"}} }, false},
		"a scope of no request":   {func(r *persist.Record) { r.Scopes = []persist.Scope{{Name: "X"}} }, true},
		"two values of one scope": {func(r *persist.Record) { r.Scopes = []persist.Scope{{"X", "1"}, {"X", "2"}} }, false},
		"a content at its bound":  {func(r *persist.Record) { r.Content = strings.Repeat("x", persist.ContentBytesMax) }, true},
		"a content too long":      {func(r *persist.Record) { r.Content = strings.Repeat("x", persist.ContentBytesMax+1) }, false},
		"told, unfinished":        {func(r *persist.Record) { r.Generated, r.KeyTold = true, true }, false},
		"told, a chosen key": {func(r *persist.Record) {
			r.State, r.Finished, r.KeyTold = persist.StateConfirmed, time.Now(), true
		}, false},
		"told": {func(r *persist.Record) {
			r.State, r.Finished, r.Generated, r.KeyTold = persist.StateConfirmed, time.Now(), true, true
		}, true},
		"evidence": {func(r *persist.Record) {
			r.Evidence = &persist.Evidence{Type: "t", By: "key", Digest: strings.Repeat("d", 32), At: time.Now()}
		}, true},
		"evidence without a digest": {func(r *persist.Record) { r.Evidence = &persist.Evidence{Type: "t", By: "key", At: time.Now()} }, false},
		"evidence with a long text": {func(r *persist.Record) {
			r.Evidence = &persist.Evidence{Type: strings.Repeat("t", 256), By: "key", Digest: strings.Repeat("d", 32), At: time.Now()}
		}, false},
		"unreported, unfinished": {func(r *persist.Record) { r.Generated, r.Unreported = true, true }, false},
	} {
		r := valid()
		c.change(&r)
		err := r.Validate()
		if c.ok != (err == nil) || err != nil && (!errors.Is(err, persist.ErrInvalid) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// keptFields are n fields of so many bytes in all.
func keptFields(n, size int) []persist.KeptField {
	fields := make([]persist.KeptField, n)
	for i := range fields {
		fields[i].Pointer = fmt.Sprintf("/%d", i)
		size -= len(fields[i].Pointer)
	}
	fields[n-1].Value = strings.Repeat("v", size)
	return fields
}

// credentials are n credentials with names and digests of so many bytes.
func credentials(n, name, digest int) []persist.Credential {
	all := make([]persist.Credential, n)
	for i := range all {
		all[i] = persist.Credential{Name: fmt.Sprintf("%0*d", name, i), Digest: strings.Repeat("d", digest)}
	}
	return all
}

// TestMarkedByClaim: a claim marks only what was never sent, has what its first send needs, is protected, and may be sent now.
func TestMarkedByClaim(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		change func(*persist.Record)
		want   bool
	}{
		"protected":                   {func(*persist.Record) {}, true},
		"not protected":               {func(r *persist.Record) { r.Protected = false }, false},
		"protected, without a header": {func(r *persist.Record) { r.Carrier = "none" }, true},
		"maybe sent":                  {func(r *persist.Record) { r.MaybeSent = true }, false},
		"without its token":           {func(r *persist.Record) { r.ServerToken = true }, false},
		"sealed":                      {func(r *persist.Record) { r.Carrier = persist.CarrierSealed }, false},
		"to be sent before a later":   {func(r *persist.Record) { r.SendBefore = now.Add(1) }, true},
		"to be sent before now":       {func(r *persist.Record) { r.SendBefore = now }, false},
		"to be sent before the past":  {func(r *persist.Record) { r.SendBefore = now.Add(-1) }, false},
	} {
		r := valid()
		r.Carrier, r.Protected = "header", true
		c.change(&r)
		if got := r.MarkedByClaim(now); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestExtendSendUntil: the later time stays.
func TestExtendSendUntil(t *testing.T) {
	t.Parallel()
	r := valid()
	for _, step := range []struct{ to, want int64 }{{20, 20}, {10, 20}, {30, 30}} {
		if r.ExtendSendUntil(time.Unix(step.to, 0)); !r.SendUntil.Equal(time.Unix(step.want, 0)) {
			t.Errorf("after %d it is %v, want %d", step.to, r.SendUntil, step.want)
		}
	}
}

// FuzzAccount: no two lists of parts give one account, and a '|' stands between
// parts only.
func FuzzAccount(f *testing.F) {
	f.Add("a", "S", "1", "a|S=1", "", "")
	f.Add("a", "S=", "1", "a", "S", "=1")
	f.Add("a%7C", "", "", "a|", "", "")
	f.Fuzz(func(t *testing.T, name1, header1, value1, name2, header2, value2 string) {
		one := persist.Account(name1, [2]string{header1, value1})
		two := persist.Account(name2, [2]string{header2, value2})
		same := name1 == name2 && header1 == header2 && value1 == value2
		if (one == two) != same {
			t.Errorf("%q %q %q is %q, %q %q %q is %q", name1, header1, value1, one, name2, header2, value2, two)
		}
		plain := persist.Account(name1)
		if n := strings.Count(one, "|"); n != 1 || strings.Count(plain, "|") != 0 || !strings.HasPrefix(one, plain+"|") {
			t.Errorf("%q with one scope is %q, without %q", name1, one, plain)
		}
		for i := range len(one) {
			if c := one[i]; c <= ' ' || c >= 0x7f {
				t.Errorf("%q has byte %#x", one, c)
			}
		}
	})
}

// filled is a record in which every field has a value of its own.
func filled(t *testing.T) persist.Record {
	t.Helper()
	var r persist.Record
	n := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		n++
		switch x := v.Addr().Interface().(type) {
		case *time.Time:
			*x = time.Unix(int64(n), 0)
		case *http.Header:
			*x = http.Header{"A": {fmt.Sprint(n), "b"}}
		case *[]byte:
			*x = bytes.Repeat([]byte{byte(n)}, 32)
		case *[]string:
			*x = []string{fmt.Sprint(n)}
		case *[]persist.Attempt:
			*x = []persist.Attempt{{At: time.Unix(int64(n), 0), Error: fmt.Sprint(n)}}
		case *[]persist.Act:
			*x = []persist.Act{{At: time.Unix(int64(n), 0), Did: fmt.Sprint(n)}}
		case *[]persist.Credential:
			*x = []persist.Credential{{Name: fmt.Sprint(n), Digest: fmt.Sprint(n)}}
		case *[]persist.Scope:
			*x = []persist.Scope{{Name: fmt.Sprint(n), Value: fmt.Sprint(n)}}
		case *[]persist.KeptField:
			*x = []persist.KeptField{{Pointer: "/" + fmt.Sprint(n), Value: fmt.Sprint(n)}}
		case *bool:
			*x = true
		case **persist.Evidence:
			*x = &persist.Evidence{}
			fill(reflect.ValueOf(*x).Elem())
		case **persist.Answer:
			*x = &persist.Answer{}
			fill(reflect.ValueOf(*x).Elem())
		default:
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					fill(v.Field(i))
				}
			case reflect.String:
				v.SetString(fmt.Sprint(n))
			case reflect.Int, reflect.Int64:
				v.SetInt(int64(n))
			case reflect.Uint8, reflect.Uint64:
				v.SetUint(uint64(n))
			default:
				t.Fatalf("a field of type %v: teach the test about it", v.Type())
			}
		}
	}
	fill(reflect.ValueOf(&r).Elem())
	return r
}

// scopes are n scopes whose names and values are of this length.
func scopes(n, length int) (all []persist.Scope) {
	for i := range n {
		name := fmt.Sprint(i)
		all = append(all, persist.Scope{Name: name + strings.Repeat("x", length-len(name)), Value: strings.Repeat("v", length)})
	}
	return all
}

func TestClone(t *testing.T) {
	t.Parallel()
	r := filled(t)
	c := r.Clone()
	if !reflect.DeepEqual(r, c) {
		t.Errorf("clone differs: %+v, %+v", r, c)
	}
	r.Header["A"][0], r.Body[0], r.Omitted[0], r.Fingerprint[0] = "x", 'x', "x", 'x'
	r.History[0].Error, r.KeptFields[0].Value, r.Credentials[0].Digest, r.Scopes[0].Value = "x", "x", "x", "x"
	r.Answer.Header["A"][0], r.Answer.Body[0], r.Answer.Status = "x", 'x', -1
	if want := filled(t); !reflect.DeepEqual(c, want) {
		t.Errorf("writing to the record changed its clone: %+v", c)
	}
}

func TestStrip(t *testing.T) {
	t.Parallel()
	r, was := filled(t), filled(t)
	r.Strip()
	if r.Header != nil || r.Body != nil || r.Answer != nil || r.Omitted != nil || r.History != nil || !r.Swept || r.Status != was.Answer.Status {
		t.Errorf("a tombstone keeps %+v", r)
	}
	if r.ID != was.ID || !bytes.Equal(r.Fingerprint, was.Fingerprint) || r.Recipe != was.Recipe || r.WireKey != was.WireKey || r.State != was.State {
		t.Errorf("a tombstone has lost what identifies it: %+v", r)
	}
	if !slices.Equal(r.Credentials, was.Credentials) || !r.Protected {
		t.Errorf("a tombstone has lost to whom it belongs: %+v", r)
	}
	if !slices.Equal(r.Scopes, was.Scopes) || r.Content != was.Content || r.Facts != was.Facts || r.Business != was.Business {
		t.Errorf("a tombstone has lost what tells another request from its own: %+v", r)
	}
	if !slices.Equal(r.KeptFields, was.KeptFields) || r.FirstSent != was.FirstSent || r.Finished != was.Finished {
		t.Errorf("a tombstone has lost what an audit needs: %+v", r)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	for s, want := range map[persist.State]string{
		persist.StatePending: "pending false", persist.StateHeld: "held false", persist.StateConfirmed: "confirmed true",
		persist.StateMismatched: "mismatched true", persist.StateSettled: "settled true", persist.StateAbandoned: "abandoned true", 9: "state(9) true",
	} {
		if got := fmt.Sprintf("%v %t", s, s.Final()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if text, err := s.MarshalText(); err != nil || string(text) != s.String() {
			t.Errorf("MarshalText of %v: %q, %v", s, text, err)
		}
	}
}

func TestLeased(t *testing.T) {
	t.Parallel()
	until := time.Unix(100, 0)
	r := persist.Record{LeaseOwner: "one", LeaseUntil: until}
	if !r.Leased("two", until.Add(-1)) || r.Leased("two", until) || r.Leased("one", until.Add(-1)) {
		t.Error("a lease holds against others, until it ends")
	}
	if (&persist.Record{LeaseUntil: until}).Leased("two", until.Add(-1)) {
		t.Error("a record without an owner is leased")
	}
}

func TestAttachment(t *testing.T) {
	t.Parallel()
	var a persist.Attachment
	var wg sync.WaitGroup
	created := 0
	for range 8 {
		wg.Go(func() {
			if v := a.Attach(func() any { created++; return &created }); v != any(&created) {
				t.Errorf("got %v", v)
			}
		})
	}
	wg.Wait()
	if created != 1 {
		t.Errorf("%d values were created", created)
	}
}

// wrapped is a journal that shows what it wraps; nothing calls its methods.
type wrapped struct{ persist.Journal }

func (w wrapped) Unwrap() persist.Journal { return w.Journal }

// claiming is a journal with leases.
type claiming struct {
	persist.Journal
	persist.Claimer
}

func TestAs(t *testing.T) {
	t.Parallel()
	inner := &claiming{}
	for name, c := range map[string]struct {
		j    persist.Journal
		want bool
	}{
		"none":           {nil, false},
		"itself":         {inner, true},
		"wrapped":        {wrapped{inner}, true},
		"wrapped twice":  {wrapped{wrapped{inner}}, true},
		"not there":      {wrapped{struct{ persist.Journal }{}}, false},
		"hidden":         {struct{ persist.Journal }{inner}, false},
		"wraps no other": {wrapped{}, false},
	} {
		if got, ok := persist.As[persist.Claimer](c.j); ok != c.want || ok && got != persist.Claimer(inner) {
			t.Errorf("%s: %v, %t; want %t", name, got, ok, c.want)
		}
	}
}

// The history holds the latest attempts, and shares nothing with other records.
func TestAddAttempt(t *testing.T) {
	t.Parallel()
	var r persist.Record
	for i := range 2 * persist.HistoryMax {
		before := r
		r.AddAttempt(persist.Attempt{Status: i, Error: strings.Repeat("é", persist.AttemptErrorBytesMax)})
		if len(before.History) > 0 && before.History[len(before.History)-1].Status != i-1 {
			t.Fatal("a record that shared the history has changed")
		}
	}
	if n := len(r.History); n != persist.HistoryMax || r.History[0].Status != persist.HistoryMax || r.History[n-1].Status != 2*persist.HistoryMax-1 {
		t.Errorf("%d attempts from %d", n, r.History[0].Status)
	}
	if e := r.History[0].Error; len(e) > persist.AttemptErrorBytesMax || !utf8.ValidString(e) || e == "" {
		t.Errorf("error of %d bytes, valid %t", len(e), utf8.ValidString(e))
	}
}

// What cannot be read for want of a key is treated as what is damaged, and not called so.
func TestSealed(t *testing.T) {
	t.Parallel()
	r := valid()
	if err := r.Sealed(); err != nil {
		t.Errorf("a record in clear: %v", err)
	}
	r.Carrier, r.CarrierName = persist.CarrierSealed, "2026-07"
	err := r.Sealed()
	if !errors.Is(err, persist.ErrSealed) || !errors.Is(err, persist.ErrCorrupt) || strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), `"2026-07"`) {
		t.Errorf("a sealed record: %v", err)
	}
}
