package results_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
)

// The words for what an answer means to the business: a status alone never makes
// a declined payment a done one.
func TestResultOfAnswer(t *testing.T) {
	t.Parallel()
	list, err := results.ParseDeclines([]string{"/resultCode=Refused", "/payment/ok=false"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status  int
		body    string
		already bool
		want    results.Result
	}{
		"created":                 {201, `{"id":1}`, false, results.Done},
		"no body":                 {204, "", false, results.Done},
		"accepted":                {202, `{}`, false, results.Accepted},
		"see other":               {303, "", false, results.Done},
		"declined by status":      {402, "", false, results.Declined},
		"declined in a 200":       {200, `{"resultCode":"Refused"}`, false, results.Declined},
		"declined by a boolean":   {200, `{"payment":{"ok":false}}`, false, results.Declined},
		"another result code":     {200, `{"resultCode":"Authorised"}`, false, results.Done},
		"not JSON":                {200, `resultCode=Refused`, false, results.Done},
		"invalid":                 {422, `{}`, false, results.Invalid},
		"already done":            {409, `{}`, true, results.Duplicate},
		"declined and done again": {409, `{"resultCode":"Refused"}`, true, results.Declined},
	} {
		if got := list.ResultOfAnswer(c.status, []byte(c.body), c.already, false); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for _, bad := range []string{"resultCode=Refused", "/x", "/x=", "=y"} {
		if _, err := results.ParseDeclines([]string{bad}); err == nil || !strings.Contains(err.Error(), "--declined") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A new generation may follow a refusal, and an operation settled as absent; not one that an event of the API contradicts.
func TestFinallyRefused(t *testing.T) {
	t.Parallel()
	list, err := results.ParseDeclines([]string{"/resultCode=Refused"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		rec  persist.Record
		want bool
	}{
		"declined":  {persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: 402}}, true},
		"by a word": {persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: 200, Body: []byte(`{"resultCode":"Refused"}`)}}, true},
		"absent":    {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent}, true},
		"paid":      {persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: 201}}, false},
		"happened":  {persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened}, false},
		"held":      {persist.Record{State: persist.StateHeld, Answer: &persist.Answer{Status: 402}}, false},
		"abandoned": {persist.Record{State: persist.StateAbandoned}, false},
	} {
		if got := list.FinallyRefused(&c.rec); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
		if c.rec.Evidence = (&persist.Evidence{Event: "evt"}); list.FinallyRefused(&c.rec) {
			t.Errorf("%s, contradicted by an event: a new generation may follow", name)
		}
	}
}

// A record has the result that its last line had, its answer pruned or not.
func TestResultOfRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rec  persist.Record
		want results.Result
	}{
		"confirmed":       {persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: 201}}, results.Done},
		"confirmed 402":   {persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: 402}}, results.Declined},
		"pruned":          {persist.Record{State: persist.StateConfirmed, Swept: true}, results.Done},
		"settled":         {persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened}, results.Done},
		"settled, absent": {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent}, results.Rejected},
		"mismatched":      {persist.Record{State: persist.StateMismatched}, results.Mismatch},
		"held":            {persist.Record{State: persist.StateHeld}, results.Held},
		"pending":         {persist.Record{}, results.Unknown},
		"abandoned":       {persist.Record{State: persist.StateAbandoned}, results.Unknown},
	} {
		if got := results.Declines(nil).ResultOfRecord(&c.rec); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A declined card is declined in the line, the summary, the next step and the
// exit status, also inside a 200.
func TestDeclinedEverywhere(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(b), "broke"):
			w.WriteHeader(http.StatusPaymentRequired)
			_, _ = io.WriteString(w, `{"error":{"code":"card_declined","message":"Your card was declined."}}`)
		case strings.Contains(string(b), "refused"):
			_, _ = io.WriteString(w, `{"resultCode":"Refused"}`)
		default:
			_, _ = io.WriteString(w, `{"resultCode":"Authorised"}`)
		}
	})
	file := commandtest.WriteFile(t, "in.csv", "id,card\n1,good\n2,broke\n3,refused\n")
	args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--declined", "/resultCode=Refused"}
	for range 2 { // from the wire, and from the journal
		got := commandtest.Run(t, args...).Want(t, terminal.ExitRefused)
		lines := got.Lines(t)
		for i, want := range []results.Result{results.Done, results.Declined, results.Declined} {
			outcome := []string{"confirmed", "refused", "confirmed"}[i] // --declined reads the business out of a 200
			if lines[i].Result != want || lines[i].Outcome != outcome {
				t.Errorf("row %d: %+v", i+1, lines[i])
			}
		}
		if e := lines[1].Error; e == nil || e.Code != "card_declined" || e.Message != "Your card was declined." {
			t.Errorf("error of row 2: %+v", e)
		}
		if !strings.Contains(got.Err, "1 done (200), 2 declined (200 ×1, 402 ×1)") || !strings.Contains(got.Err, "1 declined (402): --generation 2 tries anew\n") {
			t.Errorf("stderr %q", got.Err)
		}
	}
	if got := commandtest.Run(t, "send", "POST", s.URL, "-d", "refused", "--declined", "/resultCode=Refused", "--journal", commandtest.JournalIn(t)).Want(t, terminal.ExitRefused); got.Out != `{"resultCode":"Refused"}` {
		t.Errorf("send: stdout %q", got.Out)
	}
}

// TestCodeOfAnUnknownOutcome: the code says which answer left the outcome open, or that there was none.
func TestCodeOfAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]*oncehttp.Error{
		"http_500":  {Sends: 6, Answer: &persist.Answer{Status: 500}},
		"no_answer": {Sends: 6},
		"not_sent":  {},
	} {
		if line := results.Failed("k", err); line.Error.Code != want {
			t.Errorf("%v: code %q; want %q", err, line.Error.Code, want)
		}
	}
}

// TestIsContradicted: an event against a recorded refusal contradicts it. An abandoned operation has no such end: nobody says that it did not happen.
func TestIsContradicted(t *testing.T) {
	t.Parallel()
	event := &persist.Evidence{Event: "evt_1", Type: "charge.succeeded"}
	for name, c := range map[string]struct {
		rec  persist.Record
		want bool
	}{
		"refused":           {persist.Record{State: persist.StateConfirmed, Status: 402, Answer: &persist.Answer{Status: 402}, Effect: persist.EffectRefused, Evidence: event}, true},
		"without an event":  {persist.Record{State: persist.StateConfirmed, Status: 402, Answer: &persist.Answer{Status: 402}, Effect: persist.EffectRefused}, false},
		"settled as absent": {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent, Evidence: event}, true},
		"settled by it":     {persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened, Evidence: event}, false},
		"abandoned":         {persist.Record{State: persist.StateAbandoned, Evidence: event}, false},
		"held":              {persist.Record{State: persist.StateHeld, Evidence: event}, false},
	} {
		if got := results.IsContradicted(&c.rec); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
