package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
)

// The two ways of a row of KilledDeliveries.
const (
	markedAfter  = "after"  // the row, then the mark of the client
	markedInside = "inside" // the row and the mark are in one transaction
)

// deliverySteps are the steps at which a process dies, in their order.
var deliverySteps = []string{
	"after the Enqueue", "before the end", "after the end", "before the take", "after the take", "before the row",
	"after the mark inside", "after the row inside", "after the row", "before the mark", "after the mark",
}

// dieAt kills this process, as kill -9 does, if step is the one at which it has to die (mine). It never returns then.
func dieAt(step, mine string) {
	if step != mine {
		return
	}
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
	persist.Journal
	results persist.SharedResults
	step    string
}

// Unwrap returns the journal inside, for persist.As.
func (m *mortal) Unwrap() persist.Journal { return m.Journal }

// Finish implements [persist.Journal]: it ends the record in the journal inside. The process dies before it or after it, if the test has chosen that step.
func (m *mortal) Finish(ctx context.Context, rec persist.Record) error {
	dieAt("before the end", m.step)
	err := m.Journal.Finish(ctx, rec)
	dieAt("after the end", m.step)
	return err
}

// Postpone implements [persist.SharedResults]: in the journal inside it sets the time from which a result is handed to OnResult again. The process dies
// before it or after it, if the test has chosen that step.
func (m *mortal) Postpone(ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
	dieAt("before the take", m.step)
	ok, err := m.results.Postpone(ctx, id, revision, from)
	dieAt("after the take", m.step)
	return ok, err
}

// MarkDelivered implements [persist.Results]: in the journal inside it marks a result as handed to OnResult. The process dies before it or after it, if the
// test has chosen that step.
func (m *mortal) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	dieAt("before the mark", m.step)
	ok, err := m.results.MarkDelivered(ctx, id, revision)
	dieAt("after the mark", m.step)
	return ok, err
}

// Deliverer is a process of KilledDeliveries: its journal, and the database with the rows.
type Deliverer struct {
	Journal persist.Journal
	DB      *sql.DB
	Mark    MarkFunc // in a transaction of DB
	Table   string   // of the rows
	Rows    *Rows    // instead of DB, Mark and Table: rows that no transaction holds together with the mark
}

// Rows are the rows of a business without transactions.
type Rows struct {
	Write func(ctx context.Context, row string) error
	Count func(ctx context.Context, row string) (int, error)
}

// client returns a client whose OnResult writes a row for each result into a table of the program. way says whether the result is marked as delivered in the
// transaction of that row, or afterwards. The process dies at the given step; with "" it lives.
func (d *Deliverer) client(account, way, step string) (*oncehttp.Client, error) {
	results, _ := persist.As[persist.SharedResults](d.Journal)
	return oncehttp.New(oncehttp.Config{
		Journal: &mortal{d.Journal, results, step}, Account: account, Origins: Loopback(), Lease: time.Second,
		Retry: oncehttp.Policy{
			MinDelay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond, MaxPause: 200 * time.Millisecond,
			MaxElapsed: 4 * time.Second, AttemptTimeout: 2 * time.Second, AnswerTimeout: 2 * time.Second, MaxRetryAfter: time.Second,
		},
		OnResult: func(ctx context.Context, rec persist.Record) error {
			dieAt("before the row", step)
			err := d.write(ctx, rec, account, way, step)
			if err == nil {
				dieAt("after the row", step)
			}
			return err
		},
	})
}

// write writes the result of an operation into a table of the program, as a consumer of results does. way says whether the result is marked as
// delivered in the same transaction: then a result that is already marked gets no row. d.Rows, if not nil, replaces the SQL table for a journal without
// transactions. The process kills itself when it comes to step.
func (d *Deliverer) write(ctx context.Context, rec persist.Record, account, way, step string) error {
	if d.Rows != nil {
		return d.Rows.Write(ctx, account+" "+rec.State.String())
	}
	tx, err := d.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if way == markedInside {
		mine, err := d.Mark(ctx, tx, rec.ID, rec.Revision)
		if err != nil || !mine {
			return err
		}
		dieAt("after the mark inside", step)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+d.Table+" VALUES ('"+account+" "+rec.State.String()+"')"); err != nil {
		return err
	}
	if way == markedInside {
		dieAt("after the row inside", step)
	}
	return tx.Commit()
}

// Deliver is the role of a process of KilledDeliveries: it enqueues an operation and runs the journal until it dies at a step; to live on is an error. args
// are the URL of the API, the account, the way and the step.
func (d *Deliverer) Deliver(ctx context.Context, args []string) error {
	client, err := d.client(args[1], args[2], args[3])
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, args[0]+"/payments", strings.NewReader("{}"))
	if err == nil {
		err = client.Enqueue(req, "k")
	}
	if err != nil {
		return err
	}
	dieAt("after the Enqueue", args[3])
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	if strings.HasSuffix(args[3], "the take") { // a Run takes (by Postpone) only results of operations that another call has ended, so end it first
		rec, err := client.Lookup(ctx, "k")
		for ; err == nil && !rec.State.Final(); rec, err = client.Lookup(ctx, "k") {
			for _, err := range client.Resume(ctx) {
				if err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("it is still alive, %w", errors.Join(client.Run(ctx), ctx.Err()))
}

// killing is one process of KilledDeliveries.
type killing struct{ way, step string }

// account returns the account of a killed process: each has its own, made of its way (when it marks the result) and its step, so that their operations do
// not mix.
func (k killing) account() string { return k.way + " " + k.step }

// most returns the largest allowed number of rows for one result: 2 if the process may have died after the row and before a mark outside the row's transaction
// (the next process writes it again), else 1.
func (k killing) most() int {
	if k.way == markedAfter && slices.Index(deliverySteps, k.step) >= slices.Index(deliverySteps, "after the row") && k.step != "after the mark" {
		return 2
	}
	return 1
}

// killings returns the child processes of the test: each delivers a result and is killed at one step, and marks the result inside its own transaction
// or after it (its way). A step inside the transaction needs the first way, and rows without transactions (d.Rows) the second. A short test run has one process
// for each step, in one of the ways by turns; a whole one has all that make sense.
func (d *Deliverer) killings() (all []killing) {
	for i, step := range deliverySteps {
		ways := []string{markedInside, markedAfter}
		switch {
		case d.Rows != nil && strings.HasSuffix(step, markedInside):
			continue
		case d.Rows != nil:
			ways = ways[1:]
		case strings.HasSuffix(step, markedInside):
			ways = ways[:1]
		case !testrun.Whole():
			ways = ways[i%2:][:1]
		}
		for _, way := range ways {
			all = append(all, killing{way, step})
		}
	}
	return all
}

// deliveries makes the table of the rows of KilledDeliveries, and returns its name.
func (e Engine) deliveries(t testing.TB) string {
	t.Helper()
	table := strings.TrimSuffix(strings.TrimSuffix(e.Records, "oncehttp_record"), "record") + "deliveries"
	if _, err := e.DB.Exec("CREATE TABLE " + table + " (id VARCHAR(100) NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return table
}

// KilledDeliveries kills processes at each step of the delivery of a result to OnResult. The next process must deliver it at least once, and exactly
// once if the row and the mark are written in one transaction. The operation is sent once. args are the first arguments of a child in the role "deliverer"; the
// table and the arguments of Deliver follow.
func KilledDeliveries(t *testing.T, e Engine, args ...string) {
	d := &Deliverer{Journal: e.Open(t, e.Address, 15*time.Second), DB: e.DB, Mark: e.MarkDelivered, Table: e.deliveries(t)}
	d.KillAll(t, append(args, d.Table)...)
}

// KillAll runs the test KilledDeliveries: processes are killed during the delivery of a result, and this deliverer is the process after each. args
// are the first arguments of a child in the role "deliverer"; those of Deliver follow. Four children run at a time.
func (d *Deliverer) KillAll(t *testing.T, args ...string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	defer server.Close()
	var all sync.WaitGroup
	places := make(chan struct{}, 4)
	for _, k := range d.killings() {
		all.Go(func() {
			places <- struct{}{}
			out, err := Child(t.Context(), "deliverer", append(slices.Clone(args), server.URL, k.account(), k.way, k.step)...).CombinedOutput()
			<-places
			if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.Exited() {
				t.Errorf("%s: the process was not killed: %v\n%s", k.account(), err, out)
				return
			}
			d.goesOn(t, k)
		})
	}
	all.Wait()
}

// goesOn runs a new process after the one that was killed, until it has delivered the result. Then it checks the table of the program: the result is
// there once, or twice where a repeat cannot be excluded.
func (d *Deliverer) goesOn(t *testing.T, k killing) {
	client, err := d.client(k.account(), k.way, "")
	if err != nil {
		t.Error(err)
		return
	}
	ctx, stop := context.WithTimeout(t.Context(), 40*time.Second)
	defer stop()
	var run sync.WaitGroup
	run.Go(func() { _ = client.Run(ctx) })
	rec, err := client.Lookup(ctx, "k")
	for ; err == nil && (rec.Owed() || !rec.State.Final()); rec, err = client.Lookup(ctx, "k") {
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	run.Wait()
	rows := 0
	if err == nil {
		rows, err = d.count(t.Context(), k.account()+" confirmed")
	}
	if err != nil || rows < 1 || rows > k.most() {
		t.Errorf("%s: %d rows, error %v; want 1 to %d", k.account(), rows, err, k.most())
	}
}

// count returns the number of rows of a result in the program's table.
func (d *Deliverer) count(ctx context.Context, row string) (rows int, err error) {
	if d.Rows != nil {
		return d.Rows.Count(ctx, row)
	}
	err = d.DB.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+d.Table+" WHERE id = '"+row+"'").Scan(&rows)
	return rows, err
}
