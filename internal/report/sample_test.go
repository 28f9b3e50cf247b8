package report_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/report"
)

// secret is the credential that runs through the sample; no output may hold it.
const secret = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"

// sample is a report in which every verdict and every level occurs.
func sample() *report.Report {
	r := report.New(report.KindCheck)
	r.Suite, r.Run, r.Name = "oncehttp check 0.1.0", "7f3a", "fiber v3.1.0"
	r.Target, r.Profile, r.Seed = "http://127.0.0.1:8080/payments", "draft-07", 42
	r.Started, r.MS, r.Requests = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 6100, 143
	r.Config = map[string]string{"witness": "http://127.0.0.1:8080/count?ref={ref}#/count", "second-path": "/refunds", "header": "Authorization: Bearer " + secret}
	r.Cases = append([]report.Case{scopeCase()}, plainCases()...)
	r.Cases = append(r.Cases, burstCase(6))
	return r
}

func scopeCase() report.Case {
	header := map[string][]string{"Authorization": {"Bearer " + secret}, "Content-Type": {"application/json"}, "Idempotency-Key": {"8e03978e-40d5-43e8-bc93-6894a57f9324"}}
	body := []byte(`{"reference":"r-1","amount":100}`)
	answer := report.NewMessage(map[string][]string{"Content-Type": {"application/json"}, "Set-Cookie": {"sid=verysecretcookie; Path=/"}}, []byte(`{"id":"payments_1","echo":"`+secret+`"}`), 1024)
	exchange := func(at float64, path, effects, note string) report.Exchange {
		return report.Exchange{
			At: at, Took: 4.2, Lane: "conn 1", Method: "POST", URL: path, Key: "8e03978e-40d5-43e8-bc93-6894a57f9324", Status: 201,
			Effects: effects, Note: note, Request: report.NewMessage(header, body, 1024), Response: answer,
		}
	}
	return report.Case{
		ID: "scope/other-path-not-answered", Level: report.Safety, Verdict: report.Fail, Witness: report.Counted, MS: 12,
		Rule:     "A key used on one operation never answers another operation.",
		Impact:   "A refund is answered with the payment and never happens.",
		Spec:     []report.Ref{{Name: "draft-07 §2.2", URL: "https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07#section-2.2", Quote: "An idempotency key is a unique value."}, {Name: "field practice"}},
		Expected: "201 with an id of its own from /refunds", Actual: "201 {\"id\":\"payments_1\"}: the payment's answer", Odds: "failed 3/3", Effects: "payments 1, refunds 0",
		Fix:      "Make the operation a part of what the key is looked up by.",
		Findings: []report.Finding{{Verdict: report.Fail, Text: "the refund was not executed"}, {Verdict: report.Pass, Text: "the payment was executed once"}},
		Exchanges: []report.Exchange{
			exchange(0.4, "/payments", "payments 1, refunds 0", ""),
			exchange(5.1, "/refunds", "payments 1, refunds 0", "the payment's answer"),
			{At: 9.6, Took: 2.1, Lane: "conn 2", Method: "GET", URL: "/count?ref=r-1", Status: 200},
		},
	}
}

func plainCases() []report.Case {
	rule := func(id string, level report.Level, verdict report.Verdict, text string) report.Case {
		return report.Case{ID: id, Level: level, Verdict: verdict, Witness: report.Counted, Rule: text, Spec: []report.Ref{{Name: "draft-07 §2.6"}}, MS: 3.4}
	}
	list := []report.Case{
		rule("replay/answered", report.Must, report.Pass, "The same key and the same bytes are answered again."),
		rule("replay/status", report.Must, report.Pass, "A replay has the status of the first answer."),
		rule("replay/marker", report.Observe, report.Seen, "Does a replay say that it is one?"),
		rule("conflict/rejected-status", report.Should, report.Warn, "Another payload under the same key is refused with 422."),
		rule("conflict/not-executed", report.Safety, report.Pass, "A refused request executes nothing."),
		rule("scope/other-principal-not-answered", report.Safety, report.Skip, "A key of one caller never answers another caller."),
		rule("inflight/retry-after-sane", report.Policy, report.Inconclusive, "Retry-After is no longer than the work takes."),
		rule("net/abort-then-retry-resolves", report.Liveness, report.Error, "After an aborted request the key resolves."),
	}
	list[2].Actual = "Idempotent-Replayed: true"
	list[3].Expected, list[3].Actual = "422", "400 with a problem document"
	list[5].Reason = "needs a second principal: --as"
	list[6].Reason = "the requests did not overlap"
	list[7].Reason = "dial tcp: connection refused"
	list[7].Exchanges = []report.Exchange{{At: 0.1, Took: 900, Method: "POST", URL: "/payments", Key: "k-1", Error: "reset by peer"}}
	return list
}

func burstCase(n int) report.Case {
	c := report.Case{ID: "inflight/burst", Level: report.Safety, Verdict: report.Pass, Witness: report.Inferred, MS: 40, Rule: "Of many duplicates at one instant one executes.", Effects: "payments 1"}
	for i := range n {
		status := 409
		if i == 2 {
			status = 201
		}
		c.Exchanges = append(c.Exchanges, report.Exchange{At: 0.2 + 0.02*float64(i), Took: 3 + 31*float64(i%3), Lane: fmt.Sprintf("conn %d", i+1), Method: "POST", URL: "/payments", Key: "burst", Status: status})
	}
	return c
}

// write renders reports in one format, and fails the test on an error.
func write(t testing.TB, f report.Format, o report.Options, reports ...*report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, f, o, reports...); err != nil {
		t.Fatalf("Write(%s): %v", f, err)
	}
	return b.String()
}

// find returns the case with that id.
func find(t testing.TB, r *report.Report, id string) *report.Case {
	t.Helper()
	for i := range r.Cases {
		if r.Cases[i].ID == id {
			return &r.Cases[i]
		}
	}
	t.Fatalf("no case %s", id)
	return nil
}
