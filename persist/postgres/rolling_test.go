package postgres_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/seal"
)

var rollingOrders = flag.Int("rolling", 10, "orders that each process of a rolling deploy begins")

// rollingLease is the lease of the processes.
const rollingLease = 2 * time.Second

// crew is one kind of process: a build of this test, and the ids of the keys with which it seals, the first one first.
type crew struct{ binary, keys string }

// rollingWorker is the role of a process of a rolling deploy. It begins orders, prints each that was acknowledged, and runs the
// journal until its standard input ends. Args: server, schema, keys, API, prefix of the orders, their number.
func rollingWorker(ctx context.Context, args []string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	j, err := openSealed(ctx, args[0], args[1], args[2])
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	client, err := oncehttp.New(oncehttp.Config{
		Journal: j, Origins: []string{args[3]}, ResumeWorkers: 4, OriginWorkers: 4, Lease: rollingLease, Retry: oncehttp.Policy{
			MinDelay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond, MaxPause: 200 * time.Millisecond,
			MaxElapsed: time.Second, AttemptTimeout: 10 * time.Second, AnswerTimeout: 10 * time.Second, MaxRetryAfter: time.Second,
		},
	})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	n, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	var clerk sync.WaitGroup
	defer clerk.Wait()
	clerk.Go(func() {
		for i := 0; i < n && ctx.Err() == nil; i++ {
			key := fmt.Sprintf("%s-%d", args[4], i)
			if err := rollingOrder(client, args[3], key); err != nil {
				fmt.Fprintln(os.Stderr, "order:", err)
				continue
			}
			fmt.Println(key)
		}
	})
	if err := client.Run(ctx); err != nil { // that it leaves something to others, in the end, too
		fmt.Fprintln(os.Stderr, "run:", err)
	}
	return nil
}

// rollingOrder begins one order.
func rollingOrder(client *oncehttp.Client, api, key string) error {
	req, err := http.NewRequest("POST", api+"/payments", strings.NewReader(`{"reference":"`+key+`"}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return client.Enqueue(req, oncehttp.Key(key))
}

// openSealed opens the journal with these keys; none: it is not sealed.
func openSealed(ctx context.Context, server, schema, keys string) (persist.Journal, error) {
	j, err := postgres.Open(ctx, server, postgres.Options{Schema: schema, MaxConns: 4})
	if err != nil || keys == "" {
		return j, err
	}
	var config seal.Config
	for id := range strings.SplitSeq(keys, ",") {
		config.Keys = append(config.Keys, seal.Key{ID: id, Secret: bytes.Repeat([]byte(id)[:1], seal.SecretSize)})
	}
	sealer, err := seal.New(config)
	if err != nil {
		return nil, err
	}
	return sealer.Journal(ctx, j)
}

// rolling is a rolling deploy under way.
type rolling struct {
	t        *testing.T
	api      *mockserver.Server
	url      string
	down     atomic.Bool // the API answers 503, and does nothing
	said     text        // by all processes, on their standard error
	schema   string
	procs    [2]*rollingProcess
	started  int
	unserved string // an operation that nobody has served yet
	kills    int

	mu    sync.Mutex
	acked map[string]bool
}

// rollingProcess is one process.
type rollingProcess struct {
	*exec.Cmd
	orders string // the prefix of its orders
	stdin  io.Closer
	read   sync.WaitGroup
}

// newRolling makes the schema and the API, which breaks some of what it is asked.
func newRolling(t *testing.T) *rolling {
	db := admin(t)
	mix, err := mockserver.ParseFaults("drop-before=0.03,drop-after=0.1,reset-after=0.03,503=0.05")
	if err != nil {
		t.Fatal(err)
	}
	r := &rolling{t: t, schema: migrated(t, db).Schema, acked: map[string]bool{}, api: mockserver.New(mockserver.Config{Seed: 1, Mix: mix})}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.api.ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		front.Close()
		_ = r.api.Close()
	})
	r.url = front.URL
	return r
}

// text is what several processes write.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// start starts a process of a crew at a place, which begins orders.
func (r *rolling) start(at int, c crew, orders int) {
	r.t.Helper()
	r.started++
	cmd := sqltest.Child(r.t.Context(), "rolling", server(r.t), r.schema, c.keys, r.url, fmt.Sprintf("o%d", r.started), strconv.Itoa(orders))
	if c.binary != "" {
		cmd.Path = c.binary
	}
	p := &rollingProcess{Cmd: cmd, orders: fmt.Sprintf("o%d", r.started)}
	cmd.Stderr = &r.said
	out, err := cmd.StdoutPipe()
	if err == nil {
		p.stdin, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	p.read.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.mu.Lock()
			r.acked[lines.Text()] = true
			r.mu.Unlock()
		}
	})
	r.procs[at] = p
}

// kill kills the process at a place.
func (r *rolling) kill(at int) {
	p := r.procs[at]
	r.kills++
	if err := p.Process.Kill(); err != nil {
		r.t.Error(err)
	}
	p.read.Wait()
	_ = p.Wait() // it was killed
}

// stop lets the process at a place end in good order.
func (r *rolling) stop(at int) {
	p := r.procs[at]
	_ = p.stdin.Close()
	p.read.Wait()
	if err := p.Wait(); err != nil {
		r.t.Errorf("a process: %v: %s", err, &r.said)
	}
}

// unfinished counts what has not ended: that which a crew with these keys can act on, and the rest, with what one of that needs.
func (r *rolling) unfinished(j persist.Journal, keys string) (open, others int, needs string) {
	query := persist.Query{States: []persist.State{persist.StatePending, persist.StateHeld}}
	for rec, err := range j.List(r.t.Context(), query) {
		if err != nil && !errors.Is(err, persist.ErrNewer) {
			r.t.Fatal(err)
		}
		lacks := ""
		for _, id := range rec.Needs().SealKeyIDs() {
			if !slices.Contains(strings.Split(keys, ","), id) {
				lacks = "the key " + id
			}
		}
		switch {
		case err != nil:
			others, needs = others+1, err.Error()
		case lacks != "":
			others, needs = others+1, lacks
		default:
			open++
			r.unserved = fmt.Sprintf("%s, %v %s, due %v, leased until %v, sent %t, %d attempts", rec.Key, rec.State, rec.HoldReason, rec.NextAttempt, rec.LeaseUntil, rec.MaybeSent, rec.Attempts)
		}
	}
	return open, others, needs
}

// drain waits until nothing is unfinished that a crew with these keys can act on, and returns how long that took, and the rest.
func (r *rolling) drain(j persist.Journal, keys string) (took time.Duration, others int, needs string) {
	r.t.Helper()
	began := time.Now()
	for {
		open, others, needs := r.unfinished(j, keys)
		switch took := time.Since(began); {
		case open == 0:
			return took, others, needs
		case took > time.Minute:
			r.t.Fatalf("%d are unfinished after %v, such as %s; said: %s", open, took, r.unserved, &r.said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// roll deploys the second crew in the place of the first, and the first again, process by process, each of which is killed while
// all begin orders. Then only the first crew runs: all that it can serve is served soon, and the rest is named. Then one of the second is
// there again, and nothing is left.
func (r *rolling) roll(first, second crew, named string) {
	n := *rollingOrders
	r.start(0, first, n)
	r.start(1, first, n)
	for i, step := range []struct {
		at int
		crew
	}{{0, second}, {1, second}, {0, first}, {1, second}, {1, first}} {
		r.down.Store(i >= 3) // so that the last one of the second crew leaves what it begins
		r.enqueued()
		r.kill(step.at)
		r.start(step.at, step.crew, n)
	}
	r.enqueued()
	r.down.Store(false)
	j, err := openSealed(r.t.Context(), server(r.t), r.schema, "")
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	took, others, needs := r.drain(j, first.keys)
	if others == 0 || !strings.Contains(needs, named) {
		r.t.Errorf("%d are left to the others: %s; want some, and %q", others, needs, named)
	}
	if took > rollingLease+20*time.Second { // the machine may be busy
		r.t.Errorf("what the first can serve took %v, with a lease of %v", took, rollingLease)
	}
	for began := time.Now(); !strings.Contains(r.said.String(), named); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			r.t.Fatalf("no Run has named what it leaves alone: %s", &r.said)
		}
	}
	for at := range r.procs {
		r.stop(at)
	}
	r.start(0, second, 0)
	began := time.Now()
	r.all()
	r.t.Logf("%d processes, %d killed: what the first could serve was done %v after the last kill, the other %d %v after one of the second was back",
		r.started, r.kills, took.Round(time.Millisecond), others, time.Since(began).Round(time.Millisecond))
	r.stop(0)
	r.judge()
}

// all waits until the ledger has every acknowledged order.
func (r *rolling) all() {
	for began := time.Now(); len(r.missing()) > 0 && time.Since(began) < time.Minute; {
		time.Sleep(20 * time.Millisecond)
	}
}

// missing are the acknowledged orders that have not taken effect.
func (r *rolling) missing() (keys []string) {
	ledger := r.api.Ledger().Snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.acked {
		if ledger.Keys[key].Effects == 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// enqueued waits until each process that runs has begun half of its orders.
func (r *rolling) enqueued() {
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if r.begunBy(r.procs[0]) >= *rollingOrders/2 && r.begunBy(r.procs[1]) >= *rollingOrders/2 {
			return
		}
	}
	r.t.Errorf("the processes do not begin their orders")
}

// begunBy returns the number of orders of a process that were acknowledged.
func (r *rolling) begunBy(p *rollingProcess) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.acked {
		if strings.HasPrefix(key, p.orders+"-") {
			n++
		}
	}
	return n
}

// judge compares what was acknowledged with the ledger of the API.
func (r *rolling) judge() {
	for _, key := range r.missing() {
		r.t.Errorf("%s was acknowledged, and is lost", key)
	}
	ledger := r.api.Ledger().Snapshot()
	for key, count := range ledger.Keys {
		if count.Effects > 1 {
			r.t.Errorf("%s has %d effects", key, count.Effects)
		}
	}
	for _, v := range ledger.Violations {
		if v.Rule == mockserver.RuleKeyValid || v.Rule == mockserver.RuleOneKey || v.Rule == mockserver.RuleSameBytes {
			text, _ := json.Marshal(v)
			r.t.Errorf("%s", text)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Logf("%d orders acknowledged, %d effects, %d sends", len(r.acked), ledger.Effects, ledger.Sends)
}

// laterBuild builds this test as a later version would be, which writes records in a format of its own and reads both.
func laterBuild(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for file, changes := range map[string][][2]string{
		"persist/needs.go": {
			{"const Format = 1\n", "const Format = 2\n"}, {"format != Format {", "format != Format && format != 1 {"},
		},
		"persist/internal/sqljournal/row.go": {
			{"thisFormat = strconv.Itoa(persist.Format)", `thisFormat = strconv.Itoa(persist.Format - 1)`},
			{`pastFormat = thisFormat + "!"`, `pastFormat = "2!"`}, {"return format == thisFormat\n", "return format == thisFormat || format == \"2\"\n"},
		},
		"internal/acts/gate.go": {{"n.Format != persist.Format:", "n.Format != persist.Format && n.Format != 1:"}},
	} {
		path, err := filepath.Abs(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if n := strings.Count(string(text), c[0]); n != 1 {
				t.Fatalf("the text that a later version changes stands %d times in %s, want once; adapt laterBuild to the source: %s", n, file, c[0])
			}
			text = bytes.Replace(text, []byte(c[0]), []byte(c[1]), 1)
		}
		replace[path] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replace[path], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "later.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return binary
}

// TestRollingDeploy: two builds share the journal, of which one writes records in a format that the other cannot read.
func TestRollingDeploy(t *testing.T) {
	t.Parallel()
	newRolling(t).roll(crew{}, crew{binary: laterBuild(t)}, "newer version")
}

// TestRotationInTheWrongOrder: some processes seal with a new key that the others do not have yet.
func TestRotationInTheWrongOrder(t *testing.T) {
	t.Parallel()
	newRolling(t).roll(crew{keys: "1-old"}, crew{keys: "2-new,1-old"}, "2-new")
}
