package journal_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestShowNamesNextGeneration: show of a key names the operation under its next generation, with its result, and a key is found by its end. A pruned
// request is called so.
func TestShowNamesNextGeneration(t *testing.T) {
	t.Parallel()
	status := http.StatusNotFound
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such route", status) })
	file := commandtest.WriteFile(t, "in.csv", "order,amount\nINV-1,1.00\n")
	j := file + ".oncehttp.db"
	batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "pay:{order}")
	commandtest.Run(t, batch...).Want(t, terminal.ExitRefused)
	show := func(args ...string) string {
		return commandtest.Run(t, append([]string{"journal", "show", "--journal", j}, args...)...).Want(t, terminal.ExitOK).Out
	}
	if got := show("INV-1"); !strings.HasPrefix(got, "idemp:pay:INV-1\n") || strings.Contains(got, "generation") {
		t.Errorf("before: %s", got)
	}
	status = http.StatusCreated
	commandtest.Run(t, append(batch, "--generation", "2")...).Want(t, terminal.ExitOK)
	if got := show("pay:INV-1"); !strings.Contains(got, "\n  next generation: idemp:pay:INV-1:gen=2 (done)\n") {
		t.Errorf("after: %s", got)
	}
	if got := show("idemp:pay:INV-1:gen=2"); strings.Contains(got, "next generation") {
		t.Errorf("the last: %s", got)
	}
	commandtest.Run(t, "journal", "show", "NV-1", "--journal", j).Usage(t, `oncehttp: journal `+j+`: no operation has the key "NV-1"`)
	commandtest.Run(t, "journal", "prune", "--keep-answer", "-1s", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	if got := show("pay:INV-1", "--body"); !strings.Contains(got, ", its body was pruned, profile") || strings.Contains(got, "0 bytes") {
		t.Errorf("pruned: %s", got)
	}
}

// TestStuckBesideSend: what the process that has the journal is sending is not called due and never sent, neither by stuck nor by show.
func TestStuckBesideSend(t *testing.T) {
	t.Parallel()
	url, arrived, release := commandtest.Blocking(t)
	file := filepath.Join(commandtest.ShortDir(t), "in.csv")
	commandtest.WriteFile(t, file, "id\nsent\n")
	j := file + ".oncehttp.db"
	end := commandtest.Beside(arrived, commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--max-attempts", "1")...)
	stuck := commandtest.Run(t, "journal", "stuck", "--journal", j)
	show := commandtest.Run(t, "journal", "show", "o:sent", "--journal", j)
	close(release)
	end()
	if !strings.Contains(stuck.Out, "sent by the process that has the journal") || strings.Contains(stuck.Err, "never sent") {
		t.Errorf("stuck: %s%s", stuck.Out, stuck.Err)
	}
	if !strings.Contains(show.Out, "sent by the process that has the journal") || strings.Contains(show.Out, "\n  next ") {
		t.Errorf("show: %s", show.Out)
	}
	// Afterwards it may have been sent, and its next attempt is due.
	stuck = commandtest.Run(t, "journal", "stuck", "--journal", j).Want(t, terminal.ExitOK)
	if strings.Contains(stuck.Err, "never sent") {
		t.Errorf("afterwards: %s", stuck.Err)
	}
}

// TestStatsOfNothingFinished: where nothing has finished, no time to finish is shown.
func TestStatsOfNothingFinished(t *testing.T) {
	t.Parallel()
	j := commandtest.JournalIn(t)
	commandtest.EnqueueOne(t, j, "http://127.0.0.1:1/", "k", "{}")
	if got := commandtest.Run(t, "journal", "stats", "--journal", j).Want(t, terminal.ExitOK); strings.Contains(got.Out, "to finish") || !strings.Contains(got.Out, "not done") {
		t.Errorf("%s", got.Out)
	}
}

// TestEraseTooEarly: an operation that has ended, and whose process might still send, is not called in flight.
func TestEraseTooEarly(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	j := commandtest.JournalIn(t)
	commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "--key", "a", "--journal", j)...).Want(t, terminal.ExitOK)
	got := commandtest.Run(t, "journal", "erase", "a", "--yes", "--journal", j).Want(t, terminal.ExitUnknown)
	if strings.Contains(got.Err, "in flight") || !strings.Contains(got.Err, `j.db: erase "a": the API may know the key "a", or its answer is kept, until `) {
		t.Errorf("%s", got.Err)
	}
}
