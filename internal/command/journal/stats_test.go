package journal_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/journal"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestStatsOfServer: stats shows the size of a journal on a server, also to a role that may only read, and the average of its
// operations once there are many.
func TestStatsOfServer(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, at string) {
		fillMany(t, at)
		wantSize(t, at, strings.HasPrefix(at, "postgres")) // MariaDB counts later
		for _, role := range commandtest.Readers(t, at) {
			wantSize(t, role, strings.HasPrefix(at, "postgres"))
		}
	})
}

// TestStatsOfRedis: so does the size of the keys on Redis, also of a sealed journal. A user without the right to it sees the rest.
func TestStatsOfRedis(t *testing.T) {
	t.Parallel()
	server := commandtest.OwnRedis(t, commandtest.Durable()...)
	seal := []string{"--seal-key", "@" + commandtest.WriteFile(t, "seal.keys", "a:"+strings.Repeat("QUFB", 10)+"QUE=\n")}
	fillMany(t, server.Journal(), seal...)
	wantSize(t, server.Journal(), true, seal...)
	user := []any{"ACL", "SETUSER", "shop", "on", ">secret", "%R~{oncehttp*", "+@read", "+@connection", "+info", "-memory"}
	if err := server.Client(t).Do(t.Context(), user...).Err(); err != nil {
		t.Fatal(err)
	}
	as := "@" + commandtest.WriteFile(t, "journal.url", strings.Replace(server.Journal(), "redis://", "redis://shop:secret@", 1)+"\n")
	if st := statsOf(t, as, seal...); st.Operations != manyOperations || st.ServerBytes != 0 || st.EachBytes != 0 {
		t.Errorf("without the right: %d operations, %d bytes, %d each", st.Operations, st.ServerBytes, st.EachBytes)
	}
}

// manyOperations is enough for an average.
const manyOperations = 1000

func fillMany(t *testing.T, at string, args ...string) {
	t.Helper()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(manyOperations))
	args = append(args, "batch", file, "--url", s.URL, "--key", "o:{order_id}", "--journal", at, "--quiet")
	commandtest.Run(t, args...).Want(t, terminal.ExitOK)
}

func statsOf(t *testing.T, at string, args ...string) (st journal.Stats) {
	t.Helper()
	got := commandtest.Run(t, append(args, "journal", "stats", "--json", "--journal", at)...).Want(t, terminal.ExitOK)
	if err := json.Unmarshal([]byte(got.Out), &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// wantSize wants the size of a journal with manyOperations, and their average if the server counts at once.
func wantSize(t *testing.T, at string, atOnce bool, args ...string) {
	t.Helper()
	st := statsOf(t, at, args...)
	if st.FileBytes != 0 || st.ServerBytes <= 0 || atOnce && (st.ServerBytes < 300*manyOperations || st.ServerBytes > 10_000*manyOperations || st.EachBytes != st.ServerBytes/manyOperations) {
		t.Errorf("%d bytes, %d each, of a file %d", st.ServerBytes, st.EachBytes, st.FileBytes)
	}
	text := commandtest.Run(t, append(args, "journal", "stats", "--journal", at)...).Want(t, terminal.ExitOK).Out
	if first, _, _ := strings.Cut(text, "\n"); !strings.Contains(first, " MB on its server") || atOnce && !strings.Contains(first, " KB for each on average") {
		t.Errorf("the first line is %q", first)
	}
	part := commandtest.Run(t, append(args, "journal", "stats", "--journal", at, "--state", "confirmed")...).Want(t, terminal.ExitOK).Out
	if strings.Contains(part, "on average") {
		t.Errorf("an average of a part:\n%s", part)
	}
}

// TestRejectedMeansTwoThings: stats tells what was settled as absent from what the journal forgot.
func TestRejectedMeansTwoThings(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"bad token"}`)
	})
	j := filepath.Join(t.TempDir(), "j.db")
	for _, key := range []string{"held", "free"} {
		commandtest.Run(t, "send", "POST", s.URL+"/"+key, "-d", "{}", "--key", key, "--journal", j)
	}
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "held"), "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	got := commandtest.Run(t, "journal", "stats", "--journal", j).Want(t, terminal.ExitOK).Out
	for _, want := range []string{"  rejected    1, settled as absent\n", "\nforgotten     1 operation rejected without effect, in no number above, and not done since: oncehttp journal stuck --rejected --journal " + j + "\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestStatsNotWritten: counts that cannot be written are status 3, as with the other commands: the call is right.
func TestStatsNotWritten(t *testing.T) {
	t.Parallel()
	at := commandtest.JournalIn(t)
	commandtest.EnqueueOne(t, at, "https://api.example.com/", "k", "{}")
	for _, more := range [][]string{nil, {"--json"}} {
		var errs strings.Builder
		status := command.Run(t.Context(), append([]string{"journal", "stats", "--journal", at}, more...), strings.NewReader(""), full{}, &errs)
		if status != terminal.ExitUnknown || !strings.Contains(errs.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%v: status %d, %q", more, status, errs.String())
		}
	}
}

// full is an output without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
