package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/profile"
)

// ruling is what one case has to say of a sample.
type ruling struct {
	name    string
	c       choices
	q       quirk
	change  func(o *conformance.Options)
	id      string
	verdict conformance.Verdict
	word    string // in what the report says
}

func (r *ruling) check(t *testing.T) {
	_, url := newSample(t, r.c, r.q)
	o := sampleOptions(url)
	o.Profile, o.Run, o.Reruns = r.c.declare(), []string{r.id}, -1
	if r.change != nil {
		r.change(&o)
	}
	c := find(t, run(t, o), r.id)
	said := c.Actual + " " + c.Reason
	for _, f := range c.Findings {
		said += " " + f.Text
	}
	if c.Verdict != r.verdict || !strings.Contains(said, r.word) {
		t.Errorf("%s: %s: got %s %q, want %s and %q", r.name, r.id, c.Verdict, said, r.verdict, r.word)
	}
}

// What could not be done, or shows nothing, is neither held against a server nor
// taken for a pass.
func TestRulings(t *testing.T) {
	t.Parallel()
	virtually(t, append(unnamedRulings(), lifeRulings()...), func(t *testing.T, _ int, r ruling) { r.check(t) })
}

// unnamedRulings: answers that do not say what they are about.
func unnamedRulings() []ruling {
	vague := func(c *call, _ *entry) (reply, bool) {
		return reply{status: http.StatusOK, header: map[string]string{"Content-Type": "application/json"}, body: `{"ok":true}`}, true
	}
	blind := func(o *conformance.Options) { o.Witness = "" }
	hasty := quirk{run: func(c *call) reply { // what fails, fails at once
		if query := c.r.URL.Query(); query.Get("fail") != "" {
			return c.refusal(http.StatusPaymentRequired, "failed", "declined")
		}
		return c.serve()
	}}
	lying := quirk{pending: func(c *call, e *entry) (reply, bool) {
		<-e.over
		return vague(c, e)
	}}
	return []ruling{
		{"a vague success for another request, where the first was named", choices{}, quirk{other: vague}, blind, "conflict/not-silent", conformance.VerdictFail, "does not say what was made"},
		{"a vague success, where the first was vague as well", choices{nameless: true}, quirk{other: vague}, blind, "conflict/not-silent", conformance.VerdictInconclusive, "no effect can be seen"},
		{"a vague success that is counted", choices{nameless: true}, quirk{other: vague}, nil, "conflict/not-silent", conformance.VerdictFail, "no effect"},
		{"a late difference, and a vague success", choices{nameless: true}, quirk{other: vague}, blind, "conflict/late-difference", conformance.VerdictInconclusive, ""},
		{"a nested difference, and a refusal", choices{}, quirk{}, blind, "conflict/nested-differs", conformance.VerdictPass, ""},
		{"a refusal that cannot be slow", choices{}, hasty, nil, "inflight/refusal-not-confirmed", conformance.VerdictSkip, "could not be held"},
		{"a refusal for which a duplicate waits", choices{wait: true}, quirk{}, nil, "inflight/refusal-not-confirmed", conformance.VerdictPass, ""},
		{"a refusal that is stored", choices{wait: true, keeps: true}, quirk{}, nil, "inflight/refusal-not-confirmed", conformance.VerdictPass, ""},
		{"a duplicate that is told of a success", choices{}, lying, nil, "inflight/refusal-not-confirmed", conformance.VerdictFail, "402"},
		{"a delay that is refused", choices{}, quirk{front: func(c *call) bool {
			slow := c.r.URL.Query().Get("sleep") != ""
			if slow {
				c.send(c.refusal(http.StatusBadRequest, "query", "no such parameter"))
			}
			return slow
		}}, nil, "inflight/once", conformance.VerdictInconclusive, "--delay-query"},
		{"a crash that does not come", choices{}, quirk{}, func(o *conformance.Options) { o.CrashQuery = "smash=1" }, "outcome/crash-resolves", conformance.VerdictInconclusive, "--crash-query"},
		{"a failure that does not come", choices{}, quirk{}, func(o *conformance.Options) { o.FailQuery = "flail={status}" }, "outcome/5xx", conformance.VerdictInconclusive, "--fail-query"},
		{"no such action", choices{}, quirk{}, func(o *conformance.Options) { o.ActionPath = "/nowhere/{id}/cancel"; o.IDPointer = "/number" }, "scope/other-resource-empty-body", conformance.VerdictInconclusive, "--id-pointer"},
	}
}

// lifeRulings: hooks that do not work, and keys after their time.
func lifeRulings() []ruling {
	broken := func(context.Context) error { return errors.New("there is no such script") }
	fine := func(context.Context) error { return nil }
	expired := func(answer func(c *call, e *entry) (reply, bool)) quirk { return quirk{repeat: answer} }
	return []ruling{
		{"a restart that does not work", choices{}, quirk{}, func(o *conformance.Options) { o.Restart = broken }, "restart/replay-survives", conformance.VerdictInconclusive, "no such script"},
		{"a restart that comes after the answer", choices{}, quirk{}, func(o *conformance.Options) {
			o.Hold = 50 * time.Millisecond
			o.Restart = func(context.Context) error { time.Sleep(500 * time.Millisecond); return nil }
		}, "restart/inflight-killed-resolves", conformance.VerdictInconclusive, "answered before"},
		{"an outage that does not work", choices{}, quirk{}, func(o *conformance.Options) { o.Outage, o.Recover = broken, fine }, "outcome/store-outage", conformance.VerdictInconclusive, "taken away"},
		{"an outage without an end", choices{}, quirk{}, func(o *conformance.Options) { o.Outage, o.Recover = fine, broken }, "outcome/store-outage", conformance.VerdictInconclusive, "given back"},
		{"an outage that nobody notices", choices{}, quirk{}, func(o *conformance.Options) { o.Outage, o.Recover = fine, fine }, "outcome/store-outage", conformance.VerdictSeen, "it went on"},
		{"keys that cannot be made to expire", choices{}, quirk{}, func(o *conformance.Options) { o.Expire = broken }, "time/expires", conformance.VerdictInconclusive, "no such script"},
		{"an expired key that is replayed", choices{}, quirk{}, func(o *conformance.Options) { o.Expire = fine }, "time/expires", conformance.VerdictFail, "201"},
		{"an expired key that is refused with 412", choices{}, expired(func(c *call, _ *entry) (reply, bool) {
			return c.refusal(http.StatusPreconditionFailed, "expired", "the key has expired"), true
		}), func(o *conformance.Options) { o.Expire = fine }, "time/expires", conformance.VerdictPass, "412"},
		{"an expired key that is gone", choices{}, expired(func(c *call, _ *entry) (reply, bool) {
			return c.refusal(http.StatusGone, "expired", "the key has expired"), true
		}), func(o *conformance.Options) { o.Expire = fine }, "time/expires", conformance.VerdictSeen, "410"},
		{"an expired key, the answers vague and marked", choices{nameless: true}, expired(func(c *call, e *entry) (reply, bool) {
			a := *e.reply
			a.header = map[string]string{"Content-Type": "application/json", "Idempotent-Replayed": "true"}
			return a, true
		}), func(o *conformance.Options) {
			o.Expire = fine
			o.Profile.Replay = []profile.Matcher{{Header: "Idempotent-Replayed"}}
		}, "time/expires", conformance.VerdictFail, "replay"},
	}
}

// A witness that breaks in the middle of a run counts nothing from then on: cases
// that need it are open, and no server is blamed.
func TestWitnessBreaks(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(w http.ResponseWriter){
		"it fails":        func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"it is no number": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"count":"many"}`)) },
		"it leads away":   func(w http.ResponseWriter) { w.Header().Set("Location", "/else"); w.WriteHeader(http.StatusFound) },
	} {
		s, url := newSample(t, choices{}, quirk{})
		var asked atomic.Int64
		counter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) > 3 { // what is asked before the first case
				after(w)
				return
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			_ = json.NewEncoder(w).Encode(map[string]int{"count": s.effects[r.URL.Query().Get("ref")]})
		}))
		defer counter.Close()
		o := sampleOptions(url)
		o.Witness, o.Run, o.Reruns = counter.URL+"?ref={ref}#/count", []string{"replay/effects-once", "inflight/once", "conflict/not-executed"}, -1
		for _, c := range run(t, o).Cases {
			if c.Verdict != conformance.VerdictInconclusive && c.Verdict != conformance.VerdictSkip || !strings.Contains(c.Reason, "witness") {
				t.Errorf("%s: %s: got %s %q, want it to be open, and the witness named", name, c.ID, c.Verdict, c.Reason)
			}
		}
	}
}

// Keys are made as the profile wants them, so that a server that is strict about
// them is not blamed.
func TestKeyRules(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		for name, rule := range map[string]profile.KeyRule{
			"digits":      {Alphabet: "0123456789", MaxBytes: 24},
			"long":        {MinBytes: 60, MaxBytes: 100},
			"short":       {MaxBytes: 20},
			"one letter":  {Alphabet: "z", MinBytes: 8, MaxBytes: 64},
			"version 4":   {Format: profile.UUIDv4},
			"hexadecimal": {Alphabet: "0123456789abcdef", MinBytes: 32, MaxBytes: 32},
		} {
			low, high := max(rule.MinBytes, 1), rule.MaxBytes
			if high == 0 {
				high = 255
			}
			if rule.Format != profile.AnyFormat {
				low, high = 36, 36
			}
			strict := quirk{key: func(_ *call, k labelled) labelled {
				if rule.Alphabet != "" {
					k.ok = k.ok && strings.Trim(k.key, rule.Alphabet) == ""
				}
				k.ok = k.ok && len(k.key) >= low && len(k.key) <= high
				return k
			}}
			rep := only(t, choices{updates: true}, strict, func(o *conformance.Options) { o.Profile.Key = rule }, "replay/**", "conflict/not-*", "key/**")
			one := name == "one letter" // all keys are one: the server is right, and nothing can be told of it
			if bad := rep.Summary.Fail + rep.Summary.Warn + rep.Summary.Error; !one && (bad > 0 || rep.Summary.Pass < 15) {
				t.Errorf("%s: got %s and %d passes\n%s", name, list(wrong(rep)), rep.Summary.Pass, text(rep))
			}
		}
	})
}

// An action without a body that a handler's middleware does not take is skipped,
// and nothing is said against it.
func TestNoActions(t *testing.T) {
	t.Parallel()
	inner := layer(t, "")
	rep, err := conformance.RunHandler(t.Context(), func(next http.Handler) http.Handler {
		kept := inner(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength == 0 && r.Method == http.MethodPost {
				w.WriteHeader(http.StatusLengthRequired)
				return
			}
			kept.ServeHTTP(w, r)
		})
	}, handlerOptions())
	if err != nil {
		t.Fatalf("RunHandler: %v", err)
	}
	if c := find(t, rep, "replay/without-body"); c.Verdict != conformance.VerdictSkip || !strings.Contains(c.Reason, "not taken") || list(wrong(rep)) != "~scope/other-resource-empty-body" {
		t.Errorf("got %s %q, and %s, want a skip, and what acts on two resources open", c.Verdict, c.Reason, list(wrong(rep)))
	}
}
