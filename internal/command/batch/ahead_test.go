package batch_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// A run that finds every answer in the journal prints what the first run has printed,
// but for the source. Another request under a key that stands is never taken for it.
func TestBatchAgainSaysTheSame(t *testing.T) {
	t.Parallel()
	answers := []struct {
		status int
		body   string
	}{
		{201, "{\n  \"id\": \"a\u2028<b>\"\n}\n"}, {202, ""}, {402, `{"error":{"code":"card_declined"}}`}, {404, "no such \"thing\""},
		{200, `{"resultCode":"Refused"}`}, {200, "\xff\xfe"}, {410, `{"code":"gone"}`},
	}
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var n int
		_, _ = fmt.Sscanf(string(body), `{"user":"u","order_id":"%d"}`, &n)
		a := answers[n%len(answers)]
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	})
	var in strings.Builder
	in.WriteString("user,order_id\n")
	for i := range 200 {
		fmt.Fprintf(&in, "u,%d\n", i)
		if i%50 == 0 {
			fmt.Fprintf(&in, "u,%d\n", i) // the same once more
		}
	}
	file := commandtest.WriteFile(t, "in.csv", in.String())
	args := []string{"batch", file, "--key", commandtest.OrderKey, "--max-errors", "0", "--declined", "/resultCode=Refused", "--url", s.URL}
	first := commandtest.Run(t, args...)
	sent := s.Sends.Load()
	again := commandtest.Run(t, args...)
	if s.Sends.Load() != sent {
		t.Errorf("%d sent again", s.Sends.Load()-sent)
	}
	one, two := bytes.Split([]byte(first.Out), []byte("\n")), bytes.Split([]byte(again.Out), []byte("\n"))
	if len(one) != len(two) || len(one) != 205 || first.Status != again.Status {
		t.Fatalf("%d lines and status %d, then %d and %d\n%s", len(one), first.Status, len(two), again.Status, first.Err)
	}
	for i := range one {
		if want := bytes.Replace(one[i], []byte(`"source":"wire"`), []byte(`"source":"journal"`), 1); !bytes.Equal(two[i], want) {
			t.Errorf("line %d:\n%s\nwant\n%s", i+1, two[i], want)
		}
	}
	for _, l := range commandtest.Run(t, append(args, "--url", s.URL+"/other")...).Lines(t) {
		if l.Result != results.Mismatch && l.Result != results.Duplicate {
			t.Fatalf("under another URL: %+v", l)
		}
	}
	if s.Sends.Load() != sent {
		t.Errorf("%d sent to the other URL", s.Sends.Load()-sent)
	}
}

// TestBatchNotesWhatItTells: a refusal that a worker has recorded, and that a batch takes from the journal, is told then: a redrive in bulk leaves it alone.
func TestBatchNotesWhatItTells(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusPaymentRequired)
		_, _ = io.WriteString(w, `{"error":{"code":"card_declined"}}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "user,order_id\nu,1\nu,2\n")
	args := []string{"batch", file, "--key", commandtest.OrderKey, "--max-errors", "0", "--url", s.URL}
	commandtest.Run(t, args...)
	each := func(see func(j *bolt.Journal, rec persist.Record)) {
		t.Helper()
		j, err := bolt.Open(file+".oncehttp.db", bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
			if n++; err != nil {
				t.Fatal(err)
			}
			see(j, rec)
		}
		if err := j.Close(); err != nil || n != 2 {
			t.Fatalf("%d records, error %v", n, err)
		}
	}
	each(func(j *bolt.Journal, rec persist.Record) { // as a worker ends it
		rec.Told, rec.Enqueued = false, true
		if _, err := j.Amend(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	})
	sent := s.Sends.Load()
	for _, l := range commandtest.Run(t, args...).Lines(t) {
		if l.Result != results.Declined || l.Source != "journal" {
			t.Errorf("line %+v", l)
		}
	}
	each(func(_ *bolt.Journal, rec persist.Record) {
		if !rec.Told || acts.IsUntold(&rec) {
			t.Errorf("%s: told %t", rec.Key, rec.Told)
		}
	})
	if s.Sends.Load() != sent {
		t.Errorf("%d sent again", s.Sends.Load()-sent)
	}
}
