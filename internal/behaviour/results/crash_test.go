package results_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// dieEnv names the step at which a child dies, and with _PATH and _URL its folder and server.
const dieEnv = "ONCEHTTP_TEST_RESULTS"

// die is kill -9: nothing is flushed, closed or deferred.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// mortal is a journal that dies at a step.
type mortal struct {
	*bolt.Journal
	step string
}

// at dies at the step of this name.
func (m *mortal) at(step string) {
	if step == m.step {
		die()
	}
}

func (m *mortal) Finish(ctx context.Context, rec persist.Record) error {
	m.at("before the end")
	err := m.Journal.Finish(ctx, rec)
	if m.step == "after the end" && err == nil && m.Journal.Flush(ctx) == nil {
		die()
	}
	return err
}

func (m *mortal) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	m.at("before the mark")
	delivered, err := m.Journal.MarkDelivered(ctx, id, revision)
	m.at("after the mark")
	if m.step == "after the durable mark" && m.Journal.Flush(ctx) == nil {
		die()
	}
	return delivered, err
}

// worker returns a client on the file in a folder, whose OnResult appends a line to the business in it.
func worker(t *testing.T, dir, step string) *oncehttp.Client {
	t.Helper()
	file, err := bolt.Open(filepath.Join(dir, "j.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := &mortal{file, step}
	c, err := oncehttp.New(oncehttp.Config{Journal: j, Transport: wiretest.Transport(t), OnResult: func(_ context.Context, rec persist.Record) error {
		j.at("before the business")
		to, err := os.OpenFile(filepath.Join(dir, "business"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = to.WriteString(rec.Key + " " + rec.State.String() + "\n")
			err = errors.Join(err, to.Close())
		}
		j.at("after the business")
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDyingChild is the child. In a run of its own it does nothing.
func TestDyingChild(t *testing.T) {
	t.Parallel()
	step := os.Getenv(dieEnv)
	if step == "" {
		return
	}
	c := worker(t, os.Getenv(dieEnv+"_PATH"), step)
	if err := c.Enqueue(clienttest.Request(t, "POST", os.Getenv(dieEnv+"_URL")+"/payments", "{}"), "k"); err != nil {
		t.Fatal(err)
	}
	if step == "after the Enqueue" {
		die()
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	t.Fatalf("still alive: %v", c.Run(ctx))
}

// TestKilledAtEachStep: at whatever step a process dies, the next one delivers the result at least once, and the operation has one effect.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for step, most := range map[string]int{
		"after the Enqueue": 1, "before the end": 1, "after the end": 1, "before the business": 1, "after the business": 2,
		"before the mark": 2, "after the mark": 2, "after the durable mark": 1,
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			server := mockserver.New(mockserver.Config{})
			clienttest.Must(t, server.Start())
			defer server.Close()
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDyingChild$", "-test.timeout=50s")
			cmd.Env = append(os.Environ(), dieEnv+"="+step, dieEnv+"_PATH="+dir, dieEnv+"_URL="+server.URL())
			out, err := cmd.CombinedOutput()
			if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.Exited() {
				t.Fatalf("the child was not killed: %v\n%s", err, out)
			}
			c := worker(t, dir, "")
			defer c.Close()
			stop := clienttest.Start(t, c)
			for end := time.Now().Add(20 * time.Second); ; {
				rec := clienttest.Lookup(t, c, "k")
				if rec.State.Final() && !rec.Owed() {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("after 20 s it is %v, owed %t", rec.State, rec.Owed())
				}
			}
			_ = stop()
			got, err := os.ReadFile(filepath.Join(dir, "business"))
			if n := strings.Count(string(got), "k confirmed\n"); err != nil || n < 1 || n > most {
				t.Errorf("delivered %d times (%v); want 1 to %d", n, err, most)
			}
			if n := server.Ledger().Effects("k"); n != 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}
