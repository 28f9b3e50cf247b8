package batch_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// eachSend serves an API that answers the nth send under a key as answers has it, the last one for all later sends: a status, a blank and the body. "lost" is no answer.
func eachSend(t *testing.T, answers ...string) *commandtest.Counted {
	t.Helper()
	var mu sync.Mutex
	sends := map[string]int{}
	return commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		key := r.Header.Get("Idempotency-Key")
		mu.Lock()
		answer := answers[min(sends[key], len(answers)-1)]
		sends[key]++
		mu.Unlock()
		status, body, _ := strings.Cut(answer, " ")
		code, err := strconv.Atoi(status)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
}

// TestCountsOfEarlierRuns: the line of a row that stays open counts the attempts and sends of all runs, as that of a row that ends does, and its message names those of
// this run.
func TestCountsOfEarlierRuns(t *testing.T) {
	t.Parallel()
	s := eachSend(t, "lost")
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	for run := range 2 {
		got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "2")...).Want(t, terminal.ExitUnknown)
		l, sends := got.Lines(t)[0], 2*(run+1)
		if l.Attempts != sends || l.Sends != sends || int(s.Sends.Load()) != sends {
			t.Errorf("run %d: %d attempts, %d sends, of %d", run+1, l.Attempts, l.Sends, s.Sends.Load())
		}
		if named := strings.Contains(l.Why(), "after 4 attempts, 2 of them by this call"); named != (run == 1) {
			t.Errorf("run %d: %s", run+1, l.Why())
		}
	}
}

// TestDoneGivenLater: rows that were begun without --done are named as lacking it, those that this run sends, too.
func TestDoneGivenLater(t *testing.T) {
	t.Parallel()
	s := eachSend(t, "lost", `200 {"status":"pending"}`)
	at := commandtest.WriteFile(t, "in.csv", "id\n1\n2\n")
	batch := func(more ...string) []string {
		return commandtest.Fast(append([]string{"batch", at, "--url", s.URL, "--key", "o:{id}"}, more...)...)
	}
	commandtest.Run(t, batch("--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	for _, which := range []string{"sent by it", "from the journal"} {
		got := commandtest.Run(t, batch("--done", "/status=succeeded")...).Want(t, terminal.ExitOK)
		if !strings.Contains(got.Err, "2 of the done: the answer lacks /status=succeeded") || strings.Contains(got.Err, "of the done: the answer has /status=pending") {
			t.Errorf("%s: %s", which, got.Err)
		}
	}
}

// TestGenerationAfterNext: a --generation that leaves one out names the one to run, also for rows that are not tried anew without --yes.
func TestGenerationAfterNext(t *testing.T) {
	t.Parallel()
	s := eachSend(t, `200 {"code":"ok"}`)
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	batch := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}"}, more...)...)
	}
	batch().Want(t, terminal.ExitOK)
	batch("--declined", "/code=ok").Want(t, terminal.ExitRefused)
	for _, generation := range []string{"3", "4"} {
		got := batch("--generation", generation)
		if !strings.Contains(got.Err, "--generation 2 sends them once more, and only with --yes") {
			t.Errorf("--generation %s says %q", generation, got.Err)
		}
	}
	// A row that differs from what was done before a --declined has no advice to send it anew.
	file2 := commandtest.WriteFile(t, "in.csv", "id,more\n1,2\n")
	got := commandtest.Run(t, "batch", file2, "--url", s.URL, "--key", "o:{id}", "--journal", file+".oncehttp.db").Want(t, terminal.ExitRefused)
	if strings.Contains(got.Err, "refused for certain") || strings.Contains(got.Out, "refused for certain") || !strings.Contains(got.Err, "1 mismatch") {
		t.Errorf("it says %q\n%s", got.Err, got.Out)
	}
	if n := s.Sends.Load(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}

// TestMeaningGivenLater: what --already-done and --lookup say judges only what is begun with them, and the messages of rows begun before say so.
func TestMeaningGivenLater(t *testing.T) {
	t.Parallel()
	s := eachSend(t, "lost", `409 {"error":"duplicate"}`)
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	batch := func(more ...string) results.Line {
		got := commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", s.URL + "/pay", "--key", "o:{id}", "--max-attempts", "2"}, more...)...)...).Want(t, terminal.ExitUnknown)
		if !strings.Contains(got.Err, "settle each as oncehttp journal stuck lists it") {
			t.Errorf("the summary: %s", got.Err)
		}
		return got.Lines(t)[0]
	}
	if l := batch(); !strings.Contains(l.Why(), "for what is begun from then on, say what such an answer means: --already-done '409:/error/code=TEXT'") {
		t.Errorf("without flags: %s", l.Why())
	}
	l := batch("--already-done", "409:/error=duplicate", "--lookup", "/orders?ref={id}#/data", "--same", "id")
	if !strings.Contains(l.Why(), "it was begun without --already-done and --lookup, and those of this run judge only what is begun with them: ask the API") {
		t.Errorf("with flags: %s", l.Why())
	}
}

// TestForgottenCredential: a run without the --credential of the run before says so, and its next step is no other command that lacks it, too.
func TestForgottenCredential(t *testing.T) {
	t.Parallel()
	for flag, value := range map[string]string{"--credential": "sha256:" + strings.Repeat("ab", 32), "--region": "eu"} {
		s := eachSend(t, "lost", "200 {}")
		file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
		batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}")
		commandtest.Run(t, append(batch, flag, value, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
		got := commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
		if !strings.Contains(got.Lines(t)[0].Why(), flag) || !strings.Contains(got.Lines(t)[0].Why(), "as the run that began it had it") || !strings.Contains(got.Err, "give it as the run that began them had it") ||
			strings.Contains(got.Err, "journal resume") {
			t.Errorf("%s: %s\n%s", flag, got.Err, got.Out)
		}
		commandtest.Run(t, append(batch, flag, value)...).Want(t, terminal.ExitOK)
	}
}

// TestResumeCountsOfEarlierRuns: so does the line of journal resume.
func TestResumeCountsOfEarlierRuns(t *testing.T) {
	t.Parallel()
	s := eachSend(t, "lost")
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "3")...).Want(t, terminal.ExitUnknown)
	got := commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", file+".oncehttp.db", "--origin", s.URL, "--max-attempts", "2")...).Want(t, terminal.ExitUnknown)
	if l := got.Lines(t)[0]; l.Attempts != 5 || l.Sends != 5 || s.Sends.Load() != 5 || !strings.Contains(l.Why(), "after 5 attempts, 2 of them by this call") {
		t.Errorf("%d attempts, %d sends, of %d: %s", l.Attempts, l.Sends, s.Sends.Load(), l.Why())
	}
}

// TestGenerationOfANewJournal: a --generation without the journal of the first one says where that may be.
func TestGenerationOfANewJournal(t *testing.T) {
	t.Parallel()
	s := eachSend(t, `402 {"code":"no"}`)
	const note = "is new, and has no earlier generation: where the file was run under another name or --journal, say --journal as then"
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--generation", "2"}
	if got := commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown); !strings.Contains(got.Err, note) || s.Sends.Load() != 0 {
		t.Errorf("it says %s", got.Err)
	}
	commandtest.Run(t, batch[:6]...).Want(t, terminal.ExitRefused)
	if got := commandtest.Run(t, batch...); strings.Contains(got.Err, note) {
		t.Errorf("with a journal it says %s", got.Err)
	}
}

// TestDoubtOfADroppedMember: no flag is advised that reads a member which --drop-answer leaves out.
func TestDoubtOfADroppedMember(t *testing.T) {
	t.Parallel()
	s := eachSend(t, `200 {"id":1,"status":"refused"}`)
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	got := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--drop-answer", "/status").Want(t, terminal.ExitOK)
	if !strings.Contains(got.Err, "1 of the done: the answer has /status=refused; look whether these took effect: --drop-answer keeps that member out of the journal") || strings.Contains(got.Err, "--declined /status") {
		t.Errorf("it says %s", got.Err)
	}
}
