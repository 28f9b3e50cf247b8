package referee_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/mockserver/referee"
	"github.com/oncehttp/oncehttp/profile"
)

// judge plays the script to a client, in virtual time, and gives the rules that
// it broke and those that could not be judged.
func judge(t *testing.T, cfg mockserver.Config, script referee.Script, h habits, seed uint64) (broken, skipped []string) {
	t.Helper()
	play(t, cfg, script, func(judge *referee.Referee, cl *client) {
		random := rand.New(rand.NewPCG(seed, 1))
		for i := range script.Expect {
			h.drive(cl, fmt.Sprintf("order-%c%d", 'a'+i, i), random)
		}
		select {
		case <-judge.Finished():
		case <-time.After(time.Hour):
			t.Error("the referee did not see the end")
		}
		verdict := judge.Report()
		for _, c := range verdict.Cases {
			switch c.Verdict {
			case referee.Fail, referee.Warn:
				broken = append(broken, c.ID)
				if (c.Verdict == referee.Warn) != (c.Level == referee.Should) || c.Actual == "" || len(c.Findings) == 0 {
					t.Errorf("%s: %s at level %s, %q", c.ID, c.Verdict, c.Level, c.Actual)
				}
			case referee.Skip:
				skipped = append(skipped, c.ID)
				if c.Reason == "" {
					t.Errorf("%s: skipped without a reason", c.ID)
				}
			}
		}
	})
	slices.Sort(broken)
	slices.Sort(skipped)
	return broken, skipped
}

// A good client breaks nothing, whatever its random waits, and every rule but
// three is judged.
func TestRefereePassesAGoodClient(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		broken, skipped := judge(t, mockserver.Config{}, referee.DefaultScript(), correct(), seed)
		if len(broken) > 0 {
			t.Errorf("seed %d: broken %v", seed, broken)
		}
		if want := []string{"answer/stored-error-not-retried", "key/first-sent-kept", "wait/minimum"}; !slices.Equal(skipped, want) {
			t.Errorf("seed %d: skipped %v, want %v", seed, skipped, want)
		}
	}
}

// Each broken client fails exactly the rules that it breaks.
func TestRefereeCatchesBrokenClients(t *testing.T) {
	t.Parallel()
	for name, c := range brokenClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := correct()
			c.change(&h)
			broken, _ := judge(t, mockserver.Config{}, referee.DefaultScript(), h, 3)
			slices.Sort(c.breaks)
			if !slices.Equal(broken, c.breaks) {
				t.Errorf("got %q\nwant %q", broken, c.breaks)
			}
		})
	}
}

// With a profile that stores its 500 the client has to see that asking again is
// of no use; and with one that asks for a least delay, to keep it.
func TestRefereeByProfile(t *testing.T) {
	t.Parallel()
	patient := profile.StripeV1()
	patient.Body = profile.BodyRule{} // the client sends JSON
	patient.MinDelay = 50 * time.Millisecond
	script := referee.Script{Expect: 4, OperationPointer: "/reference", Scenarios: []referee.Scenario{
		{Name: "stored 500", Faults: []mockserver.Fault{{Kind: mockserver.AnswerAfter, Status: 500}}},
	}}
	cfg := mockserver.Config{Profile: patient}
	h := correct()
	h.wait = func(*rand.Rand, int, reply) time.Duration { return time.Millisecond }
	broken, _ := judge(t, cfg, script, h, 1)
	if want := []string{"answer/stored-error-not-retried", "wait/grows", "wait/minimum"}; !slices.Equal(broken, want) {
		t.Errorf("got %q, want %q", broken, want)
	}
	h = correct()
	h.wait = func(random *rand.Rand, attempt int, _ reply) time.Duration {
		return 50*time.Millisecond + time.Duration(random.Int64N(int64(100*time.Millisecond)<<attempt))
	}
	h.stop = func(_ int, last reply) bool {
		return last.Err == nil && (final(last.Status) || last.Header.Get("Stripe-Should-Retry") == "false")
	}
	broken, skipped := judge(t, cfg, script, h, 1)
	if len(broken) > 0 || slices.Contains(skipped, "wait/minimum") || slices.Contains(skipped, "answer/stored-error-not-retried") {
		t.Errorf("a client that heeds: broken %q, skipped %q", broken, skipped)
	}
}

// TestRefereeFirstSent: a client that says another time of its first send after a lost answer breaks the rule; after a
// 429, upon which the server has not acted, the rule cannot be judged.
func TestRefereeFirstSent(t *testing.T) {
	t.Parallel()
	p, _ := profile.ByName("azure-repeatability")
	lost, busy := mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.Answer, Status: 429}
	for _, c := range []struct {
		fault  mockserver.Fault
		change time.Duration
		want   referee.Verdict
	}{{lost, 0, referee.Pass}, {lost, time.Second, referee.Fail}, {busy, time.Second, referee.Skip}} {
		play(t, mockserver.Config{Profile: p}, one(c.fault), func(judge *referee.Referee, cl *client) {
			sent := time.Now()
			for range 2 {
				cl.Do(request{Body: `{"reference":"r"}`, Header: http.Header{
					"Repeatability-Request-Id": {"0f8fad5b-d9cb-469f-a165-70867728950e"}, "Repeatability-First-Sent": {sent.UTC().Format(http.TimeFormat)},
				}})
				sent = sent.Add(c.change)
			}
			if got := caseOf(t, judge, "key/first-sent-kept"); got.Verdict != c.want {
				t.Errorf("%v, %v later: %s %s %s, want %s", c.fault.Kind, c.change, got.Verdict, got.Actual, got.Reason, c.want)
			}
		})
	}
}

// The verdict over HTTP is the JSON report, and it ends the run.
func TestFinishOverHTTP(t *testing.T) {
	t.Parallel()
	play(t, mockserver.Config{}, referee.DefaultScript(), func(judge *referee.Referee, cl *client) {
		cl.Post("0123456789abcdef").Want(t, 201)
		got := cl.Do(request{Path: "/_finish"}).Want(t, 200)
		<-judge.Finished()
		parsed, err := report.Parse(strings.NewReader(got.Body))
		if err != nil {
			t.Fatalf("%v in %s", err, got.Body)
		}
		if parsed.Kind != report.KindReferee || len(parsed.Cases) != len(referee.Rules()) || parsed.Summary.Fail != 0 {
			t.Errorf("got %+v", parsed.Summary)
		}
	})
	mocktest.Bubble(t, mockserver.Config{}, func(_ *mockserver.Server, cl *client) {
		if got := cl.Do(request{Path: "/_finish"}).Want(t, 200); !strings.Contains(got.Body, "no referee") {
			t.Errorf("without a referee: %s", got.Body)
		}
	})
}

// The run is over only once it is quiet: a client that has no answer yet may be
// waiting.
func TestFinishedWaitsForQuiet(t *testing.T) {
	t.Parallel()
	script := referee.Script{Expect: 1, OperationPointer: "/reference", Scenarios: []referee.Scenario{
		{Faults: []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.Hang, Delay: time.Minute}}},
	}}
	play(t, mockserver.Config{}, script, func(judge *referee.Referee, cl *client) {
		start := time.Now()
		ended := make(chan time.Duration, 1)
		go func() { <-judge.Finished(); ended <- time.Since(start) }()
		cl.Post("k")
		time.Sleep(29 * time.Second)
		cl.Post("k") // hangs a minute
		time.Sleep(10 * time.Second)
		cl.Post("k").Want(t, 201)
		if got, want := <-ended, (29+60+10+2)*time.Second; got != want {
			t.Errorf("over after %v, want %v", got, want)
		}
	})
}

func TestParseScript(t *testing.T) {
	t.Parallel()
	got, err := referee.ParseScript([]byte(`{"name":"mine","attempts_max":5,"quiet":"1s","scenarios":[
		{"name":"a","sends":["drop-after","none",{"fault":"402","header":{"content-type":"application/problem+json"},"body":"{}","delay":"1s"}]},
		{"sends":[{"fault":"redirect:308","location":"http://x.test/"}]},{}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "mine" || got.Expect != 3 || got.OperationPointer != "/reference" || got.AttemptsMax != 5 || got.Quiet != time.Second {
		t.Errorf("got %+v", got)
	}
	first := got.Scenarios[0].Faults
	if len(first) != 3 || first[0].Kind != mockserver.DropAfter || first[1].Kind != mockserver.None || first[2].Status != 402 ||
		first[2].Header.Get("Content-Type") != "application/problem+json" || first[2].Delay != time.Second {
		t.Errorf("got %+v", first)
	}
	if second := got.Scenarios[1].Faults[0]; second.Status != 308 || second.Location != "http://x.test/" {
		t.Errorf("got %+v", second)
	}
	for text, want := range map[string]string{
		``:                               "script",
		`[]`:                             "script",
		`{"scenarios":[]}`:               "no scenarios",
		`{"scenarios":[{}]} }`:           "more behind",
		`{"scenarios":[{}]} x`:           "more behind",
		`{"scenarioes":[{}]}`:            "unknown field",
		`{"quiet":"x","scenarios":[{}]}`: "not a duration",
		`{"expect":-1,"scenarios":[{}]}`: "negative",
		`{"operation_pointer":"a","scenarios":[{}]}`:            "JSON pointer",
		`{"scenarios":[{},{"sends":["none","dorp"]}]}`:          "scenario 2, send 2",
		`{"scenarios":[{"sends":[{"fault":"402","x":1}]}]}`:     "scenario 1, send 1",
		`{"scenarios":[{"sends":[{"fault":"402","delay":1}]}]}`: "scenario 1, send 1",
		`{"scenarios":[{"sends":[{"fault":"","delay":"x"}]}]}`:  "scenario 1, send 1",
	} {
		_, err := referee.ParseScript([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "referee: ") {
			t.Errorf("%s: got %v, want one line with %q", text, err, want)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte(`{"scenarios":[{"name":"a","sends":["drop-after",{"fault":"402"}]}]}`))
	f.Add([]byte(`{"scenarios":[null],"expect":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		script, err := referee.ParseScript(text)
		if err == nil && (script.Validate() != nil || !json.Valid(bytes.TrimSpace(text))) {
			t.Errorf("%q was accepted", text)
		}
	})
}

// Every rule is documented, and is judged.
func TestRules(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, rule := range referee.Rules() {
		if seen[rule.ID] || !report.ValidID(rule.ID) || !slices.Contains([]referee.Level{referee.Safety, referee.Liveness, referee.Must, referee.Should}, rule.Level) {
			t.Errorf("%q at level %q", rule.ID, rule.Level)
		}
		if rule.Text == "" || rule.Impact == "" || rule.Source == "" {
			t.Errorf("%s lacks text, impact or source", rule.ID)
		}
		seen[rule.ID] = true
	}
	// TestRefereeByProfile, and TestRefereeFirstSent
	broken := map[string]bool{"answer/stored-error-not-retried": true, "wait/minimum": true, "key/first-sent-kept": true}
	for _, c := range brokenClients() {
		for _, id := range c.breaks {
			broken[id] = true
		}
	}
	if len(broken) != len(seen) {
		t.Errorf("%d rules, and clients that break %d of them", len(seen), len(broken))
	}
}
