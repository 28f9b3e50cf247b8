package mockserver_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// TestRepeatableRequests: OASIS Repeatable Requests 1.0, as PROVIDERS and Azure's pages have it. Both headers are read;
// what is missing, badly formed or of another request is refused with 400, what is too old with 412.
func TestRepeatableRequests(t *testing.T) {
	t.Parallel()
	p, _ := profile.ByName("azure-repeatability")
	mocktest.Bubble(t, mockserver.Config{Profile: p}, func(s *mockserver.Server, cl *client) {
		now := time.Now()
		at := func(age time.Duration) string { return now.Add(-age).UTC().Format(http.TimeFormat) }
		send := func(id, sent, body string) reply {
			h := http.Header{"Repeatability-Request-Id": {id}}
			if sent != "" {
				h.Set("Repeatability-First-Sent", sent)
			}
			return cl.Do(request{Header: h, Body: body})
		}
		const one, two, three = "0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-469f-a165-708677289502", "0f8fad5b-d9cb-469f-a165-708677289503"
		for i, c := range []struct {
			id, sent, body string
			status         int
			result         string
		}{
			{one, at(0), `{"a":1}`, 201, "accepted"},
			{one, at(0), `{"a":1}`, 201, "accepted"},
			{one, at(0), `{"a":2}`, 400, "rejected"},
			{one, at(time.Second), `{"a":1}`, 400, "rejected"},
			{two, "", `{}`, 400, "rejected"},
			{two, "yesterday", `{}`, 400, "rejected"},
			{two, now.UTC().Format(time.RFC3339), `{}`, 400, "rejected"},
			{two, at(5 * time.Minute), `{}`, 412, "rejected"},
			{two, at(-5 * time.Minute), `{}`, 412, "rejected"},
			{three, at(5*time.Minute - time.Second), `{}`, 201, "accepted"},
		} {
			got := send(c.id, c.sent, c.body)
			if got.Status != c.status || got.Header.Get("Repeatability-Result") != c.result {
				t.Errorf("%d: %d %q, want %d %q: %s", i, got.Status, got.Header.Get("Repeatability-Result"), c.status, c.result, got.Body)
			}
		}
		mocktest.WantCounts(t, s, one, 4, 1)
		mocktest.WantCounts(t, s, two, 5, 0)
	})
}

// TestFirstSentRule: who changes the time of the first send breaks a rule, unless the server has not acted before.
func TestFirstSentRule(t *testing.T) {
	t.Parallel()
	p, _ := profile.ByName("azure-repeatability")
	const id = "0f8fad5b-d9cb-469f-a165-70867728950e"
	lost, busy, down := mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.Answer, Status: 429}, mockserver.Fault{Kind: mockserver.Answer, Status: 503}
	for _, c := range []struct {
		name   string
		fault  mockserver.Fault
		change bool
		breaks bool
	}{
		{"changed after a lost answer", lost, true, true},
		{"changed after a 503", down, true, true},
		{"changed after a 429", busy, true, false},
		{"the same after a lost answer", lost, false, false},
		{"the same after a 429", busy, false, false},
	} {
		mocktest.Bubble(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{c.fault}}, func(s *mockserver.Server, cl *client) {
			sent := time.Now()
			send := func() {
				cl.Do(request{Header: http.Header{"Repeatability-Request-Id": {id}, "Repeatability-First-Sent": {sent.UTC().Format(http.TimeFormat)}}})
			}
			send()
			time.Sleep(2 * time.Second)
			if c.change {
				sent = time.Now()
			}
			send()
			if broken := slices.Contains(mocktest.Rules(s), mockserver.RuleFirstSent); broken != c.breaks {
				t.Errorf("%s: broken %t, want %t: %v", c.name, broken, c.breaks, s.Err())
			}
		})
	}
}
