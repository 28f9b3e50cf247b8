package journal_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestStuckSaysWhatWillBe: what was sent, and is pending under an API without keys, is not due "now": the next run holds it. Once it is held, the line below the
// table names the command that ends it.
func TestStuckSaysWhatWillBe(t *testing.T) {
	t.Parallel()
	url, arrived, release := commandtest.Blocking(t)
	defer close(release)
	j := commandtest.JournalIn(t)
	args := []string{"send", "POST", url, "-d", `{}`, "--key", "idemp:o:1", "--journal", j, "--profile", "none"}
	child, _ := commandtest.Child(t, args...)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	<-arrived
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	commandtest.Status(t, child)
	stuck := func() commandtest.Ran {
		return commandtest.Run(t, "journal", "stuck", "--journal", j).Want(t, terminal.ExitOK)
	}
	if got := stuck(); !strings.Contains(got.Out, "none: held by the next run, since no key protects another send") || strings.Contains(got.Err, "journal settle") {
		t.Errorf("pending: %s%s", got.Out, got.Err)
	}
	commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
	if got := stuck(); !strings.Contains(got.Out, "when settled") || !strings.Contains(got.Err, "held: 1; look at the server, and say what happened: oncehttp journal settle KEY@SEEN --happened --journal "+j+"; or --absent in its place") {
		t.Errorf("held: %s%s", got.Out, got.Err)
	}
	got := commandtest.Run(t, "journal", "resume", "--restored", "idemp:o:1", "--journal", j).Want(t, terminal.ExitUnknown)
	if !strings.Contains(got.Err, "not released: idemp:o:1@") || !strings.Contains(got.Err, "and not held as restored: look at the server") {
		t.Errorf("resume: %s", got.Err)
	}
}

// TestSettleOtherwise: the refusal to settle what is settled as the opposite names that, and the command that takes it back.
func TestSettleOtherwise(t *testing.T) {
	t.Parallel()
	j := commandtest.DoubtJournal(t)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "idemp:o:3"), "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "settle", "idemp:o:3", "--happened", "--journal", j).WantErr(t, `settle "idemp:o:3": it is settled as absent; to take that back: oncehttp journal unsettle idemp:o:3 --reason WHY --journal `+j)
}

// TestStatusesAfterPrune: the numbers by status stay when the answers go.
func TestStatusesAfterPrune(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	j := commandtest.JournalIn(t)
	commandtest.Run(t, "send", "POST", s.URL, "-d", `{}`, "--key", "idemp:o:1", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "prune", "--journal", j, "--keep-answer", "-1s", "--yes").Want(t, terminal.ExitOK)
	if got := commandtest.Run(t, "journal", "stats", "--json", "--journal", j).Want(t, terminal.ExitOK); !strings.Contains(got.Out, `"statuses":{"201":1}`) {
		t.Error(got.Out)
	}
}
