package session_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/golden"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
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
	return commandtest.StartMock(t, mockserver.Config{Profile: p, Script: script})
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
			m := commandtest.StartCommand(t, byOrder("--faults", "drop-after=0.5", "--seed", "3")...)
			var csv strings.Builder
			csv.WriteString("order_id,amount,currency\n")
			for i := range 24 {
				fmt.Fprintf(&csv, "o %d/&,%d,eur\n", i, 100+i)
			}
			args := commandtest.Fast(byOrder("batch", commandtest.WriteFile(t, "in.csv", csv.String()), "--url", m.URL+"/orders", "--key", "order:{order_id}", "--max-attempts", "12")...)
			already := 0
			for _, l := range commandtest.Run(t, append(args, extra...)...).Want(t, terminal.ExitOK).Lines(t) {
				if l.Result != results.Done {
					t.Errorf("%+v", l)
				}
				if l.Status == http.StatusOK { // the answer of the lookup
					already++
				}
			}
			if already == 0 {
				t.Error("no order was found again: no answer was lost, or nobody asked")
			}
			if got := m.Stop(); !strings.Contains(got.Err, " 24 effects") {
				t.Errorf("stderr %q, want 24 effects", got.Err)
			}
		})
	}
}

// A number that was used before the first send is a result of its own, held, whoever used it; a run after it sends nothing.
func TestDuplicateOnFirstSend(t *testing.T) {
	t.Parallel()
	m := ordersByNumber(t)
	book(t, m, `{"order_id":"o1","amount":"100","currency":"eur"}`)
	file := commandtest.WriteFile(t, "in.csv", "order_id,amount,currency\no1,100,eur\no2,200,eur\n")
	args := commandtest.Fast(byOrder("batch", file, "--url", m.URL()+"/orders", "--key", "order:{order_id}", "--workers", "1")...)
	for i := range 2 {
		got := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
		lines := got.Lines(t)
		if l := lines[0]; l.Result != results.Duplicate || l.Outcome != "unknown" || l.State != "held" || l.Error == nil || l.Error.Code != "duplicate_reference" {
			t.Errorf("run %d: %+v", i, l)
		}
		if lines[1].Result != results.Done || !strings.Contains(got.Err, "1 held (409): find out whose they are, and settle them") && i == 0 {
			t.Errorf("run %d: %+v, stderr %s", i, lines[1], got.Err)
		}
	}
	if n := m.Ledger().Snapshot().Effects; n != 2 { // one of them somebody else's
		t.Errorf("%d effects, want 2", n)
	}
	j := file + ".oncehttp.db"
	if got := commandtest.Run(t, "journal", "list", "--journal", j, "--result", "duplicate").Want(t, terminal.ExitOK); !strings.Contains(got.Out, "held (duplicate)") || strings.Contains(got.Out, "o2") {
		t.Errorf("stdout %s", got.Out)
	}
	commandtest.Run(t, "journal", "settle", "idemp:order:o1", "--happened", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, args...).Want(t, terminal.ExitOK)
}

// After a lost answer an order with another amount is not this row's: it is held as a mismatch, and never done.
func TestDuplicateOfAnother(t *testing.T) {
	t.Parallel()
	m := ordersByNumber(t, mockserver.Fault{}, mockserver.Fault{Kind: mockserver.DropAfter})
	book(t, m, `{"order_id":"o1","amount":"999","currency":"eur"}`)
	file := commandtest.WriteFile(t, "in.csv", "order_id,amount,currency\no1,100,eur\n")
	const why = "what the lookup found has another value at /amount than the request at /amount"
	args := commandtest.Fast(byOrder("batch", file, "--url", m.URL()+"/orders", "--key", "order:{order_id}")...)
	l := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown).Only(t)
	if l.Result != results.Held || l.Error == nil || l.Error.Code != "lookup_mismatch" || !strings.HasSuffix(l.Why(), why) || strings.Contains(l.Why(), "key belongs") {
		t.Errorf("%+v", l)
	}
	if l := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown).Only(t); l.Result != results.Held || !strings.Contains(l.Why(), why) {
		t.Errorf("from the journal: %+v", l)
	}
	if got := commandtest.Run(t, "journal", "stuck", "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK); !strings.Contains(got.Out, "what the lookup found has another value at /amount") {
		t.Errorf("stuck: %s", got.Out)
	}
}

// A lookup that cannot be read is named in the row's message, in the first run and in one that sends nothing again.
func TestLookupThatDoesNotTell(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "<html>log in</html>")
	})
	file := commandtest.WriteFile(t, "in.csv", "order_id,amount,currency\no1,100,eur\n")
	args := commandtest.Fast(byOrder("batch", file, "--url", s.URL+"/orders", "--key", "order:{order_id}", "--ask-first", "--max-attempts", "2")...)
	for _, code := range []string{"no_answer", "not_sent_again"} {
		got := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
		if l := got.Only(t); l.Result != results.Unknown || l.Error == nil || l.Error.Code != code || !strings.HasSuffix(l.Why(), "; last attempt: the lookup's answer is no JSON") {
			t.Errorf("%s: %+v", code, l)
		}
	}
}

// A row that was begun with another --lookup is held by a run with the corrected one, which names the flags.
func TestCorrectedLookup(t *testing.T) {
	t.Parallel()
	m := ordersByNumber(t, mockserver.Fault{Kind: mockserver.DropAfter})
	file := commandtest.WriteFile(t, "in.csv", "order_id,amount,currency\no1,100,eur\n")
	args := func(lookup string) []string {
		return commandtest.Fast("batch", file, "--url", m.URL()+"/orders", "--key", "order:{order_id}", "--number", "amount", "--profile", "none", "--already-done", "409:/error/code=duplicate_order",
			"--lookup", lookup, "--same", "amount,currency,order_id=/ref", "--max-attempts", "2")
	}
	if l := commandtest.Run(t, args("/orders?ref={order_id}#/nope")...).Want(t, terminal.ExitUnknown).Only(t); !strings.Contains(l.Why(), "last attempt: the lookup's answer has no list at /nope; where the lookup does not tell") {
		t.Errorf("%+v", l)
	}
	l := commandtest.Run(t, args("/orders?ref={order_id}#/data")...).Want(t, terminal.ExitUnknown).Only(t)
	if l.Result != results.Held || !strings.Contains(l.Why(), "the operation was begun with other values of --already-done, --lookup, --same, --done, --declined or --unknown: say those again, which reads its kept answer and looks nothing up, or settle it") {
		t.Errorf("%+v", l)
	}
	commandtest.Run(t, "journal", "settle", "order:o1", "--happened", "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK)
	if n := m.Ledger().Snapshot().Effects; n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// A resume without the flags sends nothing, and says which are missing; with them it finishes.
func TestSendAndResumeByNumber(t *testing.T) {
	t.Parallel()
	m := ordersByNumber(t, mockserver.Fault{Kind: mockserver.DropAfter})
	j := commandtest.JournalIn(t)
	send := commandtest.Fast(byOrder("send", "POST", m.URL()+"/orders", "-d", `{"order_id":"o1","amount":100,"currency":"eur"}`, "--key", "order:o1", "--journal", j, "--max-attempts", "1")...)
	commandtest.Run(t, send...).Want(t, terminal.ExitUnknown)
	got := commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", j)...).Want(t, terminal.ExitUnknown)
	if l := got.Only(t); l.Sends > 1 || !strings.Contains(l.Why(), "it was begun with --already-done; say that, --lookup and --same again") {
		t.Errorf("%+v", l)
	}
	if n := m.Ledger().Snapshot().Sends; n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
	if l := commandtest.Run(t, commandtest.Fast(byOrder("journal", "resume", "--journal", j)...)...).Want(t, terminal.ExitOK).Only(t); l.Result != results.Done || l.Outcome != "confirmed" || l.Status != 200 {
		t.Errorf("%+v", l)
	}
	if n := m.Ledger().Snapshot().Effects; n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// What is wrong with the flags, or missing in a row, is said before anything is sent.
func TestGoldenNaturalMessages(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	file := commandtest.WriteFile(t, "in.csv", "order_id,amount\no1,1\no2,\n")
	var all strings.Builder
	const done = "409:/error/code=duplicate_order"
	for _, args := range [][]string{
		{"--lookup", "/orders?ref={order_id}"}, {"--same", "amount"}, {"--ask-first"}, {"--already-done", ""}, {"--already-done", "200"}, {"--already-done", "409:error"},
		{"--already-done", "409:/error="}, {"--already-done", "409:/a~b"}, {"--already-done", done, "--same", "amount"}, {"--already-done", done, "--ask-first"},
		{"--already-done", done, "--lookup", "/orders?ref={order_id}"}, {"--already-done", done, "--lookup", "/orders", "--same", "amount"},
		{"--already-done", done, "--lookup", "orders/{order_id}", "--same", "amount"}, {"--already-done", done, "--lookup", "/orders/{order_id", "--same", "amount"},
		{"--already-done", done, "--lookup", "/orders?ref={order_id}#data", "--same", "amount"}, {"--already-done", done, "--lookup", "/o/{order_id}", "--same", "amount="},
		{"--already-done", done, "--lookup", "/orders?ref={order_id}", "--same", "amount"}, {"--already-done", done, "--lookup", "/orders?ref={order}", "--same", "amount"},
		{"--already-done", done, "--lookup", "/orders?ref={id}", "--same", "amount"},
	} {
		got := commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{order_id}"}, args...)...).Want(t, terminal.ExitUsage)
		fmt.Fprintf(&all, "%s\n%s\n", strings.Join(words.Quoted(args), " "), strings.ReplaceAll(got.Err, file, "in.csv"))
	}
	golden.Compare(t, "natural-messages", all.String())
}
