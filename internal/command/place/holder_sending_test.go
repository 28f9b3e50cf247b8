package place_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestSeenThroughHolder: through the process that holds a file a listing shows which operations are being sent. What nobody sent
// may be acted on as it was seen there; what was being sent may not.
func TestSeenThroughHolder(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"in clear": nil, "sealed": {"--seal-key", sealKeys(t, "a")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, arrived, release := commandtest.Blocking(t)
			j := filepath.Join(commandtest.ShortDir(t), "j.db")
			with := func(args ...string) []string { return append(append(args, "--journal", j), flags...) }
			commandtest.Run(t, with(commandtest.Fast("send", "POST", url, "--key", "waits", "--max-attempts", "1")...)...).Want(t, terminal.ExitUnknown)
			file := filepath.Join(commandtest.ShortDir(t), "in.csv")
			commandtest.WriteFile(t, file, "id\nsent\n")
			end := commandtest.Beside(arrived, with(commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--max-attempts", "1")...)...)
			waits, sent := commandtest.SeenAs(t, j, "waits", flags...), commandtest.SeenAs(t, j, "idemp:o:sent", flags...)
			again := commandtest.SeenAs(t, j, "waits", flags...)
			close(release)
			end()
			if again != waits || waits != commandtest.SeenAs(t, j, "waits", flags...) {
				t.Errorf("%s and %s while another process holds the file, then %s", waits, again, commandtest.SeenAs(t, j, "waits", flags...))
			}
			commandtest.Run(t, with("journal", "settle", sent, "--absent", "--yes")...).Want(t, terminal.ExitUnknown)
			commandtest.Run(t, with("journal", "settle", waits, "--absent", "--yes")...).Want(t, terminal.ExitOK)
		})
	}
}

// TestSeenBesideSend: send holds the file only for the length of each call. While its request is under way a listing shows that
// somebody is sending, and nothing is settled by what was seen then, neither meanwhile nor later.
func TestSeenBesideSend(t *testing.T) {
	t.Parallel()
	url, arrived, release := commandtest.Blocking(t)
	j := filepath.Join(commandtest.ShortDir(t), "j.db")
	end := commandtest.Beside(arrived, commandtest.Fast("send", "POST", url, "--key", "a", "--journal", j, "--max-attempts", "1")...)
	sent := commandtest.SeenAs(t, j, "a")
	commandtest.Run(t, "journal", "settle", sent, "--absent", "--yes", "--journal", j).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "settle", sent, "--happened", "--yes", "--journal", j).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "abandon", "a", "--yes", "--journal", j).Want(t, terminal.ExitUnknown)
	close(release)
	end()
	commandtest.Run(t, "journal", "settle", sent, "--absent", "--yes", "--journal", j).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "a"), "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
}

// TestHolderIsAskedInOrder: one connection answers for many operations.
func TestHolderIsAskedInOrder(t *testing.T) {
	t.Parallel()
	url, arrived, release := commandtest.Blocking(t)
	j := filepath.Join(commandtest.ShortDir(t), "j.db")
	file := filepath.Join(commandtest.ShortDir(t), "in.csv")
	commandtest.WriteFile(t, file, "id\nsent\n")
	end := commandtest.Beside(arrived, commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--max-attempts", "1", "--journal", j)...)
	held := place.OpenHeld(j)
	if held == nil {
		t.Fatal("no holder")
	}
	var all []bool
	for rec, err := range held.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			all = append(all, held.Sending(rec.ID))
		}
		rec.ID.Key = "nobody's"
		all = append(all, held.Sending(rec.ID))
	}
	for _, sending := range all {
		if !sending {
			t.Errorf("%v: want true of what is being sent, and of what is not there", all)
		}
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	close(release)
	end()
	if again, err := bolt.Open(j, bolt.Options{}); err != nil {
		t.Error(err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestActsBesideTheHolder: a file has one writer. While another process holds it, every act of a person waits for its turn for a moment, is
// refused with a line that says so, and changes nothing; so is compact, which would put another file in its place.
func TestActsBesideTheHolder(t *testing.T) {
	t.Parallel()
	url, arrived, release := commandtest.Blocking(t)
	j := filepath.Join(commandtest.ShortDir(t), "j.db")
	commandtest.Run(t, commandtest.Fast("send", "POST", url, "--key", "waits", "--max-attempts", "1", "--journal", j)...).Want(t, terminal.ExitUnknown)
	file := filepath.Join(commandtest.ShortDir(t), "in.csv")
	commandtest.WriteFile(t, file, "id\nsent\n")
	holder, _ := commandtest.Child(t, commandtest.Fast("batch", file, "--url", url, "--key", "o:{id}", "--max-attempts", "1", "--journal", j)...)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	<-arrived
	waits := commandtest.SeenAs(t, j, "waits")
	var acts sync.WaitGroup
	for _, args := range [][]string{
		{"settle", waits, "--absent", "--yes"}, {"abandon", waits, "--yes"}, {"rekey", waits, "waits:gen=2", "--reason", "a test"},
		{"assign", waits, "--account", "bob"}, {"prune", "--keep-answer", "1h"}, {"compact"}, {"restored", "--taken", "2020-01-01T00:00:00Z"},
	} {
		acts.Go(func() {
			got := commandtest.Run(t, append(append([]string{"journal"}, args...), "--journal", j)...)
			if got.Status != terminal.ExitLocked || !strings.Contains(got.Err, "wait for that process") {
				t.Errorf("%v: status %d, %q", args, got.Status, got.Err)
			}
		})
	}
	acts.Wait()
	if again := commandtest.SeenAs(t, j, "waits"); again != waits {
		t.Errorf("%s has moved to %s", waits, again)
	}
	close(release)
	_ = commandtest.Status(t, holder) // of its row nobody knows
	commandtest.Run(t, "journal", "compact", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "settle", waits, "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
}
