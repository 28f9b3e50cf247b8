package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// The words for what an answer means to the business: a status alone never makes
// a declined payment a done one.
func TestResultOfAnswer(t *testing.T) {
	t.Parallel()
	list, err := parseDeclines([]string{"/resultCode=Refused", "/payment/ok=false"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status  int
		body    string
		already bool
		want    result
	}{
		"created":                 {201, `{"id":1}`, false, resultDone},
		"no body":                 {204, "", false, resultDone},
		"accepted":                {202, `{}`, false, resultAccepted},
		"see other":               {303, "", false, resultDone},
		"declined by status":      {402, "", false, resultDeclined},
		"declined in a 200":       {200, `{"resultCode":"Refused"}`, false, resultDeclined},
		"declined by a boolean":   {200, `{"payment":{"ok":false}}`, false, resultDeclined},
		"another result code":     {200, `{"resultCode":"Authorised"}`, false, resultDone},
		"not JSON":                {200, `resultCode=Refused`, false, resultDone},
		"invalid":                 {422, `{}`, false, resultInvalid},
		"already done":            {409, `{}`, true, resultDuplicate},
		"declined and done again": {409, `{"resultCode":"Refused"}`, true, resultDeclined},
	} {
		if got := list.resultOfAnswer(c.status, []byte(c.body), c.already, false); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for _, bad := range []string{"resultCode=Refused", "/x", "/x=", "=y"} {
		if _, err := parseDeclines([]string{bad}); err == nil || !strings.Contains(err.Error(), "--declined") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A record has the result that its last line had, its answer pruned or not.
func TestResultOfRecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rec  persist.Record
		want result
	}{
		"confirmed":       {persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: 201}}, resultDone},
		"confirmed 402":   {persist.Record{State: persist.StateConfirmed, Answer: &persist.Answer{Status: 402}}, resultDeclined},
		"pruned":          {persist.Record{State: persist.StateConfirmed, Swept: true}, resultDone},
		"settled":         {persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened}, resultDone},
		"settled, absent": {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent}, resultRejected},
		"mismatched":      {persist.Record{State: persist.StateMismatched}, resultMismatch},
		"held":            {persist.Record{State: persist.StateHeld}, resultHeld},
		"pending":         {persist.Record{}, resultUnknown},
		"abandoned":       {persist.Record{State: persist.StateAbandoned}, resultUnknown},
	} {
		if got := declines(nil).resultOfRecord(&c.rec); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A declined card is declined in the line, the summary, the next step and the
// exit status, also inside a 200.
func TestDeclinedEverywhere(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
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
	file := writeFile(t, "in.csv", "id,card\n1,good\n2,broke\n3,refused\n")
	args := []string{"batch", file, "--url", s.url, "--key", "o:{id}", "--declined", "/resultCode=Refused"}
	for range 2 { // from the wire, and from the journal
		got := run(t, args...).want(t, exitRefused)
		lines := got.lines(t)
		for i, want := range []result{resultDone, resultDeclined, resultDeclined} {
			outcome := []string{"confirmed", "refused", "confirmed"}[i] // --declined reads the business out of a 200
			if lines[i].Result != want || lines[i].Outcome != outcome {
				t.Errorf("row %d: %+v", i+1, lines[i])
			}
		}
		if e := lines[1].Error; e == nil || e.Code != "card_declined" || e.Message != "Your card was declined." {
			t.Errorf("error of row 2: %+v", e)
		}
		if !strings.Contains(got.err, "1 done (200), 2 declined (200 ×1, 402 ×1)") || !strings.Contains(got.err, "1 declined (402): --generation 2 tries anew\n") {
			t.Errorf("stderr %q", got.err)
		}
	}
	if got := run(t, "send", "POST", s.url, "-d", "refused", "--declined", "/resultCode=Refused", "--journal", journalIn(t)).want(t, exitRefused); got.out != `{"resultCode":"Refused"}` {
		t.Errorf("send: stdout %q", got.out)
	}
}
