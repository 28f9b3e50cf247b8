package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
)

// TestAskSource: the source of the credentials is asked once more after an attempt without an effect that was refused for them, if a key protects
// another attempt and one is left.
func TestAskSource(t *testing.T) {
	t.Parallel()
	refused := classify.Verdict{Kind: classify.KindRefused}
	type at struct {
		op     Op
		given  Given
		v      classify.Verdict
		sent   Sent
		before *classify.Verdict // of an attempt before it
	}
	for name, c := range map[string]struct {
		change func(*at)
		want   bool
	}{
		"refused":                      {func(*at) {}, true},
		"by a proxy":                   {func(a *at) { a.sent.Answer.Status = 407 }, true},
		"forbidden":                    {func(a *at) { a.sent.Answer.Status = 403 }, false},
		"no source":                    {func(a *at) { a.sent.Source = false }, false},
		"no key protects it":           {func(a *at) { a.op.Protected = false }, false},
		"asked before":                 {func(a *at) { a.given.Spent.Source = true }, false},
		"one attempt is left":          {func(a *at) { a.given.Spent.Attempts = 1 }, true},
		"no attempt is left":           {func(a *at) { a.given.Spent.Attempts = 2 }, false},
		"in doubt":                     {func(a *at) { a.given.Doubted, a.v = true, classify.Verdict{} }, true},
		"unclear":                      {func(a *at) { a.v = classify.Verdict{} }, false},
		"the API's last word":          {func(a *at) { a.v = classify.Verdict{Kind: classify.KindFinal} }, false},
		"in doubt, and to be held":     {func(a *at) { a.given.Doubted, a.v = true, classify.Verdict{Hold: true, Reason: classify.ReasonUnclear} }, false},
		"after a final answer":         {func(a *at) { a.before = &classify.Verdict{Kind: classify.KindFinal, Again: true} }, false},
		"after another refusal":        {func(a *at) { a.before = &classify.Verdict{Kind: classify.KindRefused, Again: true} }, true},
		"in doubt, and final":          {func(a *at) { a.given.Doubted, a.v = true, classify.Verdict{Kind: classify.KindFinal} }, false},
		"asked again for its answer":   {func(a *at) { a.given.AskedAgain, a.v = true, classify.Verdict{} }, true},
		"refused, and again by itself": {func(a *at) { a.v.Again = true }, true},
	} {
		a := at{
			op: Op{KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: noon, Window: 24 * time.Hour, Pauses: UsualPauses}}, v: refused,
			sent: Sent{Answer: Answer{1, 401}, Sends: 1, Source: true},
		}
		c.change(&a)
		limits := Client{MaxAttempts: 3, MaxElapsed: time.Hour, MaxRetryAfter: time.Hour, MaxDelay: time.Hour}
		d := NewDrive(a.op, limits, a.given)
		d.Checked(true, noon)
		if a.before != nil {
			d.Sent(*a.before, Sent{Answer: Answer{9, 429}, Sends: 1})
			d.Drawn(Drawn{}, noon)
			d.Waited(true)
			d.Checked(true, noon)
		}
		d.Sent(a.v, a.sent)
		if got := d.Step() == AskSource; got != c.want {
			t.Errorf("%s: asked %t, want %t", name, got, c.want)
		}
	}
}

// TestSourceAsked: other credentials are tried at once, but not before the API's least wait, nor before the time that the server says. The same ones
// change nothing.
func TestSourceAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		again, other bool
		hint, least  time.Duration
		want         Step
		wait         time.Duration
	}{
		"others":                             {false, true, 0, 0, Wait, 0},
		"others, and the API's wait":         {false, true, 0, time.Second, Wait, time.Second},
		"others, and the server's wait":      {false, true, 2 * time.Second, 0, Wait, 2 * time.Second},
		"others, and a wait too long":        {false, true, 2 * time.Minute, 0, Write, 0},
		"the same":                           {false, false, 0, 0, Write, 0},
		"the same, and a try again is right": {true, false, 0, 0, Wait, 20 * time.Second},
	} {
		limits := Client{MaxAttempts: 9, MaxElapsed: time.Hour, MaxRetryAfter: time.Minute, MaxDelay: time.Hour}
		d := NewDrive(Op{KeyFacts: KeyFacts{Protected: true}, Sending: Sending{MaybeSent: true, FirstSent: noon, Window: 24 * time.Hour, Pauses: UsualPauses}}, limits, Given{LeastDelay: c.least})
		d.Checked(true, noon)
		d.Sent(classify.Verdict{Kind: classify.KindRefused, Again: c.again}, Sent{Answer: Answer{1, 401}, Sends: 1, Source: true, Hint: c.hint})
		d.SourceAsked(c.other)
		if d.Step() == Draw {
			d.Drawn(Drawn{Scheduled: 20 * time.Second}, noon)
		}
		if d.Step() != c.want || d.Step() == Wait && d.Wait() != c.wait || !d.Spent().Source {
			t.Errorf("%s: step %d, wait %v, asked %t; want step %d, wait %v", name, d.Step(), d.Wait(), d.Spent().Source, c.want, c.wait)
			continue
		}
		if d.Step() == Write {
			continue
		}
		d.Waited(true) // the next wait is that of the schedule
		d.Checked(true, noon)
		d.Sent(classify.Verdict{Kind: classify.KindRefused, Again: true}, Sent{Answer: Answer{2, 429}, Sends: 1})
		if d.Drawn(Drawn{Scheduled: 20 * time.Second}, noon); d.Wait() != 20*time.Second {
			t.Errorf("%s: then a wait of %v", name, d.Wait())
		}
	}
}

// TestHeedsRefusals: only a pass of a Run waits for another operation to try refused credentials. (Invariant 63.)
func TestHeedsRefusals(t *testing.T) {
	t.Parallel()
	for given, want := range map[Given]bool{
		{}:                             false, // a call
		{StopIfDown: true}:             false,
		{Pass: true}:                   false, // a Resume
		{Pass: true, StopIfDown: true}: true,
	} {
		if got := given.HeedsRefusals(); got != want {
			t.Errorf("%+v: %v, want %v", given, got, want)
		}
	}
}
