package journal_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestActsWithoutPrefix: the acts find an operation by the key that batch was given, as list and show do, with SEEN and without; a key that is
// spelled so is meant first.
func TestActsWithoutPrefix(t *testing.T) {
	t.Parallel()
	j := commandtest.DoubtJournal(t) // o:1 done, o:2 pending, o:3 held, o:4 abandoned
	bare := func(key string) string { return strings.TrimPrefix(commandtest.SeenAs(t, j, key), "idemp:") }
	for _, c := range []struct {
		args []string
		out  string
	}{
		{[]string{"settle", bare("idemp:o:2"), "--absent", "--yes"}, "settled as absent: idemp:o:2\n"},
		{[]string{"unsettle", "o:2", "--reason", "r"}, "held again: idemp:o:2\n"},
		{[]string{"settle", "o:3", "--happened"}, "settled as happened: idemp:o:3\n"},
		{[]string{"abandon", "o:2", "--yes"}, "abandoned: idemp:o:2\n"},
		{[]string{"abandon", "o:4", "--yes"}, "abandoned already: idemp:o:4\n"},
	} {
		if got := commandtest.Run(t, append(append([]string{"journal"}, c.args...), "--journal", j)...).Want(t, terminal.ExitOK); got.Out != c.out {
			t.Errorf("%q: %q, want %q", c.args, got.Out, c.out)
		}
	}
	if got := commandtest.Run(t, "journal", "erase", "o:1", "--yes", "--journal", j); !strings.Contains(got.Err, `erase "idemp:o:1": the API may know the key "idemp:o:1", or its answer is kept, until `) {
		t.Errorf("erase: %s", got.Err)
	}
	commandtest.Run(t, "journal", "settle", "1", "--happened", "--journal", j).Usage(t, `oncehttp: journal `+j+`: no operation has the key "1"; there is "idemp:o:1"`)
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, key := range []string{"k", "idemp:k"} {
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "-d", "{}", "--key", key, "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	}
	if got := commandtest.Run(t, "journal", "abandon", "k", "--yes", "--journal", j).Want(t, terminal.ExitOK); got.Out != "abandoned: k\n" {
		t.Errorf("an exact key: %q", got.Out)
	}
}
