package place_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestRedisWithoutJournal: under a prefix that nobody has used there is no journal yet, and every command that looks says who makes it.
func TestRedisWithoutJournal(t *testing.T) {
	t.Parallel()
	journal := "redis://" + commandtest.OwnRedis(t, commandtest.Durable()...).Address + "/0?keep_key=forever&prefix=new"
	says := "journal " + journal + ": there is no journal yet under the prefix \"new\"; the first batch, send or work makes it\n"
	for _, command := range []string{"stats", "list", "stuck", "verify"} {
		if got := commandtest.Run(t, "journal", command, "--journal", journal).Want(t, terminal.ExitUsage); got.Out != "" || got.Err != "oncehttp: "+says {
			t.Errorf("%s: stdout %q, stderr %q", command, got.Out, got.Err)
		}
	}
	if got := commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK); got.Out != "nothing to migrate: "+says || got.Err != "" {
		t.Errorf("migrate: stdout %q, stderr %q", got.Out, got.Err)
	}
	commandtest.EnqueueOne(t, journal, "http://127.0.0.1:1/", "k", "{}")
	commandtest.Run(t, "journal", "stats", "--journal", journal).Want(t, terminal.ExitOK)
	if got := commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK); got.Out != "nothing to migrate: "+journal+"\n" {
		t.Errorf("migrate, once it is made: %q", got.Out)
	}
}
