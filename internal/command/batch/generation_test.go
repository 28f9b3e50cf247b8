package batch_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestBatchNamesNextGeneration: a row that generation 2 has done is done, also for a run of generation 1, and a dry run of it. Where that run would send another
// request, it says what generation 2 has done, and does not advise it anew.
func TestBatchNamesNextGeneration(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/right" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"no such route"}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n")
	batch := func(path string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.URL + path, "--key", "o:{id}"}, more...)
	}
	first := commandtest.Run(t, batch("/wrong")...).Want(t, terminal.ExitRefused)
	if !strings.Contains(first.Err, "2 invalid (404): check --url; then, with the right one or corrected rows, --generation 2 tries anew") {
		t.Errorf("the first run says %q", first.Err)
	}
	commandtest.Run(t, batch("/right", "--generation", "2")...).Want(t, terminal.ExitOK)
	again := commandtest.Run(t, batch("/wrong")...).Want(t, terminal.ExitRefused)
	if !strings.Contains(again.Err, "generation 2 of them is done: nothing more is to be sent for them") || strings.Contains(again.Err, "tries anew") {
		t.Errorf("it says %q", again.Err)
	}
	for _, l := range again.Lines(t) {
		if !strings.Contains(l.Why(), "; generation 2 of it is done") {
			t.Errorf("line %+v", l)
		}
	}
	for _, more := range [][]string{nil, {"--dry-run"}} {
		if got := commandtest.Run(t, batch("/right", more...)...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, ": 2 rows: 2 done") {
			t.Errorf("%v: it says %q", more, got.Err)
		}
	}
	commandtest.Run(t, "journal", "prune", "--keep-answer", "-1s", "--journal", file+".oncehttp.db", "--yes").Want(t, terminal.ExitOK)
	if pruned := commandtest.Run(t, batch("/wrong")...).Want(t, terminal.ExitRefused); !strings.Contains(pruned.Err, "generation 2 of them is done: nothing more is to be sent for them") {
		t.Errorf("with its answers pruned it says %q", pruned.Err)
	}
	if s.Sends.Load() != 4 {
		t.Errorf("%d sends, want 4", s.Sends.Load())
	}
}

// TestBatchNamesEarlierGeneration: where an earlier generation has to be run first, the summary names the command that does, and calls the rows as the totals do.
func TestBatchNamesEarlierGeneration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runs [][]string // before, each of which is answered so
		last string
		want string
	}{
		"generation 1 is pending":    {[][]string{{"1", "500"}}, "2", "1 pending (generation 1): run the command without --generation 2 first\n"},
		"generation 1 of 3":          {[][]string{{"1", "500"}}, "3", "1 pending (generation 1): run the command without --generation 3 first\n"},
		"generation 2 is pending":    {[][]string{{"1", "402"}, {"2", "500"}}, "3", "1 pending (generation 2): run the command with --generation 2 first\n"},
		"generation 2 was left out":  {[][]string{{"1", "402"}}, "3", "1 declined (402): run the command with --generation 2 first\n"},
		"generation 1 was never run": {nil, "2", "1 rejected (generation 1): run the command without --generation 2 first\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var status atomic.Int64
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(int(status.Load()))
				_, _ = io.WriteString(w, `{"error":"no"}`)
			})
			file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id,amount\n1,5\n")
			batch := func(generation string) commandtest.Ran {
				return commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--generation", generation, "--max-attempts", "1", "--sum", "amount")...)
			}
			for _, run := range c.runs {
				n, _ := strconv.Atoi(run[1])
				status.Store(int64(n))
				batch(run[0])
			}
			before := s.Sends.Load()
			got := batch(c.last)
			if !strings.Contains(got.Err, c.want) || s.Sends.Load() != before {
				t.Errorf("after %d sends it says %q, want %q", s.Sends.Load()-before, got.Err, c.want)
			}
			class := strings.Fields(c.want)[1]
			if !strings.Contains(got.Err, "1 row: 1 "+class) || !strings.Contains(got.Err, "= 5 in 1 "+class) {
				t.Errorf("the summary and the totals say %q", got.Err)
			}
		})
	}
}
