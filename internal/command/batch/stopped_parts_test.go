package batch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
)

// TestStoppedBeforeTheComparison: a row that the end of the batch meets before its request was compared is not looked at, whatever has ended under its key.
func TestStoppedBeforeTheComparison(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sends.Add(1)
		w.WriteHeader(http.StatusCreated)
	}))
	defer s.Close()
	f := &batchFlags{}
	fs := pflag.NewFlagSet("batch", pflag.ContinueOnError)
	f.bindBatch(fs)
	if err := fs.Parse([]string{"--url", s.URL, "--key", "o:{id}"}); err != nil {
		t.Fatal(err)
	}
	p, cfg, err := f.plan(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	at, err := place.Parse(filepath.Join(t.TempDir(), "j.db"))
	if err != nil {
		t.Fatal(err)
	}
	row := func(body string) *input.Row { return &input.Row{Number: 1, Fields: []string{"1"}, Body: []byte(body)} }
	for _, c := range []struct {
		body   string
		closed bool
	}{{`{"id":"1","amount":1}`, false}, {`{"id":"1","amount":91}`, true}} {
		ses, err := session.CreateSession(at, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if c.closed {
			ses.Stop()
		}
		b := &batch{flags: f, plan: p, session: ses}
		l := b.send(t.Context(), row(c.body), 1)
		if err := ses.Close(); err != nil {
			t.Fatal(err)
		}
		if wasInHand(&l) != c.closed || c.closed && b.tally.TakeBack(&l) || !c.closed && l.Result != results.Done {
			t.Errorf("closed %t: %+v", c.closed, l)
		}
	}
	if n := sends.Load(); n != 1 {
		t.Errorf("%d sends", n)
	}
}

// TestPausesComeFromEvents: the progress counts a row as one that waits for its next attempt from the event of the wait to the next attempt, or to the end.
func TestPausesComeFromEvents(t *testing.T) {
	t.Parallel()
	for _, end := range []oncehttp.EventKind{oncehttp.EventAttempt, oncehttp.EventFinished} {
		b := &batch{flags: &batchFlags{workers: 1}, survey: &survey{}, started: func() {}, noted: func() {}, bar: &progress{name: "in", phase: "sending", total: 2, results: map[results.Result]int{}}}
		var cfg oncehttp.Config
		b.observe(&cfg)
		b.bar.start()
		cfg.Observe(t.Context(), oncehttp.Event{Kind: oncehttp.EventWaiting, Key: "k", Wait: time.Minute})
		if text := b.bar.text(time.Now()); !strings.Contains(text, "1 waiting (1 for their next attempt, the first in ") {
			t.Errorf("%q", text)
		}
		cfg.Observe(t.Context(), oncehttp.Event{Kind: end, Key: "k"})
		if text := b.bar.text(time.Now()); strings.Contains(text, "next attempt") {
			t.Errorf("after %s: %q", end, text)
		}
	}
}
