package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// byOrder are the flags for the mock's orders, whose number is taken once.
func byOrder(args ...string) []string {
	return append(args, "--profile", "none", "--already-done", "409:/error/code=duplicate_order", "--lookup", "/orders?ref={order_id}#/data", "--same", "amount,currency,order_id=/ref")
}

// ordersByNumber is a mock that takes each order once, and meets these faults.
func ordersByNumber(t *testing.T, script ...mockserver.Fault) *mockserver.Server {
	t.Helper()
	p := profile.None()
	p.Duplicate = []profile.Matcher{{Status: []int{409}, Pointer: "/error/code", Equals: []string{"duplicate_order"}}}
	p.Reference = &profile.Reference{Path: "/orders?ref={/order_id}", List: "/data", Same: []profile.Same{
		{Request: "/order_id", Resource: "/ref"}, {Request: "/amount", Resource: "/amount"}, {Request: "/currency", Resource: "/currency"},
	}}
	return startMock(t, mockserver.Config{Profile: p, Script: script})
}

// book makes an order that is not the batch's.
func book(t *testing.T, m *mockserver.Server, body string) {
	t.Helper()
	resp, err := http.Post(m.URL()+"/orders", "application/json", strings.NewReader(body))
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
}

// Through lost answers, each order is made once, and each row is done: without a key, by the number alone; as JSON and as
// a form.
func TestBatchByNumber(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string][]string{"json": nil, "form": {"--form"}, "asking first": {"--ask-first"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startCommand(t, byOrder("--faults", "drop-after=0.5", "--seed", "3")...)
			var csv strings.Builder
			csv.WriteString("order_id,amount,currency\n")
			for i := range 24 {
				fmt.Fprintf(&csv, "o %d/&,%d,eur\n", i, 100+i)
			}
			args := fast(byOrder("batch", writeFile(t, "in.csv", csv.String()), "--url", m.url+"/orders", "--key", "order:{order_id}", "--max-attempts", "12")...)
			already := 0
			for _, l := range run(t, append(args, extra...)...).want(t, exitOK).lines(t) {
				if l.Result == resultDuplicate {
					already++
				} else if l.Result != resultDone {
					t.Errorf("%+v", l)
				}
			}
			if already == 0 {
				t.Error("no order was found again: no answer was lost, or nobody asked")
			}
			if got := m.stop(); !strings.Contains(got.err, " 24 effects") {
				t.Errorf("stderr %q, want 24 effects", got.err)
			}
		})
	}
}

// A number that was used before the first send is a result of its own, held, whoever used it; a run after it sends nothing.
func TestDuplicateOnFirstSend(t *testing.T) {
	t.Parallel()
	m := ordersByNumber(t)
	book(t, m, `{"order_id":"o1","amount":"100","currency":"eur"}`)
	file := writeFile(t, "in.csv", "order_id,amount,currency\no1,100,eur\no2,200,eur\n")
	args := fast(byOrder("batch", file, "--url", m.URL()+"/orders", "--key", "order:{order_id}", "--workers", "1")...)
	for i := range 2 {
		got := run(t, args...).want(t, exitUnknown)
		lines := got.lines(t)
		if l := lines[0]; l.Result != resultDuplicate || l.Outcome != "unknown" || l.State != "held" || l.Error == nil || l.Error.Code != "duplicate_reference" {
			t.Errorf("run %d: %+v", i, l)
		}
		if lines[1].Result != resultDone || !strings.Contains(got.err, "1 duplicate (409): find out whose they are, and settle them") && i == 0 {
			t.Errorf("run %d: %+v, stderr %s", i, lines[1], got.err)
		}
	}
	if n := m.Ledger().Snapshot().Effects; n != 2 { // one of them somebody else's
		t.Errorf("%d effects, want 2", n)
	}
	j := file + ".oncehttp.db"
	if got := run(t, "journal", "list", "--journal", j, "--result", "duplicate").want(t, exitOK); !strings.Contains(got.out, "held (duplicate)") || strings.Contains(got.out, "o2") {
		t.Errorf("stdout %s", got.out)
	}
	run(t, "journal", "settle", "idemp:order:o1", "--happened", "--journal", j).want(t, exitOK)
	run(t, args...).want(t, exitOK)
}

// After a lost answer an order with another amount is not this row's: it is held as a mismatch, and never done.
func TestDuplicateOfAnother(t *testing.T) {
	t.Parallel()
	m := ordersByNumber(t, mockserver.Fault{}, mockserver.Fault{Kind: mockserver.DropAfter})
	book(t, m, `{"order_id":"o1","amount":"999","currency":"eur"}`)
	file := writeFile(t, "in.csv", "order_id,amount,currency\no1,100,eur\n")
	l := run(t, fast(byOrder("batch", file, "--url", m.URL()+"/orders", "--key", "order:{order_id}")...)...).want(t, exitUnknown).only(t)
	if l.Result != resultHeld || l.Error == nil || l.Error.Code != "key_reused" {
		t.Errorf("%+v", l)
	}
}

// A resume without the flags sends nothing, and says which are missing; with them it finishes.
func TestSendAndResumeByNumber(t *testing.T) {
	t.Parallel()
	m := ordersByNumber(t, mockserver.Fault{Kind: mockserver.DropAfter})
	j := journalIn(t)
	send := fast(byOrder("send", "POST", m.URL()+"/orders", "-d", `{"order_id":"o1","amount":100,"currency":"eur"}`, "--key", "order:o1", "--journal", j, "--max-attempts", "1")...)
	run(t, send...).want(t, exitUnknown)
	got := run(t, fast("journal", "resume", "--journal", j)...).want(t, exitUnknown)
	if l := got.only(t); l.Sends > 1 || !strings.Contains(l.why(), "it was begun with --already-done; say that, --lookup and --same again") {
		t.Errorf("%+v", l)
	}
	if n := m.Ledger().Snapshot().Sends; n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
	if l := run(t, fast(byOrder("journal", "resume", "--journal", j)...)...).want(t, exitOK).only(t); l.Result != resultDuplicate || l.Outcome != "confirmed" || l.Status != 200 {
		t.Errorf("%+v", l)
	}
	if n := m.Ledger().Snapshot().Effects; n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// What is wrong with the flags, or missing in a row, is said before anything is sent.
func TestGoldenNaturalMessages(t *testing.T) {
	t.Parallel()
	s := refusing(t)
	file := writeFile(t, "in.csv", "order_id,amount\no1,1\no2,\n")
	var all strings.Builder
	const done = "409:/error/code=duplicate_order"
	for _, args := range [][]string{
		{"--lookup", "/orders?ref={order_id}"}, {"--same", "amount"}, {"--ask-first"}, {"--already-done", ""}, {"--already-done", "200"}, {"--already-done", "409:error"},
		{"--already-done", "409:/error="}, {"--already-done", "409:/a~b"}, {"--already-done", done, "--same", "amount"}, {"--already-done", done, "--ask-first"},
		{"--already-done", done, "--lookup", "/orders?ref={order_id}"}, {"--already-done", done, "--lookup", "/orders", "--same", "amount"},
		{"--already-done", done, "--lookup", "orders/{order_id}", "--same", "amount"}, {"--already-done", done, "--lookup", "/orders/{order_id", "--same", "amount"},
		{"--already-done", done, "--lookup", "/orders?ref={order_id}#data", "--same", "amount"}, {"--already-done", done, "--lookup", "/o/{order_id}", "--same", "amount="},
		{"--already-done", done, "--lookup", "/orders?ref={order_id}", "--same", "amount"}, {"--already-done", done, "--lookup", "/orders?ref={order}", "--same", "amount"},
	} {
		got := run(t, append([]string{"batch", file, "--url", s.url, "--key", "o:{order_id}"}, args...)...).want(t, exitUsage)
		fmt.Fprintf(&all, "%s\n%s\n", strings.Join(quoted(args), " "), strings.ReplaceAll(got.err, file, "in.csv"))
	}
	golden(t, "natural-messages", all.String())
}
