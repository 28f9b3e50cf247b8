package main

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// blocking is a server that answers nothing until release; arrived is closed when the first request has come. What it does not
// answer breaks off.
func blocking(t *testing.T) (url string, arrived, release chan struct{}) {
	t.Helper()
	arrived, release = make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") != "waits" {
			once.Do(func() { close(arrived) })
			<-release
		}
		panic(http.ErrAbortHandler)
	})
	return s.url, arrived, release
}

// beside runs a command until its request has arrived, and returns what waits for its end.
func beside(arrived <-chan struct{}, args ...string) (end func() ran) {
	done := make(chan ran, 1)
	go func() {
		var out, errs strings.Builder
		status := exec(context.Background(), args, strings.NewReader(""), &out, &errs)
		done <- ran{status, out.String(), errs.String()}
	}()
	<-arrived
	return func() ran { return <-done }
}

// TestSeenThroughHolder: through the process that holds a file a listing shows which operations are being sent. What nobody sent
// may be acted on as it was seen there; what was being sent may not.
func TestSeenThroughHolder(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"in clear": nil, "sealed": {"--seal-key", sealKeys(t, "a")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, arrived, release := blocking(t)
			j := filepath.Join(shortDir(t), "j.db")
			with := func(args ...string) []string { return append(append(args, "--journal", j), flags...) }
			run(t, with(fast("send", "POST", url, "--key", "waits", "--max-attempts", "1")...)...).want(t, exitUnknown)
			file := filepath.Join(shortDir(t), "in.csv")
			writeFile(t, file, "id\nsent\n")
			end := beside(arrived, with(fast("batch", file, "--url", url, "--key", "o:{id}", "--max-attempts", "1")...)...)
			waits, sent := seenAs(t, j, "waits", flags...), seenAs(t, j, "idemp:o:sent", flags...)
			again := seenAs(t, j, "waits", flags...)
			close(release)
			end()
			if again != waits || waits != seenAs(t, j, "waits", flags...) {
				t.Errorf("%s and %s while another process holds the file, then %s", waits, again, seenAs(t, j, "waits", flags...))
			}
			run(t, with("journal", "settle", sent, "--absent", "--yes")...).want(t, exitUnknown)
			run(t, with("journal", "settle", waits, "--absent", "--yes")...).want(t, exitOK)
		})
	}
}

// TestSeenBesideSend: send holds the file only for the length of each call. While its request is under way a listing shows that
// somebody is sending, and nothing is settled by what was seen then, neither meanwhile nor later.
func TestSeenBesideSend(t *testing.T) {
	t.Parallel()
	url, arrived, release := blocking(t)
	j := filepath.Join(shortDir(t), "j.db")
	end := beside(arrived, fast("send", "POST", url, "--key", "a", "--journal", j, "--max-attempts", "1")...)
	sent := seenAs(t, j, "a")
	run(t, "journal", "settle", sent, "--absent", "--yes", "--journal", j).want(t, exitUnknown)
	run(t, "journal", "settle", sent, "--happened", "--yes", "--journal", j).want(t, exitUnknown)
	run(t, "journal", "abandon", "a", "--yes", "--journal", j).want(t, exitUnknown)
	close(release)
	end()
	run(t, "journal", "settle", sent, "--absent", "--yes", "--journal", j).want(t, exitUnknown)
	run(t, "journal", "settle", seenAs(t, j, "a"), "--absent", "--yes", "--journal", j).want(t, exitOK)
}

// TestHolderIsAskedInOrder: one connection answers for many operations.
func TestHolderIsAskedInOrder(t *testing.T) {
	t.Parallel()
	url, arrived, release := blocking(t)
	j := filepath.Join(shortDir(t), "j.db")
	file := filepath.Join(shortDir(t), "in.csv")
	writeFile(t, file, "id\nsent\n")
	end := beside(arrived, fast("batch", file, "--url", url, "--key", "o:{id}", "--max-attempts", "1", "--journal", j)...)
	held := openHeld(j)
	if held == nil {
		t.Fatal("no holder")
	}
	var all []bool
	for rec, err := range held.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			all = append(all, held.sending(rec.ID))
		}
		rec.ID.Key = "nobody's"
		all = append(all, held.sending(rec.ID))
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
	url, arrived, release := blocking(t)
	j := filepath.Join(shortDir(t), "j.db")
	run(t, fast("send", "POST", url, "--key", "waits", "--max-attempts", "1", "--journal", j)...).want(t, exitUnknown)
	file := filepath.Join(shortDir(t), "in.csv")
	writeFile(t, file, "id\nsent\n")
	holder, _ := child(t, fast("batch", file, "--url", url, "--key", "o:{id}", "--max-attempts", "1", "--journal", j)...)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	<-arrived
	waits := seenAs(t, j, "waits")
	var acts sync.WaitGroup
	for _, args := range [][]string{
		{"settle", waits, "--absent", "--yes"}, {"abandon", waits, "--yes"}, {"rekey", waits, "waits:gen=2", "--reason", "a test"},
		{"assign", waits, "--account", "bob"}, {"prune", "--keep-answer", "1h"}, {"compact"}, {"restored", "--taken", "2020-01-01T00:00:00Z"},
	} {
		acts.Go(func() {
			got := run(t, append(append([]string{"journal"}, args...), "--journal", j)...)
			if got.status != exitLocked || !strings.Contains(got.err, "wait for that process") {
				t.Errorf("%v: status %d, %q", args, got.status, got.err)
			}
		})
	}
	acts.Wait()
	if again := seenAs(t, j, "waits"); again != waits {
		t.Errorf("%s has moved to %s", waits, again)
	}
	close(release)
	_ = status(t, holder) // of its row nobody knows
	run(t, "journal", "compact", "--journal", j).want(t, exitOK)
	run(t, "journal", "settle", waits, "--absent", "--yes", "--journal", j).want(t, exitOK)
}
