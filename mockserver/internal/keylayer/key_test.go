package keylayer_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		encoding profile.Encoding
		want     string
		ok       bool
	}{
		{`abc`, profile.Raw, "abc", true},
		{` abc	`, profile.Raw, "abc", true},
		{`"abc"`, profile.Raw, "abc", true},
		{`"abc"`, profile.SFString, "abc", true},
		{`abc`, profile.SFString, "", false},
		{`8e03`, profile.SFString, "", false},
		{`"a\"b\\c"`, profile.Raw, `a"b\c`, true},
		{`"a\b"`, profile.Raw, "", false},
		{`"abc`, profile.Raw, "", false},
		{`"abc\`, profile.Raw, "", false},
		{`"a` + "\xc3\xa9" + `"`, profile.Raw, "", false},
		{`"abc";v=1;w;x="y;z"`, profile.Raw, "abc", true},
		{`"abc"; v=1`, profile.Raw, "abc", true},
		{`"abc" x`, profile.Raw, "", false},
		{`"abc";`, profile.Raw, "", false},
		{`"abc";1=2`, profile.Raw, "", false},
		{`"abc";v=`, profile.Raw, "", false},
		{`"abc";v="`, profile.Raw, "", false},
		{`"abc","def"`, profile.Raw, "", false},
		{`""`, profile.Raw, "", true},
	} {
		got, err := keylayer.ParseKey(c.text, c.encoding)
		if (err == nil) != c.ok || got != c.want {
			t.Errorf("%q as %s: got %q, %v, want %q, ok %v", c.text, c.encoding, got, err, c.want, c.ok)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(`"abc";v=1`)
	f.Add(`8e03978e-40d5-43dd-bc93-6894a57f9324`)
	f.Add(`"\"\\`)
	f.Fuzz(func(t *testing.T, text string) {
		key, err := keylayer.ParseKey(text, profile.SFString)
		if err != nil {
			if key != "" {
				t.Errorf("%q: got both %q and %v", text, key, err)
			}
			return
		}
		// What was read can be written, and is read as the same.
		written := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := keylayer.ParseKey(written, profile.SFString); err != nil || again != key {
			t.Errorf("%q: read %q, and as %q again %q, %v", text, key, written, again, err)
		}
	})
}

// A key outside the profile's bounds is a 400 that executes nothing.
func TestInvalidKeysAreRefused(t *testing.T) {
	t.Parallel()
	uuids := profile.Draft07()
	uuids.Key = profile.KeyRule{Format: profile.UUIDv4}
	short := profile.Draft07()
	short.Key = profile.KeyRule{MinBytes: 3, MaxBytes: 5, Alphabet: "abc"}
	for _, c := range []struct {
		name    string
		profile *profile.Profile
		values  []string
		status  int
	}{
		{"255 bytes", nil, []string{strings.Repeat("k", 255)}, 201},
		{"256 bytes", nil, []string{strings.Repeat("k", 256)}, 400},
		{"5000 bytes", nil, []string{strings.Repeat("k", 5000)}, 400},
		{"empty", nil, []string{""}, 400},
		{"quoted empty", nil, []string{`""`}, 400},
		{"blank inside", nil, []string{"a b"}, 400},
		{"not ASCII", nil, []string{"caf\xc3\xa9"}, 400},
		{"two lines", nil, []string{"a", "b"}, 400},
		{"the same on two lines", nil, []string{"a", "a"}, 400},
		{"quoted", nil, []string{`"8e03978e-40d5-43dd-bc93-6894a57f9324"`}, 201},
		{"malformed quotes", nil, []string{`"8e03`}, 400},
		{"hostile names", nil, []string{"__proto__"}, 201},
		{"path", nil, []string{"../../etc"}, 201},
		{"uuid", uuids, []string{"8e03978e-40d5-43dd-bc93-6894a57f9324"}, 201},
		{"uuid, version 1", uuids, []string{"8e03978e-40d5-13dd-bc93-6894a57f9324"}, 400},
		{"no uuid", uuids, []string{"8e03978e-40d5-43dd-bc93-6894a57f932g"}, 400},
		{"at the least", short, []string{"abc"}, 201},
		{"below it", short, []string{"ab"}, 400},
		{"at the most", short, []string{"abcab"}, 201},
		{"above it", short, []string{"abcabc"}, 400},
		{"outside the alphabet", short, []string{"abd"}, 400},
		{"GoCardless, 128", profile.GoCardless(), []string{strings.Repeat("k", 128)}, 201},
		{"GoCardless, 129", profile.GoCardless(), []string{strings.Repeat("k", 129)}, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mocktest.Bubble(t, mockserver.Config{Profile: c.profile}, func(s *mockserver.Server, cl *client) {
				cl.Do(request{Header: http.Header{"Idempotency-Key": c.values}}).Want(t, c.status)
				effects, broken := 1, 0
				if c.status == 400 {
					effects, broken = 0, 1
				}
				if got := s.Ledger().Snapshot(); got.Effects != effects || got.Sends != 1 || len(got.Violations) != broken {
					t.Errorf("got %+v, want %d effects and %d violations", got, effects, broken)
				}
			})
		})
	}
}

// Quoted and bare spell one key, and the ledger counts it under itself.
func TestQuotedAndBareAreOneKey(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		cl.Post(`"k-1";p=2`).Want(t, 201)
		if !cl.Post("k-1").Want(t, 201).Replayed() {
			t.Error("the bare key was taken for another")
		}
		mocktest.WantCounts(t, s, "k-1", 2, 1)
	})
}

// A profile may put the key into the query or into the body.
func TestOtherCarriers(t *testing.T) {
	t.Parallel()
	query := profile.Draft07()
	query.Carrier = profile.Carrier{Place: profile.Query, Name: "key"}
	body := profile.Draft07()
	body.Carrier = profile.Carrier{Place: profile.Body, Name: "/meta/key"}
	other := profile.Draft07()
	other.Carrier = profile.Carrier{Place: profile.Header, Name: "X-Request-Id"}
	for _, c := range []struct {
		profile *profile.Profile
		request request
	}{
		{query, request{Path: "/payments?key=q1"}},
		{body, request{Body: `{"meta":{"key":"q1"}}`}},
		{other, request{Header: http.Header{"X-Request-Id": {"q1"}}}},
	} {
		mocktest.Bubble(t, mockserver.Config{Profile: c.profile}, func(s *mockserver.Server, cl *client) {
			cl.Do(c.request).Want(t, 201)
			cl.Do(c.request).Want(t, 201)
			mocktest.WantCounts(t, s, "q1", 2, 1)
		})
	}
}
