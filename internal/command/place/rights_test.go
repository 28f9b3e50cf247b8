package place_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestRedisRights: a user of Redis with the rights of the table in docs/journals.md, and no others, sends, acts, and wakes work.
func TestRedisRights(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/journals.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| Redis \\| nothing is made before \\| keys `([^`]+)`, the channel `([^`]+)`, and `([^`]+)`").FindStringSubmatch(string(page))
	if row == nil {
		t.Fatal("the page has no such row")
	}
	user := []any{"ACL", "SETUSER", "shop", "reset", "on", ">secret", "resetchannels", row[1], row[2]}
	for _, right := range strings.Fields(strings.ReplaceAll(row[3], "\\|", "|")) {
		user = append(user, right)
	}
	server := commandtest.OwnRedis(t, commandtest.Durable()...)
	if err := server.Client(t).Do(t.Context(), user...).Err(); err != nil {
		t.Fatal(err)
	}
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	as := "@" + commandtest.WriteFile(t, "journal.url", strings.Replace(server.Journal(), "redis://", "redis://shop:secret@", 1)+"\n")
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n2\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--journal", as).Want(t, terminal.ExitOK)

	w := commandtest.StartWork(t, "--journal", as)
	commandtest.EnqueueOne(t, server.Journal(), s.URL, "o:3", "{}")
	if l, more := w.Next(t); !more || l.Result != results.Done {
		t.Errorf("line %+v", l)
	}
	w.Stop(t, syscall.SIGTERM)
	if said := w.Errs.Await(t, "(?s).*"); strings.Contains(said, "NOPERM") {
		t.Error(said)
	}
	commandtest.Run(t, "journal", "prune", "--keep-answer", "-1ns", "--yes", "--journal", as).Want(t, terminal.ExitOK)
}
