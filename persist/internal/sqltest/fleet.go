package sqltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Fleet is a test with several worker processes on one journal. Orders are written with
// their operations in transactions; one in ten of these is rolled back. If the engine has
// no Begin, the operations are enqueued, and one order in ten has none.
type Fleet struct {
	Engine
	Journal persist.Journal
	Worker  []string // the arguments of the role "fleet"; it opens the journal and calls Work
	Orders  int
	Rounds  int    // of orders; in each, a worker is killed or frozen, and woken up again
	Seed    uint64 // of the events, and of the workers struck
	// Calm: the API breaks nothing, and no worker is killed or frozen.
	Calm bool
	// Restart crashes the database half-way and starts it again. Nil: it stays up.
	Restart func()
}

// fleetFaults are the faults of the API.
const fleetFaults = "drop-before=0.03,drop-after=0.1,reset-after=0.03,cut-body=0.05,409=0.05,503=0.05"

// answerDelay is the delay of the API's answers. It lets workers be struck while they wait for it.
const answerDelay = 10 * time.Millisecond

// fleet is a Fleet under way.
type fleet struct {
	Fleet
	t       *testing.T
	api     *mockserver.Server
	table   string   // of orders
	taken   sync.Map // the keys of orders, if there is no table
	random  *rand.Rand
	workers [fleetWorkers]*worker
	kills   int
	freezes int
	waking  sync.WaitGroup // frozen workers
}

// Test runs several worker processes on one journal, with kills and faults (none with Calm), and checks the requests to the API: every committed order took
// effect once, and none that was rolled back did. Begin is nil for a journal without transactions of the caller's own; Restart, if not nil, restarts the server
// at half time.
func (f Fleet) Test(t *testing.T) {
	run := &fleet{Fleet: f, t: t, random: rand.New(rand.NewPCG(f.Seed, 0))}
	if f.Begin != nil {
		run.table = f.orders(t)
	}
	run.serve()
	for i := range run.workers {
		run.start(i)
	}
	for round := range f.Rounds {
		var struck sync.WaitGroup
		if !f.Calm {
			struck.Go(func() { run.strike() })
		}
		if f.Restart != nil && round == f.Rounds/2 {
			struck.Go(f.Restart)
		}
		run.enqueue(round*f.Orders/f.Rounds, (round+1)*f.Orders/f.Rounds)
		struck.Wait()
	}
	run.waking.Wait()
	run.drain()
	run.stop()
	run.judge()
}

// serve starts the API of the test, with faults unless Calm is set. Each of its effects takes answerDelay, so that workers are killed in the middle of sends.
func (f *fleet) serve() {
	config := mockserver.Config{Seed: f.Seed, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(answerDelay)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"status":"paid"}`)
	})}
	if !f.Calm {
		mix, err := mockserver.ParseFaults(fleetFaults)
		if err != nil {
			f.t.Fatal(err)
		}
		config.Mix = mix
	}
	f.api = mockserver.New(config)
	f.t.Cleanup(func() { _ = f.api.Close() })
	if err := f.api.Start(); err != nil {
		f.t.Fatal(err)
	}
}

// enqueue writes the orders with the numbers from to to-1, several at once: each in a transaction with its operation, or by Enqueue for a journal without
// transactions of the caller's own.
func (f *fleet) enqueue(from, to int) {
	journal := f.Journal
	if f.Begin != nil {
		journal = memory.New() // Prepare writes nothing
	}
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Origins: Loopback()})
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	numbers := make(chan int)
	var clerks sync.WaitGroup
	for range 8 {
		clerks.Go(func() {
			for i := range numbers {
				if err := f.order(client, i); err != nil {
					f.t.Errorf("order %d: %v", i, err)
				}
			}
		})
	}
	for i := from; i < to; i++ {
		numbers <- i
	}
	close(numbers)
	clerks.Wait()
}

// orderKey returns the key of an order, and its id in the table.
func orderKey(i int) string { return fmt.Sprintf("order-%05d", i) }

// rolledBack reports whether the test rolls the transaction of the i-th order back: every tenth, none of which may be sent.
func rolledBack(i int) bool { return i%10 == 9 }

// order writes one order. A failed transaction is made again with the same key, also if nobody knows whether its commit took effect. After a minute it returns
// the last error.
func (f *fleet) order(client *oncehttp.Client, i int) error {
	req, err := http.NewRequest("POST", f.api.URL()+"/payments", bytes.NewReader([]byte(`{"reference":"`+orderKey(i)+`"}`)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	write := func() error { return f.enqueueOne(client, req, orderKey(i), rolledBack(i)) }
	if f.Begin != nil {
		rec, err := client.Prepare(req, oncehttp.Key(orderKey(i)))
		if err != nil {
			return err
		}
		write = func() error { return f.write(rec, rolledBack(i)) }
	}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := write()
		if err == nil || time.Since(start) > time.Minute {
			return err
		}
	}
}

// enqueueOne enqueues the operation of one order by a client, for a journal without transactions of the caller's own. back: the order is rolled back,
// so that nothing is written.
func (f *fleet) enqueueOne(client *oncehttp.Client, req *http.Request, key string, back bool) error {
	if back {
		return nil
	}
	err := client.Enqueue(req, oncehttp.Key(key))
	if err == nil {
		f.taken.Store(key, true)
	}
	return err
}

// write writes the row of one order and its operation in one transaction, and commits it or, with back, rolls it back. An operation that is there already, from
// an earlier try, is no error if its request is the same.
func (f *fleet) write(rec persist.Record, back bool) error {
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	tx, err := f.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	existing, created, err := f.Begin(ctx, tx, rec)
	switch {
	case err != nil:
		return err
	case !created:
		return existing.CheckRepeat(&rec) // nil: an earlier try was committed, with its order
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+f.table+" VALUES ('"+rec.Key+"')"); err != nil {
		return err
	}
	if back {
		return nil
	}
	return tx.Commit()
}

// drain waits until the workers have ended all operations.
func (f *fleet) drain() {
	start, limit := time.Now(), time.Minute+time.Duration(f.Orders)*10*time.Millisecond
	for open := -1; open != 0; time.Sleep(20 * time.Millisecond) {
		var err error
		open, err = f.unfinished()
		if time.Since(start) > limit {
			f.t.Fatalf("%v after the last order and the last fault, %d operations are unfinished, error %v", limit, open, err)
		}
	}
	f.t.Logf("drained %v after the last order", time.Since(start).Round(time.Millisecond))
}

// unfinished returns the number of pending and held operations; -1 with an error.
func (f *fleet) unfinished() (n int, err error) {
	query := persist.Query{States: []persist.State{persist.StatePending, persist.StateHeld}}
	for _, err := range f.Journal.List(f.t.Context(), query) {
		if err != nil {
			return -1, err
		}
		n++
	}
	return n, nil
}

// committed returns the keys of the orders whose transaction was committed, or, without transactions, whose Enqueue has succeeded.
func (f *fleet) committed() map[string]bool {
	committed := map[string]bool{}
	if f.Begin == nil {
		f.taken.Range(func(key, _ any) bool {
			committed[key.(string)] = true
			return true
		})
		return committed
	}
	rows, err := f.DB.Query("SELECT id FROM " + f.table)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			f.t.Fatal(err)
		}
		committed[id] = true
	}
	return committed
}

// judge compares the committed orders with the effects that the API has counted (its ledger): each has one, and an order rolled back has neither an effect
// nor a send (a ghost). The number of all effects must agree, too, so that no effect has an unknown key.
func (f *fleet) judge() {
	committed := f.committed()
	ledger, lost, duplicates, ghosts, want := f.api.Ledger().Snapshot(), 0, 0, 0, 0
	for i := range f.Orders {
		key := orderKey(i)
		effects, sends := ledger.Keys[key].Effects, ledger.Keys[key].Sends
		if !rolledBack(i) {
			want++
		}
		switch {
		case committed[key] == rolledBack(i):
			f.t.Errorf("%s: there is an order: %t", key, committed[key])
		case rolledBack(i) && (effects > 0 || sends > 0):
			ghosts++
		case !rolledBack(i) && effects == 0:
			lost++
		case effects > 1:
			duplicates++
		}
	}
	f.t.Logf("%d orders committed, %d rolled back; %d workers killed, %d frozen; %d sends, %d effects, %.3f sends an effect",
		len(committed), f.Orders-want, f.kills, f.freezes, ledger.Sends, ledger.Effects, float64(ledger.Sends)/float64(ledger.Effects))
	if lost+duplicates+ghosts != 0 || ledger.Effects != want {
		f.t.Errorf("%d lost, %d duplicate effects, %d sends of what was rolled back, %d effects for %d orders", lost, duplicates, ghosts, ledger.Effects, want)
	}
	f.judgeSends(ledger)
}

// judgeSends checks the requests that reached the API. A calm test has at most one in a hundred more than effects, and no broken rule. In a test with
// faults some workers must have been killed and some frozen, and the rules about keys and bytes must hold. Which worker is harmed is random, by the seed.
func (f *fleet) judgeSends(ledger mockserver.Snapshot) {
	if f.Calm {
		if float64(ledger.Sends) > 1.01*float64(ledger.Effects) {
			f.t.Errorf("%d sends for %d effects, where nothing was broken", ledger.Sends, ledger.Effects)
		}
		if err := f.api.Err(); err != nil {
			f.t.Error(err)
		}
		return
	}
	if f.kills == 0 || f.freezes == 0 {
		f.t.Errorf("%d workers killed and %d frozen: take another seed, or more rounds", f.kills, f.freezes)
	}
	for _, v := range ledger.Violations {
		switch v.Rule {
		case mockserver.RuleKeyValid, mockserver.RuleOneKey, mockserver.RuleSameBytes: // a frozen worker may break the others
			text, _ := json.Marshal(v)
			f.t.Errorf("%s", text)
		}
	}
}
