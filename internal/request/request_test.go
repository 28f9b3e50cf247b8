package request

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

func reader() *Reader {
	return &Reader{
		Account: "acme", MaxHeaderBytes: 1000, Bodies: Bodies{Max: 100},
		Keys: Keys{New: func(*http.Request) (string, bool, error) { return "made", false, nil }},
	}
}

func post(t testing.TB, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequest("POST", "https://api.example.com/p?sig=s&n=1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// TestNamedBesideAnError: whatever is wrong with a request, Read says which keys the call names, whose they are, and
// where it would go, as far as that can be read.
func TestNamedBesideAnError(t *testing.T) {
	t.Parallel()
	quoted := profile.Draft07()
	quoted.Encoding = profile.SFString
	inBody := profile.Draft07()
	inBody.Carrier = profile.Carrier{Place: profile.Body, Name: "/key"}
	inForm := profile.Draft07()
	inForm.Carrier = profile.Carrier{Place: profile.Form, Name: "key"}
	inQuery := profile.Draft07()
	inQuery.Carrier = profile.Carrier{Place: profile.Query, Name: "nonce"}
	rows := map[string]struct {
		p       *profile.Profile
		keys    []string // of the call
		change  func(*http.Request)
		want    []string
		keyless bool
	}{
		"no key":          {nil, nil, func(r *http.Request) { r.Trailer = http.Header{"X": nil} }, []string{"made"}, true},
		"the call's":      {nil, []string{"a"}, func(r *http.Request) { r.Method = "CONNECT" }, []string{"a"}, false},
		"an empty one":    {nil, []string{""}, func(*http.Request) {}, nil, false},
		"the header's":    {nil, nil, func(r *http.Request) { r.Header.Set("Idempotency-Key", "h"); r.ContentLength = 9 }, []string{"h"}, false},
		"two that differ": {nil, []string{"a", "b"}, func(r *http.Request) { r.Header.Set("Idempotency-Key", "h") }, []string{"a", "b", "h"}, false},
		"two lines":       {nil, nil, func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"h", "i"} }, []string{"h", "i"}, false},
		"two spellings": {nil, nil, func(r *http.Request) {
			r.Header["idempotency-KEY"] = []string{"h"}
			r.Header["Idempotency-Key"] = []string{"i"}
		}, []string{"i", "h"}, false},
		"a strange header":  {nil, nil, func(r *http.Request) { r.Header.Set("Cko-Idempotency-Key", "h") }, []string{"h"}, false},
		"a key too long":    {nil, []string{strings.Repeat("k", 300)}, func(*http.Request) {}, []string{strings.Repeat("k", 300)}, false},
		"quoted":            {quoted, nil, func(r *http.Request) { r.Header.Set("Idempotency-Key", `"h"`); r.ContentLength = 9 }, []string{`"h"`, "h"}, false},
		"quoted, where raw": {nil, nil, func(r *http.Request) { r.Header.Set("Idempotency-Key", `"h"`); r.ContentLength = 9 }, []string{`"h"`, "h"}, false},
		"raw, where quoted": {quoted, nil, func(r *http.Request) { r.Header.Set("Idempotency-Key", "h") }, []string{"h"}, false},
		"too large":         {nil, []string{"a"}, func(r *http.Request) { r.ContentLength = 1e6 }, []string{"a"}, false},
		"headers too large": {nil, []string{"a"}, func(r *http.Request) { r.Header.Set("X-A", strings.Repeat("x", 1000)) }, []string{"a"}, false},
		"in the body":       {inBody, []string{"a"}, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"key":"b"}`)); r.ContentLength = 11 }, []string{"a", "b"}, false},
		"in a form": {inForm, []string{"a"}, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("key=b&key=c")), 11
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}, []string{"a", "b", "c"}, false},
		"in the query": {inQuery, nil, func(r *http.Request) { r.URL.RawQuery += "&nonce=q"; r.ContentLength = 9 }, []string{"q"}, false},
	}
	for name, r := range rows {
		req := post(t, "{}")
		r.change(req)
		if r.p == nil {
			r.p = profile.Draft07()
		}
		s, named, err := reader().Read(req, r.p, Given{Keys: r.keys, Generate: true})
		var e *Error
		if s != nil || !errors.As(err, &e) {
			t.Errorf("%s: %v, %v; want an error", name, s, err)
		}
		if !slices.Equal(named.Keys, r.want) || named.Keyless != r.keyless {
			t.Errorf("%s: keys %q, keyless %v", name, named.Keys, named.Keyless)
		}
		if named.Account != "acme" || named.Origin != "https://api.example.com:443" || !strings.HasPrefix(named.Target, "/p?n=1") || named.Method == "" {
			t.Errorf("%s: %+v", name, named)
		}
	}
}

// TestNamedOfAnUnreadableURL: nothing panics, and NewKey is not asked about a request that goes nowhere.
func TestNamedOfAnUnreadableURL(t *testing.T) {
	t.Parallel()
	r := reader()
	r.Keys.New = func(*http.Request) (string, bool, error) { t.Error("NewKey was asked"); return "k", false, nil }
	for _, u := range []*url.URL{nil, {}, {Scheme: "ftp", Host: "h"}, {Scheme: "https"}, {Scheme: "https", Host: "h", Opaque: "x"}} {
		req := post(t, "{}")
		req.URL = u
		_, named, err := r.Read(req, profile.Draft07(), Given{Generate: true})
		if err == nil || named.Origin != "" || named.Target != "" || len(named.Keys) > 0 || !named.Keyless {
			t.Errorf("%v: %+v, %v", u, named, err)
		}
	}
}

// TestNewKeyIsAskedBeforeTheBodyIsRead: where it fails, not a byte was read.
func TestNewKeyIsAskedBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	r, failed := reader(), errors.New("no token")
	r.Keys.New = func(*http.Request) (string, bool, error) { return "", false, failed }
	body := bytes.NewReader([]byte("{}"))
	req := post(t, "{}")
	req.Body = io.NopCloser(body)
	_, named, err := r.Read(req, profile.Draft07(), Given{Generate: true})
	var e *Error
	if !errors.As(err, &e) || e.Trouble != InvalidKey || !errors.Is(err, failed) || body.Len() != 2 || !named.Keyless || len(named.Keys) > 0 {
		t.Errorf("%v, %+v, %d bytes are left", err, named, body.Len())
	}
}

// TestReadAndNewAreInverse: a request that was read and built again is the same on the wire, with its credentials, and
// the record alone gives the same without them.
func TestReadAndNewAreInverse(t *testing.T) {
	t.Parallel()
	req := post(t, `{"a":1}`)
	req.URL.User = url.UserPassword("u", "p")
	req.Host = "tenant.example.com"
	req.Header = http.Header{"X-A": {"1", "2"}, "x-b": {"3"}, "X-Token": {"s"}, "Connection": {"close"}, "Idempotency-Key": {"k"}}
	s, named, err := reader().Read(req, profile.Draft07(), Given{Generate: true, Now: time.Unix(1, 0)})
	if err != nil || !slices.Equal(named.Keys, []string{"k"}) || s.Record.Generated {
		t.Fatalf("%v, %+v", err, named)
	}
	out := New(t.Context(), &s.Record, &s.URL, s.Credentials)
	body, _ := io.ReadAll(out.Body)
	want := http.Header{"X-A": {"1", "2"}, "x-b": {"3"}, "X-Token": {"s"}, "Idempotency-Key": {"k"}, "Authorization": {"Basic dTpw"}}
	if out.URL.String() != "https://api.example.com/p?sig=s&n=1" || out.Host != req.Host || string(body) != `{"a":1}` || out.GetBody != nil || !sameHeader(out.Header, want) {
		t.Errorf("%s %s %q %v", out.URL, out.Host, body, out.Header)
	}
	u, err := URL(&s.Record)
	if err != nil {
		t.Fatal(err)
	}
	bare := New(t.Context(), &s.Record, u, Credentials{})
	delete(want, "X-Token")
	delete(want, "Authorization")
	if bare.URL.String() != "https://api.example.com/p?n=1" || !sameHeader(bare.Header, want) {
		t.Errorf("%s %v", bare.URL, bare.Header)
	}
	if !slices.Equal(s.Record.Omitted, []string{"X-Token", "?sig", "userinfo"}) || !Intact(&s.Record) || s.Compare(&s.Record) != SameRequest {
		t.Errorf("%+v", s.Record)
	}
}

func sameHeader(a, b http.Header) bool {
	var x, y bytes.Buffer
	_, _ = a.Write(&x), b.Write(&y)
	return x.String() == y.String()
}

// TestKeyWithoutABodyIsNotSentAgainByNetHTTP: without a body the key stands under a spelling that net/http does not take
// as a permission to send again by itself; a signer sees the usual one.
func TestKeyWithoutABodyIsNotSentAgainByNetHTTP(t *testing.T) {
	t.Parallel()
	rec := persist.Record{Method: "POST", Carrier: "header", CarrierName: "Idempotency-Key", WireKey: "k", Recipe: "v1 Content-Type"}
	target := &url.URL{Scheme: "https", Host: "h", Path: "/"}
	req := New(t.Context(), &rec, target, Credentials{})
	err := Authorize(t.Context(), req, &rec, profile.Draft07(), func(r *http.Request) error {
		if r.Header.Get("Idempotency-Key") != "k" {
			t.Errorf("a signer sees %v", r.Header)
		}
		return nil
	})
	lower := strings.ToLower("Idempotency-Key") // as net/http does not spell it
	if err != nil || req.Header["Idempotency-Key"] != nil || !slices.Equal(req.Header[lower], []string{"k"}) {
		t.Errorf("%v, %v", err, req.Header)
	}
}

// FuzzQuotedKeys: what is decoded is spelled just so again, and nothing is repaired.
func FuzzQuotedKeys(f *testing.F) {
	for _, s := range []string{`"abc"`, `abc`, `"a\"b"`, `"a\\"`, `"\`, `""`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, wire string) {
		key, err := decodeKey(profile.SFString, wire)
		if err != nil {
			return
		}
		if again, err := encodeKey(profile.SFString, key); err != nil || again != wire {
			t.Errorf("%q was read as %q, which is spelled %q: %v", wire, key, again, err)
		}
	})
}

// TestKeyHeaders: the names under which APIs take keys, and some that only sound like it.
func TestKeyHeaders(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Idempotency-Key": true, "x-idempotency-key": true, "Idempotence-Key": true, "X-Idempotence-Key": true, "X-Idempotence-UUID": true,
		"PayPal-Request-Id": true, "Cko-Idempotency-Key": true, "Klarna-Idempotency-Key": true, "chargebee-idempotency-key": true,
		"X-Payout-Idempotency": true, "X-Transfer-Idempotency": true, "X-Refund-Idempotency": true, "X-Qonto-Idempotency-Key": true,
		"X-GCS-Idempotence-Key": true, "Request-Idempotency-Key": true, "X-Figment-Idempotency-Key": true, "Repeatability-Request-ID": true,
		"I-Twilio-Idempotency-Token": true, "Acme_Idempotency_Key": true,
		"X-Request-Id": false, "Idempotent-Replayed": false, "Idempotency-Status": false, "X-Idempotency-Cache-Hit": false, "Idempotency-Expiry": false,
		"X-GCS-Idempotence-Request-Timestamp": false, "Repeatability-First-Sent": false, "Request-Id": false,
	} {
		if isKeyHeader(name) != want {
			t.Errorf("%s is a key header: %v, want %v", name, !want, want)
		}
	}
}

// FuzzReadAndSend: whatever request is taken, its record is valid and intact, holds no value of what it omits, leads
// to the target that it names, and the request made of it alone is read as the same one again.
func FuzzReadAndSend(f *testing.F) {
	f.Add("POST", "https://api.example.com/p?sig=s3cret!&n=1", "X-Auth", "s3cret!", "{}")
	f.Add("PUT", "http://u:s3cret!@[::1]:80/a%2Fb?;sig=s3cret!;x", "x-b", "y", "")
	f.Add("PATCH", "https://h?access%5Ftoken=s3cret!", "Idempotency-Key", "k2", "x")
	f.Fuzz(func(t *testing.T, method, target, name, value, body string) {
		req, err := http.NewRequest(method, target, strings.NewReader(body))
		if err != nil {
			return
		}
		req.Header[name] = []string{value}
		r := reader()
		r.MaxHeaderBytes = 4000
		s, named, err := r.Read(req, profile.Draft07(), Given{Keys: []string{"k"}, Now: time.Unix(1, 0)})
		if err != nil {
			return
		}
		rec := s.Record
		if err := rec.Validate(); err != nil || !Intact(&rec) || s.Compare(&rec) != SameRequest || !r.Like(named, &rec) || !slices.Contains(named.Keys, rec.Key) {
			t.Fatalf("%+v of %+v: %v", rec, named, err)
		}
		for _, omitted := range rec.Omitted {
			if omitted == name && rec.Header[name] != nil {
				t.Errorf("%s is omitted, and there", name)
			}
		}
		u, err := URL(&rec)
		if err != nil || u.RequestURI() != rec.Target || Origin(u) != rec.Origin || u.User != nil {
			t.Fatalf("%s%s leads to %v: %v", rec.Origin, rec.Target, u, err)
		}
		if strings.Contains(rec.Target, "s3cret!") && strings.Contains(target, "sig=s3cret!") && !strings.Contains(strings.ReplaceAll(target, "sig=s3cret!", ""), "s3cret!") {
			t.Errorf("%s keeps the secret of %s", rec.Target, target)
		}
		sent := New(t.Context(), &rec, u, Credentials{})
		again, _, err := r.Read(sent, profile.Draft07(), Given{Keys: []string{"k"}, Now: time.Unix(2, 0)})
		if err != nil {
			t.Fatalf("%s %s: %v", sent.Method, sent.URL, err)
		}
		if !bytes.Equal(again.Record.Fingerprint, rec.Fingerprint) || len(again.Record.Omitted) > 0 || again.Record.ID != rec.ID {
			t.Errorf("%+v was read again as %+v", rec, again.Record)
		}
	})
}
