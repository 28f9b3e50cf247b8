package batch_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/testrun"
)

// printedLines reads what was printed; a line that a kill cut off is none.
func printedLines(t *testing.T, out string) []results.Line {
	t.Helper()
	whole, _, _ := cutLast(out, "\n")
	return commandtest.Ran{Out: whole}.Lines(t)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i+len(sep)], s[i+len(sep):], true
}

// The batch is killed with SIGKILL at 30 random moments, under lost answers,
// lost requests, cut bodies and 503s. No row is lost, none is done twice, and
// every printed answer is the server's own.
func TestBatchKilled(t *testing.T) {
	t.Parallel()
	rows, kills := testrun.N(400, 1000), testrun.N(12, 30)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	b := commandtest.OpenBank(t, seed)
	file := commandtest.WriteFile(t, "orders.csv", commandtest.Orders(rows))
	args := []string{
		"batch", file, "--url", b.URL + "/payments", "--key", commandtest.OrderKey, "--number", "amount",
		"--max-attempts", "40", "--min-delay", "100us", "--max-delay", "2ms",
	}
	sends := map[string]int{}
	for killed := 0; killed < kills; {
		// A moment after a request, so that it also falls between two of them; at
		// request 0, a moment after the start.
		request, moment := random.IntN(rows/kills), time.Duration(random.IntN(3000))*time.Microsecond
		if request == 0 {
			moment *= 10
		}
		trigger, kill := b.KillAt(request), make(chan struct{})
		timer := make(chan *time.Timer, 1)
		go func() {
			<-trigger
			timer <- time.AfterFunc(moment, func() { close(kill) })
		}()
		status, out, errs := commandtest.Command(t, kill, args...)
		if status != -1 {
			t.Fatalf("kill %d at request %d: the command ended by itself with status %d: %s", killed+1, request, status, errs)
		}
		<-timer
		killed++
		b.Check(t, printedLines(t, out), sends)
	}
	b.KillAt(-1) // no more
	t.Logf("%d effects and %d printed answers after %d kills", b.Ledger().Snapshot().Effects, len(sends), kills)

	status, out, errs := commandtest.Command(t, nil, args...)
	if status != terminal.ExitOK {
		t.Fatalf("the last run ended with status %d: %s", status, errs)
	}
	b.Check(t, printedLines(t, out), sends)
	total := b.Ledger().Snapshot()
	for key, c := range total.Keys {
		if c.Effects != 1 {
			t.Errorf("%s: %d effects", key, c.Effects)
		}
	}
	if total.Effects != rows || len(total.Keys) != rows || len(sends) != rows {
		t.Errorf("%d effects of %d keys, %d printed; want %d", total.Effects, len(total.Keys), len(sends), rows)
	}
	t.Logf("%d sends, %d effects", total.Sends, total.Effects)

	status, out, errs = commandtest.Command(t, nil, args...)
	lines := printedLines(t, out)
	b.Check(t, lines, sends)
	if now := b.Ledger().Snapshot().Sends; status != terminal.ExitOK || len(lines) != rows || now != total.Sends {
		t.Errorf("once more: status %d, %d lines, %d sends: %s", status, len(lines), now-total.Sends, errs)
	}
}
