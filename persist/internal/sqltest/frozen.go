package sqltest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// Frozen stops a worker process in the middle of a send, for longer than its lease, and continues it after another one has taken over. The API must
// get one duplicate under the same key, and the late write of the first worker must change nothing. args are the arguments of a child in the role "fleet".
func Frozen(t *testing.T, e Engine, args []string) {
	api := newStuckAPI(t)
	client := enqueued(t, e, api.url)
	worker, stdin := frozenSender(t, api, args)
	takeOver(t, client)
	before, err := client.Lookup(t.Context(), "k")
	if err != nil || before.State != persist.StateConfirmed || string(before.Answer.Body) != "second" {
		t.Errorf("whoever took over has left it %v, error %v", before.State, err)
	}
	api.answerFirst()
	if err := wake(worker.Process); err != nil {
		t.Fatal(err)
	}
	_ = stdin.Close() // it ends when it has recorded what it got
	if err := worker.Wait(); err != nil {
		t.Error(err)
	}
	after, err := client.Lookup(t.Context(), "k")
	if err != nil || after.Revision != before.Revision || string(after.Answer.Body) != "second" {
		t.Errorf("the late answer has changed the record from revision %d to %d, error %v", before.Revision, after.Revision, err)
	}
	if sends, keys := api.seen(); sends != 2 || keys != 1 {
		t.Errorf("%d sends under %d keys, want 2 under 1", sends, keys)
	}
}

// stuckAPI is a server that does not answer the first send before it is told to. It answers the others at once.
type stuckAPI struct {
	url         string
	arrived     chan struct{} // gets a value when the first send is there
	answerFirst func()

	sends atomic.Int32
	keys  sync.Map
}

// newStuckAPI starts an API that does not answer its first request until it is told to (answerFirst). It tells of that request by arrived, and answers "first"
// to it and "second" to all others. It ends with the test.
func newStuckAPI(t *testing.T) *stuckAPI {
	release := make(chan struct{})
	api := &stuckAPI{arrived: make(chan struct{}, 1), answerFirst: sync.OnceFunc(func() { close(release) })}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		api.keys.Store(req.Header.Get("Idempotency-Key"), true)
		answer := "second"
		if api.sends.Add(1) == 1 {
			api.arrived <- struct{}{}
			<-release
			answer = "first"
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(api.answerFirst) // before Close, which waits for it
	api.url = server.URL
	return api
}

// seen returns the number of sends that the API got, and the number of different keys in them.
func (a *stuckAPI) seen() (sends, keys int) {
	a.keys.Range(func(any, any) bool { keys++; return true })
	return int(a.sends.Load()), keys
}

// enqueued returns a client on the journal, which has enqueued one operation with the key "k".
func enqueued(t *testing.T, e Engine, url string) *oncehttp.Client {
	j := e.Open(t, e.Address, 15*time.Second)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	req, err := http.NewRequest("POST", url, strings.NewReader("{}"))
	if err == nil {
		err = client.Enqueue(req, "k")
	}
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// frozenSender starts a worker process, and freezes it once its request has reached the API. The worker ends when stdin is closed.
func frozenSender(t *testing.T, api *stuckAPI, args []string) (worker *exec.Cmd, stdin io.Closer) {
	worker = Child(t.Context(), "fleet", args...)
	worker.Stderr = os.Stderr
	stdin, err := worker.StdinPipe()
	if err == nil {
		err = worker.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-api.arrived:
	case <-time.After(30 * time.Second):
		t.Fatal("the worker has sent nothing")
	}
	if err := freeze(worker.Process); err != nil {
		t.Fatal(err)
	}
	return worker, stdin
}

// takeOver calls Resume until it gets the operation, which is possible once the lease of its worker is over.
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
