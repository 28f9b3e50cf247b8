package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// The exchanges that show a finding are marked: those of the pair that was
// found, the first request of the same key before them, and nothing else.
func TestShownExchanges(t *testing.T) {
	t.Parallel()
	var e conformance.Evidence
	send := func(key, ref string) { e.Send(key, ref) }
	send("k0", "r0")
	e.Found()
	send("k1", "r1")
	send("k2", "r1") // by its reference
	e.Found()
	send("k3", "r3")
	e.Found()
	send("k2", "r4")
	if got := e.Shown(); got != "1 2 4" { // and, by k2, what has its reference
		t.Errorf("exchanges %s are shown, want 1 2 4", got)
	}
	e.Found()
	if got := e.Shown(); got != "1 2 4" { // another finding about the same exchange
		t.Errorf("exchanges %s are shown for the second finding, want 1 2 4", got)
	}
	for i := range 100 {
		send(fmt.Sprint("many", i), "")
		e.Found()
	}
	send("many3", "")
	send("last", "")
	if got := e.Shown(); got != "8 58 59" { // the last two, and the earlier one with the key many3
		t.Errorf("exchanges %s are shown, want 8 58 59", got)
	}
	if e.Kept() != 60 || e.First() != "k0" {
		t.Errorf("%d are kept, the first is %s; want 60 from k0 on", e.Kept(), e.First())
	}
}

// The JSON form of a report keeps the bytes of a key that is not UTF-8, so that
// what was found can be sent again.
func TestKeyBytesAreKept(t *testing.T) {
	t.Parallel()
	o := options(start(t, mockserver.Config{Bug: "non-ascii-dropped"}), profile.Draft07())
	o.Run = []string{"replay/answered", "replay/effects-once", "key/non-ascii"}
	form, err := json.Marshal(run(t, o))
	if err != nil {
		t.Fatal(err)
	}
	var read conformance.Report
	if err := json.Unmarshal(form, &read); err != nil {
		t.Fatal(err)
	}
	c := find(t, &read, "key/non-ascii")
	for _, x := range c.Exchanges {
		if keys := x.Request.HeaderBytes["Idempotency-Key"]; len(keys) == 1 && bytes.IndexByte(keys[0], 0xe9) >= 0 {
			return
		}
	}
	t.Errorf("no exchange of key/non-ascii (%s) has the byte e9 in its key: %+v", c.Verdict, c.Exchanges)
}

// A body whose bulk is one character is kept whole but for that.
func TestLargeBodyIsKept(t *testing.T) {
	t.Parallel()
	body := `{"reference":"r","padding":"` + strings.Repeat("x", 100_000) + `","last":1}`
	m := conformance.NewMessage([]byte(body))
	if m.Run == nil || m.Body[:m.Run.At]+strings.Repeat(m.Run.Of, m.Run.Count)+m.Body[m.Run.At:] != body || m.BodyBytes != int64(len(body)) {
		t.Errorf("kept %.100q with %+v", m.Body, m.Run)
	}
	short := `{"a":"xxxxxxxx"}`
	if m := conformance.NewMessage([]byte(short)); m.Run != nil || m.Body != short {
		t.Errorf("a short body is kept as %q with %+v", m.Body, m.Run)
	}
}

// The key in the evidence is the one that was sent: none, an empty one, two
// quotes and a case's own are told apart.
func TestEvidenceHasTheSentKey(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":"1"}`)) // every request is answered with the same: everything is shared
	}))
	t.Cleanup(server.Close)
	rep, err := conformance.Run(t.Context(), conformance.Options{URL: server.URL + "/p", Run: []string{"key/empty-not-shared", "key/missing-not-merged"}, Reruns: -1})
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]bool{}
	for _, c := range rep.Cases {
		for _, x := range c.Exchanges {
			sent[fmt.Sprintf("%s %q %t", c.ID, x.Key, x.KeySent)] = true
		}
	}
	for _, want := range []string{`key/empty-not-shared "" true`, `key/empty-not-shared "\"\"" true`, `key/missing-not-merged "" false`} {
		if !sent[want] {
			t.Errorf("no exchange is %s in %v", want, sent)
		}
	}
}
