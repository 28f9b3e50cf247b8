package batch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// holding is a server that holds the first requests, so many of them, until it is released.
type holding struct {
	*commandtest.Counted
	full    chan struct{} // closed once so many are held
	release chan struct{}

	mu    sync.Mutex
	now   int // requests under way
	most  int // the largest number of them
	first int // so many are held
	of    map[string]int
}

func hold(t *testing.T, first int) *holding {
	h := &holding{full: make(chan struct{}), release: make(chan struct{}), first: first, of: map[string]int{}}
	h.Counted = commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h.enter(r.Header.Get("Idempotency-Key"))
		select {
		case <-h.release:
		case <-time.After(20 * time.Second):
		}
		h.mu.Lock()
		h.now--
		h.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	})
	return h
}

func (h *holding) enter(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	h.most = max(h.most, h.now)
	if h.of[key]++; len(h.of) == h.first {
		close(h.full)
	}
}

// More rows are in hand than requests may go out, and never more requests go out than --workers says.
func TestWorkersBoundRequests(t *testing.T) {
	t.Parallel()
	const workers, rows = 16, 300
	server := hold(t, workers)
	journal := commandtest.JournalIn(t)
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(rows))
	end := commandtest.Beside(server.full, "batch", file, "--url", server.URL, "--key", commandtest.OrderKey, "--workers", "16", "--journal", journal)
	begun := 0
	for start := time.Now(); begun < workers+2 && time.Since(start) < 10*time.Second; {
		begun = strings.Count(commandtest.Run(t, "journal", "list", "--journal", journal, "--json").Out, `"key"`)
	}
	close(server.release)
	if begun != workers+2 {
		t.Errorf("%d operations stand while %d requests are held, want %d", begun, workers, workers+2)
	}
	if lines := end().Want(t, terminal.ExitOK).Lines(t); len(lines) != rows {
		t.Errorf("%d lines, want %d", len(lines), rows)
	}
	if server.most != workers || int(server.Sends.Load()) != rows {
		t.Errorf("%d requests at once and %d in all, want %d and %d", server.most, server.Sends.Load(), workers, rows)
	}
}

// Rows in hand without a place on the wire are not sent after Ctrl-C, and count as not tried, or as stopped; the same command does them.
func TestInterruptedBesideTheWire(t *testing.T) {
	t.Parallel()
	const workers, rows = 16, 60
	server := hold(t, workers)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(rows))
	args := []string{"batch", file, "--url", server.URL, "--key", commandtest.OrderKey, "--workers", "16"}
	go func() {
		<-server.full
		interrupt()
		time.AfterFunc(300*time.Millisecond, func() { close(server.release) })
	}()
	var out, errs strings.Builder
	status := command.Run(ctx, args, strings.NewReader(""), &out, &errs)
	first := commandtest.Ran{Status: status, Out: out.String(), Err: errs.String()}.Want(t, terminal.ExitUnknown)
	lines := first.Lines(t)
	for _, l := range lines {
		if l.Result != results.Done || l.Sends != 1 {
			t.Errorf("row %d: %+v", l.Row, l)
		}
	}
	untried, stopped := 0, 0
	_, rest, _ := strings.Cut(first.Err, "60 rows: 16 done (201), ")
	_, _ = fmt.Sscanf(rest, "%d not looked at, %d stopped before a send; ", &untried, &stopped)
	if len(lines) != workers || int(server.Sends.Load()) != workers || untried+stopped != rows-workers || stopped > workers {
		t.Errorf("%d rows are done after %d sends, want %d\n%s", len(lines), server.Sends.Load(), workers, first.Err)
	}
	commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	for key, n := range server.of {
		if n != 1 {
			t.Errorf("%s was sent %d times", key, n)
		}
	}
	if len(server.of) != rows {
		t.Errorf("%d keys, want %d", len(server.of), rows)
	}
}
