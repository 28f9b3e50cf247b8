package batch_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestLookupFindsAFailedOrder: what a lookup has found and the API calls failed has a doubt, and --declined reads the found order, as --done does.
func TestLookupFindsAFailedOrder(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method != http.MethodGet {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"order_id":"`+r.URL.Query().Get("ref")+`","status":"failed"}]}`)
	})
	batch := func(more ...string) commandtest.Ran {
		file := commandtest.WriteFile(t, "in.csv", "order_id\nr1\n")
		return commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", s.URL + "/pay", "--key", "o:{order_id}", "--already-done", "409:/error=duplicate",
			"--lookup", "/orders?ref={order_id}#/data", "--same", "order_id", "--ask-first", "--max-attempts", "2"}, more...)...)...)
	}
	for name, c := range map[string]struct {
		more   []string
		status int
		result results.Result
		says   string
	}{
		"nothing said":         {nil, terminal.ExitOK, results.Done, "1 of the done: the answer has /data/0/status=failed"},
		"its status":           {[]string{"--declined", "/status=failed"}, terminal.ExitRefused, results.Declined, "1 declined (200): --generation 2 tries anew"},
		"by the whole answer":  {[]string{"--declined", "/data/0/status=failed"}, terminal.ExitRefused, results.Declined, "1 declined (200)"},
		"another status":       {[]string{"--declined", "/status=voided"}, terminal.ExitOK, results.Done, "1 of the done: the answer has /data/0/status=failed"},
		"done by the resource": {[]string{"--done", "/status=failed"}, terminal.ExitOK, results.Done, "1 done"},
	} {
		got := batch(c.more...).Want(t, c.status)
		if l := got.Lines(t)[0]; l.Result != c.result || !strings.Contains(got.Err, c.says) {
			t.Errorf("%s: %s, want %s; it says %q, want %q", name, l.Result, c.result, got.Err, c.says)
		}
	}
}

// TestLookupFindsARefund: --declined reads the order that a lookup found, and no other object of the answer: a failed refund makes no decline of a paid order.
func TestLookupFindsARefund(t *testing.T) {
	t.Parallel()
	for lookup, answer := range map[string]string{
		"/orders/{order_id}":             `{"order_id":"r1","status":"succeeded","refunds":[{"id":"re1","status":"failed"}]}`,
		"/orders?ref={order_id}#/data":   `{"data":[{"order_id":"r1","status":"succeeded"}],"included":[{"status":"failed"}]}`,
		"/orders?again={order_id}#/data": `{"data":[{"order_id":"r1","status":"succeeded","refunds":[{"status":"failed"}]}]}`,
	} {
		s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Method != http.MethodGet {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})
		file := commandtest.WriteFile(t, "in.csv", "order_id\nr1\n")
		got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL+"/pay", "--key", "o:{order_id}", "--already-done", "409:/error=duplicate", "--lookup", lookup, "--same", "order_id",
			"--ask-first", "--max-attempts", "2", "--declined", "/status=failed")...).Want(t, terminal.ExitOK)
		if l := got.Lines(t)[0]; l.Result != results.Done {
			t.Errorf("%s: %s: %s", lookup, l.Result, got.Err)
		}
	}
}

// TestTwinsOfOpenRows: a row that repeats another one which is not done shares its class, in a run and in a dry run, and the summary says that it is counted there.
func TestTwinsOfOpenRows(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(body), "no") {
			w.WriteHeader(http.StatusPaymentRequired)
		}
		_, _ = io.WriteString(w, `{"id":1}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "id,amount\nno,2.00\nyes,1.00\nno,2.00\nyes,1.00\n")
	args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--sum", "amount"}
	const totals = "1.00 in 1 done + 1.00 in 1 duplicate + 4.00 in 2 declined"
	got := commandtest.Run(t, args...).Want(t, terminal.ExitRefused)
	if !strings.Contains(got.Err, totals) || !strings.Contains(got.Err, "1 repetition with the result of an earlier row that is not done") {
		t.Errorf("a run says %s", got.Err)
	}
	if got := commandtest.Run(t, append(args, "--dry-run")...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, totals) {
		t.Errorf("a dry run says %s", got.Err)
	}
	fresh := commandtest.WriteFile(t, "in.csv", "id,amount\nno,2.00\nyes,1.00\nno,2.00\nyes,1.00\nyes,1.00\n")
	if got := commandtest.Run(t, "batch", fresh, "--url", s.URL, "--key", "o:{id}", "--dry-run", "--sum", "amount").Want(t, terminal.ExitOK); !strings.Contains(got.Err, "2 new, 3 duplicate; 2 would be sent") &&
		!strings.Contains(got.Err, "3 duplicate, 2 new; 2 would be sent") {
		t.Errorf("a dry run without a journal says %s", got.Err)
	}
}
