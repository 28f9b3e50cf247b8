package conformance_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
)

// truth is what a report has to say of one finding, and must not say.
type truth struct {
	name    string
	c       choices
	q       quirk
	wrap    func(http.Handler) http.Handler // nil: nothing stands in front
	change  func(o *conformance.Options)
	id      string
	level   conformance.Level
	impact  string // a word of the impact
	never   string // what neither impact nor fix nor effects may say
	atMost  time.Duration
	effects string // a word of the effects
}

func blind(o *conformance.Options) { o.Witness = "" }

// lockedWhenLeft leaves the key locked if the client has hung up.
func lockedWhenLeft() quirk {
	return quirk{
		run: func(c *call) reply {
			time.Sleep(15 * time.Millisecond)
			return c.serve()
		},
		stuck: func(c *call, _ reply) bool { return c.r.Context().Err() != nil },
	}
}

// runsAgainWhenLeft executes a repeat once more whose first request had its effect
// after its client had hung up.
func runsAgainWhenLeft() quirk {
	return quirk{
		keep: func(c *call, a reply) *reply {
			if c.r.Context().Err() != nil {
				return nil
			}
			return &a
		},
	}
}

// cutLocks locks the key of a request whose body breaks off, and answers 409 to
// whoever asks later.
func cutLocks(next http.Handler) http.Handler {
	var locked sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			locked.Store(key, true)
		}
		if _, stuck := locked.Load(key); stuck && key != "" {
			w.WriteHeader(http.StatusConflict)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func truths() []truth {
	racing := quirk{pending: func(c *call, _ *entry) (reply, bool) { return c.serve(), true }, run: func(c *call) reply {
		time.Sleep(20 * time.Millisecond)
		return c.serve()
	}}
	sloppy := quirk{other: func(c *call, _ *entry) (reply, bool) { return c.serve(), true }}
	return []truth{
		{name: "effects that nobody counts are no number", q: racing, change: blind, id: "inflight/burst",
			level: conformance.LevelSafety, impact: "pays twice", never: " 0"},
		{name: "a stuck lock is not paid twice, and is waited for once", q: lockedWhenLeft(), id: "net/reset-vs-fin",
			level: conformance.LevelLiveness, impact: "does not resolve", never: "pay twice", atMost: 1800 * time.Millisecond},
		{name: "two effects are no refusal for the whole window", q: runsAgainWhenLeft(), id: "net/abort-then-retry-resolves",
			level: conformance.LevelSafety, impact: "charged again", never: "refused for the whole window"},
		{name: "a lock is no mismatch", wrap: cutLocks, id: "net/truncated-does-not-claim",
			level: conformance.LevelLiveness, impact: "does not resolve", never: "mismatch"},
		{name: "a failure has something to change", q: quirk{stuck: func(_ *call, a reply) bool { return a.status == http.StatusBadRequest }}, id: "outcome/corrected-body",
			level: conformance.LevelLiveness, impact: "does not resolve", never: "Nothing has to change"},
		{name: "two executions are safety without a witness too", q: sloppy, change: blind, id: "conflict/nested-differs",
			level: conformance.LevelSafety, impact: "charged again", never: "compared by its presence"},
		{name: "two executions are safety without a witness too", q: sloppy, change: blind, id: "conflict/large-numbers",
			level: conformance.LevelSafety, impact: "charged again", never: "taken for one"},
		{name: "an effect that comes late is counted in the end", c: choices{later: 150 * time.Millisecond}, q: quirk{run: func(c *call) reply {
			if c.r.URL.Query().Get("fail") == "402" {
				c.effect()
			}
			return c.serve()
		}}, id: "outcome/4xx", change: func(o *conformance.Options) { o.EffectWait = 400 * time.Millisecond },
			level: conformance.LevelSafety, impact: "it has", effects: ": 2", never: ": 0"},
	}
}

// Level, impact and fix say what was seen of this server, and not what the case was
// made for; an effect that nobody can see is no number.
func TestEvidenceIsTrue(t *testing.T) {
	t.Parallel()
	virtually(t, truths(), func(t *testing.T, _ int, w truth) {
		s, url := newSample(t, w.c, w.q)
		if w.wrap != nil {
			url = serve(t, w.wrap(s))
		}
		o := sampleOptions(url)
		o.Profile, o.Run, o.Reruns, o.Settle = w.c.declare(), []string{w.id}, -1, time.Second
		if w.change != nil {
			w.change(&o)
		}
		c := find(t, run(t, o), w.id)
		said := c.Impact + " " + c.Fix + " " + c.Effects
		switch {
		case c.Verdict != conformance.VerdictFail || c.Level != w.level:
			t.Errorf("%s: %s: got %s of level %s, want a failure of %s: %v", w.name, w.id, c.Verdict, c.Level, w.level, c.Findings)
		case !strings.Contains(c.Impact, w.impact) || strings.Contains(said, w.never) || !strings.Contains(c.Effects, w.effects):
			t.Errorf("%s: %s says %q, want %q and %q and not %q", w.name, w.id, said, w.impact, w.effects, w.never)
		case w.atMost > 0 && c.MS > float64(w.atMost.Milliseconds()):
			t.Errorf("%s: %s took %v ms, want one wait of %v at most", w.name, w.id, c.MS, w.atMost)
		}
	})
}
