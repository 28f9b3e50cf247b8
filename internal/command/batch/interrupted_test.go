package batch_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// interrupting keeps a text, and interrupts the command at the first wait between two attempts. Both the client and the command write, as to a terminal.
type interrupting struct {
	strings.Builder
	mu        sync.Mutex
	interrupt context.CancelFunc
}

// Write implements io.Writer.
func (w *interrupting) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(string(p), ": again in ") {
		w.interrupt()
	}
	return w.Builder.Write(p)
}

// TestStoppedBeforeASend: a row that was tried in vain when the batch was interrupted was rejected by nobody. The summary says that it was tried and stopped, and
// how often, and the journal names it as interrupted.
func TestStoppedBeforeASend(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(3))
	var out strings.Builder
	errs := interrupting{interrupt: interrupt}
	status := command.Run(ctx, []string{
		"batch", file, "--url", "http://127.0.0.1:1/", "--key", commandtest.OrderKey, "--workers", "1", "--min-delay", "1h", "--max-delay", "1h", "--max-elapsed", "99h", "--verbose",
	}, strings.NewReader(""), &out, &errs)
	if status != terminal.ExitUnknown || out.Len() > 0 {
		t.Errorf("status %d, stdout %q", status, out.String())
	}
	for _, text := range []string{": 3 rows: ", " stopped before a send; 0 requests sent", " stopped before a send, and nothing happened: run the same command again"} {
		if !strings.Contains(errs.String(), text) {
			t.Errorf("stderr %q, want %q", errs.String(), text)
		}
	}
	if strings.Contains(errs.String(), "rejected") || strings.Contains(errs.String(), "3 not looked at") {
		t.Errorf("stderr %q", errs.String())
	}
	if got := commandtest.Run(t, "journal", "stats", "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK); !strings.Contains(got.Out, "interrupted   1 operation before anything was sent") || strings.Contains(got.Out, "\nrejected") {
		t.Errorf("stats: %q", got.Out)
	}
}
