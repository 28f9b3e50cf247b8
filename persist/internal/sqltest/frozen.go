package sqltest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// Frozen stops a worker process in the middle of a send, for longer than its lease, and lets it go on after another has
// taken over: the API gets one duplicate under the same key, and what the worker records late changes nothing. args are
// those of the role "fleet".
func Frozen(t *testing.T, e Engine, args []string) {
	var sends atomic.Int32
	var keys sync.Map
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		keys.Store(req.Header.Get("Idempotency-Key"), true)
		answer := "second"
		if sends.Add(1) == 1 {
			arrived <- struct{}{}
			<-release
			answer = "first"
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(api.Close)
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)

	j := e.Open(t, e.Address, 15*time.Second)
	client, err := oncehttp.New(oncehttp.Config{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	req, _ := http.NewRequest("POST", api.URL, strings.NewReader("{}"))
	if err := client.Enqueue(req, "k"); err != nil {
		t.Fatal(err)
	}

	cmd := Child(t.Context(), "fleet", args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		t.Fatal("the worker has sent nothing")
	}
	if err := freeze(cmd.Process); err != nil {
		t.Fatal(err)
	}
	takeOver(t, client)
	before, err := client.Lookup(t.Context(), "k")
	if err != nil || before.State != persist.StateConfirmed || string(before.Answer.Body) != "second" {
		t.Errorf("whoever took over has left it %v, error %v", before.State, err)
	}
	free()
	if err := wake(cmd.Process); err != nil {
		t.Fatal(err)
	}
	_ = stdin.Close() // it ends when it has recorded what it got
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	after, err := client.Lookup(t.Context(), "k")
	if err != nil || after.Revision != before.Revision || string(after.Answer.Body) != "second" {
		t.Errorf("the late answer has changed the record from revision %d to %d, error %v", before.Revision, after.Revision, err)
	}
	n := 0
	keys.Range(func(any, any) bool { n++; return true })
	if sends.Load() != 2 || n != 1 {
		t.Errorf("%d sends under %d keys, want 2 under 1", sends.Load(), n)
	}
}

// takeOver resumes until it has got the operation, when the lease of its worker is over.
func takeOver(t *testing.T, client *oncehttp.Client) {
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		for res, err := range client.Resume(t.Context()) {
			if err != nil || res.Key != "k" {
				t.Fatalf("%q: %v", res.Key, err)
			}
			return
		}
		if time.Since(start) > 30*time.Second {
			t.Fatal("nobody can take over from a worker that is frozen")
		}
	}
}
