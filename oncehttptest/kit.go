package oncehttptest

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Config configures both sides. The zero value is a client with its defaults, and a server of profile.Draft07.
type Config struct {
	// Client configures the client, now and after each Crash. Journal and Transport must be nil: they are the kit's.
	// Origins may be left out beside an Authorize; then it is the kit's URL.
	Client oncehttp.Config
	// Server configures the server. A nil Profile is the client's.
	Server mockserver.Config
}

// Kit is a client on a journal, and a server for it. New makes one; a nil or zero Kit panics. Its methods are safe for concurrent use, but for
// Crash and Pass: they wait for the whole bubble, as [synctest.Wait] does.
type Kit struct {
	// URL is the server's base URL, without a slash at its end.
	URL string
	// Server is the server: Ledger, Expire, Restart, Err and more.
	Server *mockserver.Server

	t       testing.TB
	cfg     oncehttp.Config // of each client, without Journal and Transport
	pipe    *mockserver.Pipe
	journal *memory.Journal
	ending  sync.WaitGroup // the calls of Close of crashed clients

	mu      sync.Mutex // guards process and client
	process *process
	client  *oncehttp.Client // nil after a failed open
}

// New makes a kit that ends with the test, by t.Cleanup. It must be called inside of [synctest.Test], with the inner T. An
// invalid cfg ends the test. It panics if t is nil.
func New(t testing.TB, cfg Config) *Kit {
	t.Helper()
	if err := cfg.check(); err != nil {
		t.Fatalf("oncehttptest: %v", err)
	}
	k := &Kit{t: t, cfg: cfg.Client, Server: mockserver.New(cfg.Server), journal: memory.New()}
	k.pipe = k.Server.Pipe()
	k.URL = k.pipe.URL
	if k.cfg.Origins == nil && k.cfg.Authorize != nil { // a client with credentials must list the origins that get them
		k.cfg.Origins = []string{k.URL}
	}
	t.Cleanup(k.end)
	if err := k.open(); err != nil {
		t.Fatalf("oncehttptest: %v", err)
	}
	return k
}

// check returns an error if the Config is invalid, or if the caller is not in a bubble of testing/synctest. The server gets the client's profile if
// it has none. The rest of the client's Config is checked when the kit makes the client.
func (cfg *Config) check() error {
	if cfg.Client.Journal != nil || cfg.Client.Transport != nil {
		return fmt.Errorf("Client.Journal and Client.Transport must be nil: they are the kit's")
	}
	if cfg.Server.Profile == nil {
		cfg.Server.Profile = cfg.Client.Profile
	}
	if err := cfg.Server.Validate(); err != nil {
		return err
	}
	return inBubble()
}

// inBubble returns an error if the caller is not in a bubble of testing/synctest (virtual time). In one, it waits until the other goroutines of the bubble are
// blocked; outside, that wait panics.
func inBubble() (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("New must be called inside of synctest.Test")
		}
	}()
	synctest.Wait()
	return nil
}

// open starts a simulated process of the program under test: a new client on the records of the process before. After an error there is a process without a
// client, which end must still kill.
func (k *Kit) open() error {
	p := newProcess(k.journal, k.pipe.Transport())
	cfg := k.cfg
	cfg.Journal, cfg.Transport = p, p.transport
	client, err := oncehttp.New(cfg)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.process, k.client = p, client
	return err
}

// Client returns the present client. Each Crash replaces it.
func (k *Kit) Client() *oncehttp.Client {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.client
}

// Next sets the faults of the next sends, one each, after those of earlier calls; the zero Fault is a send without one. An
// invalid fault ends the test.
func (k *Kit) Next(faults ...mockserver.Fault) {
	k.t.Helper()
	for _, fault := range faults {
		if err := fault.Validate(); err != nil {
			k.t.Fatalf("oncehttptest: %v", err)
		}
	}
	k.Server.Inject(faults...)
}

// LoseAnswer lets the server act on the next send, and loses its answer: [mockserver.DropAfter].
func (k *Kit) LoseAnswer() { k.Next(mockserver.Fault{Kind: mockserver.DropAfter}) }

// Effects returns the number of effects of the operations under the key, by the server's ledger. Requests without a key
// count in the ledger's totals only: see [mockserver.Ledger.Snapshot].
func (k *Kit) Effects(key oncehttp.Key) int {
	k.t.Helper()
	return k.count(key, k.Server.Ledger().Effects)
}

// Sends returns the number of requests under the key that reached the server whole.
func (k *Kit) Sends(key oncehttp.Key) int {
	k.t.Helper()
	return k.count(key, k.Server.Ledger().Sends)
}

// count returns the sum of a count in the server's ledger, over all operations with this key in all accounts. The ledger knows their keys as they
// were sent, which may be spelled otherwise (quoted, or a token of the server).
func (k *Kit) count(key oncehttp.Key, inLedger func(wireKey string) int) (n int) {
	k.t.Helper()
	wire := map[string]bool{string(key): true}
	for rec, err := range k.journal.List(k.t.Context(), persist.Query{AllAccounts: true}) {
		switch {
		case err != nil:
			k.t.Fatalf("oncehttptest: %v", err)
		case rec.Key == string(key):
			wire[rec.KeyOnWire()] = true
		}
	}
	for name := range wire {
		n += inLedger(name)
	}
	return n
}

// Crash ends the client's process, as kill -9 does, and begins the next one. From then on the old client reaches neither the
// journal nor the server, and its connections break. Crash returns the new client, on the same journal; so does Client.
// Calls of the old client that are under way return errors before Crash returns, unless a function of the Config or a loop body keeps
// them.
func (k *Kit) Crash() *oncehttp.Client {
	k.t.Helper()
	k.mu.Lock()
	old, client := k.process, k.client
	k.mu.Unlock()
	old.kill()
	k.ending.Go(func() { _ = client.Close() }) // it may wait for a function of the Config
	synctest.Wait()
	if err := k.open(); err != nil {
		k.t.Fatalf("oncehttptest: %v", err)
	}
	return k.Client()
}

// Pass lets the time d pass in the bubble, and returns when all its other goroutines wait (are blocked).
func (k *Kit) Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// end closes the client and the server, and waits for the clients that have crashed. It runs once, at the end of the test.
func (k *Kit) end() {
	if client := k.Client(); client != nil {
		if err := client.Close(); err != nil {
			k.t.Errorf("oncehttptest: %v", err)
		}
	}
	k.process.kill()
	k.ending.Wait()
	if err := k.Server.Close(); err != nil {
		k.t.Errorf("oncehttptest: %v", err)
	}
}
