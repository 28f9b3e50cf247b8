package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// asCommand makes the test binary be the command, so that a test can kill one.
const asCommand = "ONCEHTTP_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	// The tests see no configuration of whoever runs them.
	dir, err := os.MkdirTemp("", "oncehttp-config")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_CONFIG_HOME", dir)
	_ = os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	for _, name := range []string{"ONCEHTTP_CONFIG", "ONCEHTTP_JOURNAL"} {
		_ = os.Unsetenv(name)
	}
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// command runs the command in a process of its own, and kills it with SIGKILL
// when kill is closed. status is -1 if it was killed.
func command(t *testing.T, kill <-chan struct{}, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-kill:
			_ = cmd.Process.Kill() // it may have ended just now
		case <-ended:
		}
	})
	err := cmd.Wait()
	close(ended)
	watching.Wait()
	if ee := (*osexec.ExitError)(nil); err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// bank is a server that breaks on demand, and knows what it answered.
type bank struct {
	*mockserver.Server
	url string

	mu      sync.Mutex
	answers map[string]string // by key
	left    int               // requests until the client is killed
	kill    chan struct{}
}

func openBank(t *testing.T, seed uint64) *bank {
	t.Helper()
	mix, err := mockserver.ParseFaults("drop-after=0.2,drop-before=0.05,cut-body=0.05,503=0.03")
	if err != nil {
		t.Fatal(err)
	}
	b := &bank{answers: map[string]string{}}
	b.Server = mockserver.New(mockserver.Config{
		Mix: mix, Seed: seed, RetryAfter: -1, Handler: http.HandlerFunc(b.pay),
	})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.count()
		b.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		front.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	b.url = front.URL
	return b
}

// pay has the effect, and never answers two payments alike.
func (b *bank) pay(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	answer := fmt.Sprintf(`{"id":"pay_%d","for":%s}`, len(b.answers)+1, body)
	b.answers[key] = answer
	b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

func (b *bank) answer(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answers[key]
}

// killAt gives a channel that is closed when the n-th request from now arrives,
// at once for 0.
func (b *bank) killAt(n int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left, b.kill = n, make(chan struct{})
	if n == 0 {
		close(b.kill)
	}
	return b.kill
}

func (b *bank) count() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left--; b.left == 0 {
		close(b.kill)
	}
}

// printedLines reads what was printed; a line that a kill cut off is none.
func printedLines(t *testing.T, out string) []line {
	t.Helper()
	whole, _, _ := cutLast(out, "\n")
	return ran{out: whole}.lines(t)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i+len(sep)], s[i+len(sep):], true
}

// check compares printed answers with the server's own, and remembers how often
// their keys had been sent: what was printed is never sent again.
func (b *bank) check(t *testing.T, lines []line, sends map[string]int) {
	t.Helper()
	for _, l := range lines {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(b.answer(l.Key))); err != nil {
			t.Fatalf("row %d: the server knows no answer to %s", l.Row, l.Key)
		}
		if l.Outcome != "confirmed" || l.Status != 201 || string(l.Body) != compact.String() {
			t.Fatalf("row %d: printed %+v, body %s; the server answered %s", l.Row, l, l.Body, compact.String())
		}
		n := b.Ledger().Sends(l.Key)
		if before, printed := sends[l.Key]; printed && n != before {
			t.Errorf("row %d: sent %d times more after its answer was printed", l.Row, n-before)
		}
		sends[l.Key] = n
	}
}

// The batch is killed with SIGKILL at 30 random moments, under lost answers,
// lost requests, cut bodies and 503s. No row is lost, none is done twice, and
// every printed answer is the server's own.
func TestBatchKilled(t *testing.T) {
	t.Parallel()
	const rows, kills = 1000, 30
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	b := openBank(t, seed)
	file := writeFile(t, "orders.csv", orders(rows))
	args := []string{
		"batch", file, "--url", b.url + "/payments", "--key", orderKey, "--number", "amount",
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
		trigger, kill := b.killAt(request), make(chan struct{})
		timer := make(chan *time.Timer, 1)
		go func() {
			<-trigger
			timer <- time.AfterFunc(moment, func() { close(kill) })
		}()
		status, out, errs := command(t, kill, args...)
		if status != -1 {
			t.Fatalf("kill %d at request %d: the command ended by itself with status %d: %s", killed+1, request, status, errs)
		}
		<-timer
		killed++
		b.check(t, printedLines(t, out), sends)
	}
	b.killAt(-1) // no more
	t.Logf("%d effects and %d printed answers after %d kills", b.Ledger().Snapshot().Effects, len(sends), kills)

	status, out, errs := command(t, nil, args...)
	if status != exitOK {
		t.Fatalf("the last run ended with status %d: %s", status, errs)
	}
	b.check(t, printedLines(t, out), sends)
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

	status, out, errs = command(t, nil, args...)
	lines := printedLines(t, out)
	b.check(t, lines, sends)
	if now := b.Ledger().Snapshot().Sends; status != exitOK || len(lines) != rows || now != total.Sends {
		t.Errorf("once more: status %d, %d lines, %d sends: %s", status, len(lines), now-total.Sends, errs)
	}
}
