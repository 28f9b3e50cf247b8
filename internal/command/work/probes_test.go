package work_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// passage passes bytes between clients and a server, until it hangs: then it takes connections and bytes, and passes nothing on.
type passage struct {
	to   string
	mu   sync.Mutex
	hung chan struct{} // closed once it passes bytes again
}

// through starts a passage to the server of a URL, and returns the URL through it.
func through(t *testing.T, at string) (*passage, string) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &passage{to: u.Host}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(conn)
		}
	}()
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *passage) pass(client net.Conn) {
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = client.Close()
		return
	}
	copyAll := func(to, from net.Conn) {
		_, _ = io.Copy(writes(func(b []byte) (int, error) {
			p.mu.Lock()
			hung := p.hung
			p.mu.Unlock()
			if hung != nil {
				<-hung
			}
			return to.Write(b)
		}), from)
		_ = to.Close()
		_ = from.Close()
	}
	go copyAll(server, client)
	copyAll(client, server)
}

// hang lets it hang, and returns a function that ends that.
func (p *passage) hang() (goOn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hung := make(chan struct{})
	p.hung = hung
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hung = nil
		close(hung)
	}
}

type writes func([]byte) (int, error)

func (f writes) Write(b []byte) (int, error) { return f(b) }

// TestProbesOfAHungJournal: while the database does not answer, /healthz is 503 and /metrics 200, each within the ten seconds of the liveness
// probe of examples/kubernetes, also where four ask at once. Both are 200 again once it answers.
func TestProbesOfAHungJournal(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		if !strings.HasPrefix(journal, "postgres") {
			return
		}
		p, at := through(t, journal)
		w := commandtest.StartWork(t, "--journal", at)
		if status, now := w.Ask(t); status != http.StatusOK {
			t.Fatalf("healthz answers %d: %+v", status, now)
		}
		address := w.Errs.Await(t, `working on .*(http://.*)/healthz`)
		goOn := p.hang()
		release := sync.OnceFunc(goOn)
		t.Cleanup(release)
		time.Sleep(1100 * time.Millisecond) // the last answer of the journal counts for a second
		var all sync.WaitGroup
		for _, path := range []string{"/healthz", "/metrics", "/healthz", "/metrics"} {
			all.Go(func() {
				begun := time.Now()
				resp, err := http.Get(address + path)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					return
				}
				_ = resp.Body.Close()
				want := map[string]int{"/healthz": http.StatusServiceUnavailable, "/metrics": http.StatusOK}[path]
				if took := time.Since(begun); resp.StatusCode != want || took > 9*time.Second {
					t.Errorf("%s answers %d after %v, want %d within 9 s", path, resp.StatusCode, took, want)
				}
			})
		}
		all.Wait()
		release()
		for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			if status, now := w.Ask(t); status == http.StatusOK {
				break
			} else if time.Since(start) > time.Minute {
				t.Fatalf("healthz answers %d: %+v", status, now)
			}
		}
		if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
			t.Errorf("status %d", got)
		}
	})
}
