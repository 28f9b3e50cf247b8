package sqltest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// Listener is the role of a process. It runs a journal until its standard input ends, and prints a line whenever it
// begins to hear other processes, or no longer does. It looks at the journal by itself every third of the lease, a minute at most: so a long lease shows
// whether it is woken.
func Listener(ctx context.Context, lease string, open func(context.Context) (persist.Journal, error)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	long, err := time.ParseDuration(lease)
	if err != nil {
		return err
	}
	j, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback(), Lease: long, Observe: func(_ context.Context, e oncehttp.Event) {
		if e.Kind == oncehttp.EventListening || e.Kind == oncehttp.EventPolling {
			fmt.Println(e.Kind, e.Err)
		}
	}})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return client.Run(ctx)
}

// woken is a process with the role "listener", and its sends.
type woken struct {
	t       *testing.T
	client  *oncehttp.Client // of this process
	url     string
	arrived chan string // the keys of its sends
	said    chan string // its lines
	sent    int
}

// startListener starts a process with the role "listener", which waits for operations to send, beside a client of this process on j. w.arrived gets the key of
// each request at its API, and w.said each line that the process prints.
func startListener(t *testing.T, j persist.Journal, args []string) *woken {
	w := &woken{t: t, arrived: make(chan string, 100), said: make(chan string, 100)}
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		w.arrived <- req.Header.Get("Idempotency-Key")
		rw.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(api.Close)
	w.url = api.URL
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	w.client = client
	ctx, kill := context.WithCancel(context.Background())
	t.Cleanup(kill)
	cmd := Child(ctx, "listener", args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			w.said <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("the process that listens: %v", err)
		}
	})
	return w
}

// soon is the longest wait for an event. The event comes at once, or else a minute later.
const soon = 45 * time.Second

// idle is the time without work before something is enqueued: a process looks anyway if it has just ended an operation.
const idle = 200 * time.Millisecond

// says waits for the next line of the listener process, and checks that it has a text.
func (w *woken) says(text string) {
	w.t.Helper()
	select {
	case line := <-w.said:
		if !strings.Contains(line, text) {
			w.t.Fatalf("the process says %q, want %q", line, text)
		}
	case <-time.After(soon):
		w.t.Fatalf("the process does not say %q", text)
	}
}

// sends waits until the other process sleeps, enqueues an operation in this one, and returns the time until the other process has sent it.
func (w *woken) sends(enqueue func(*http.Request, oncehttp.Key) error) time.Duration {
	w.t.Helper()
	time.Sleep(idle)
	w.sent++
	key := oncehttp.Key(fmt.Sprintf("k%d", w.sent))
	req, err := http.NewRequest("POST", w.url, strings.NewReader("{}"))
	if err == nil {
		err = enqueue(req, key)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	start := time.Now()
	select {
	case got := <-w.arrived:
		if got != string(key) {
			w.t.Fatalf("it has sent %q, want %q", got, key)
		}
	case <-time.After(soon):
		w.t.Fatalf("%s was not sent within %v, and the process looks by itself a minute later", key, soon)
	}
	return time.Since(start)
}

// Woken runs a journal in another process, which looks by itself once a minute only, and enqueues in this one: the other must send each operation at
// once. commit, unless it is nil, begins a record in a transaction of its own, and notifies afterwards. breakIt, unless it is nil, breaks the listening
// connection, half way: the other process must make another one without a report. args are those of the role "listener".
func Woken(t *testing.T, j persist.Journal, args []string, commit func(persist.Record) error, breakIt func()) {
	w := startListener(t, j, args)
	w.says("listening")
	var longest time.Duration
	for i := range 6 {
		if i == 3 && breakIt != nil {
			breakIt()
		}
		longest = max(longest, w.sends(w.client.Enqueue))
	}
	if commit != nil {
		longest = max(longest, w.sends(func(req *http.Request, key oncehttp.Key) error {
			rec, err := w.client.Prepare(req, key)
			if err == nil {
				err = commit(rec)
			}
			return err
		}))
	}
	t.Logf("the longest way from Enqueue to the other process's send took %v", longest)
}

// Polling runs a journal in another process that cannot hear this one. It must report that, with this text in its reason, and send the operations
// that it finds by itself.
func Polling(t *testing.T, j persist.Journal, args []string, reason string) {
	w := startListener(t, j, args)
	w.says(reason)
	for range 3 {
		w.sends(w.client.Enqueue)
	}
}
