// Fleet is a shop and three workers on one PostgreSQL. The shop writes each order and its payment in one transaction,
// and rolls one in ten back. The workers send the payments, to a server with lost answers; they are killed and frozen
// at random. At the end the server's ledger shows the real effects.
//
//	go run ./examples/fleet
//	go run ./examples/fleet -orders 1000 -seed 7
//
// Copy from shop.go and worker.go. This file sets the stage, in a schema of its own, removed at the end: in the database
// of ONCEHTTP_TEST_POSTGRES, or else on 127.0.0.1:5432.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// main runs the example, or one worker process of it: the example starts itself again with another first argument.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	if args := os.Args[1:]; len(args) == 3 && args[0] == "worker" {
		err = work(ctx, args[1], args[2])
	} else {
		err = stage(ctx, os.Stdout, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// address returns the URL of the database: that of the environment, or a PostgreSQL on this machine.
func address() string {
	if url := os.Getenv("ONCEHTTP_TEST_POSTGRES"); url != "" {
		return url
	}
	return "postgres://postgres@127.0.0.1:5432/postgres"
}

// stage runs everything: a shop that takes orders, a server with faults, and workers that are killed and frozen meanwhile. A nil error means that every order
// was paid exactly once, and nothing else was.
func stage(ctx context.Context, out io.Writer, args []string) (err error) {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	orders := flags.Int("orders", 300, "orders, one in ten of which is rolled back")
	seed := flags.Uint64("seed", 1, "decides whom the faults strike")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *orders < 10 {
		return fmt.Errorf("-orders is %d; want 10 or more", *orders)
	}
	schema := fmt.Sprintf("fleet_example_%d", os.Getpid())
	db, err := prepare(ctx, schema)
	if err != nil {
		return fmt.Errorf("this example needs PostgreSQL; start one, or set ONCEHTTP_TEST_POSTGRES: %w", err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, dropped := db.Exec(clean, "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		db.Close()
		err = errors.Join(err, dropped)
	}()
	api, err := startAPI(*seed)
	if err != nil {
		return err
	}
	defer func() { _ = api.Close() }()
	fmt.Fprintf(out, "%d orders, 3 workers; the server loses answers, cuts bodies and says 409 and 503\n", *orders)
	s := &shop{db: db, options: postgres.Options{Schema: schema}, api: api.URL()}
	fleet, err := startFleet(ctx, schema, api.URL(), *seed)
	if err != nil {
		return err
	}
	err = fleet.strike(ctx, s, *orders)
	if err := errors.Join(err, fleet.stop()); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d workers killed, %d frozen and woken up\n", fleet.kills, fleet.freezes)
	return s.verdict(ctx, out, *orders, api.Ledger().Snapshot())
}

// prepare creates the schema with the tables of the journal and of orders. The caller closes the pool and drops the schema.
func prepare(ctx context.Context, schema string) (*pgxpool.Pool, error) {
	connecting, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := postgres.Migrate(connecting, address(), postgres.Options{Schema: schema}); err != nil {
		return nil, err
	}
	db, err := pgxpool.New(ctx, address())
	if err != nil {
		return nil, err
	}
	_, err = db.Exec(connecting, "CREATE TABLE "+schema+".orders (id text PRIMARY KEY, amount integer NOT NULL)")
	return db, err
}

// startAPI starts the server for the payments, a mock with faults. The caller closes it.
func startAPI(seed uint64) (*mockserver.Server, error) {
	mix, err := mockserver.ParseFaults("drop-before=0.03,drop-after=0.1,reset-after=0.03,cut-body=0.05,409=0.05,503=0.05")
	if err != nil {
		return nil, err
	}
	api := mockserver.New(mockserver.Config{Mix: mix, Seed: seed, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(10 * time.Millisecond) // so that workers are struck while they wait
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"status":"paid"}`)
	})})
	return api, api.Start()
}

// fleet is three workers, each a process.
type fleet struct {
	ctx     context.Context
	schema  string
	api     string     // the URL for the workers' payments
	random  *rand.Rand // draws the faults
	workers [3]*process
	kills   int // so far
	freezes int // so far
}

// process is one worker. It ends when its standard input does.
type process struct {
	*exec.Cmd
	stdin io.Closer
}

// startFleet starts all workers. The caller must call stop.
func startFleet(ctx context.Context, schema, api string, seed uint64) (*fleet, error) {
	f := &fleet{ctx: ctx, schema: schema, api: api, random: rand.New(rand.NewPCG(seed, 0))}
	for i := range f.workers {
		if err := f.start(i); err != nil {
			return nil, errors.Join(err, f.stop())
		}
	}
	return f, nil
}

// start starts worker number at; the one before it must have ended.
func (f *fleet) start(at int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(f.ctx, self, "worker", f.schema, f.api)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	f.workers[at] = &process{Cmd: cmd, stdin: stdin}
	return cmd.Start()
}

// strikes is the number of kills and freezes while the orders come in.
const strikes = 10

// strike kills or freezes a worker ten times while the shop takes orders. A frozen one goes on after up to five seconds, some longer than its lease. It returns
// once all payments are done.
func (f *fleet) strike(ctx context.Context, s *shop, orders int) error {
	taken := make(chan error, 1)
	go func() { taken <- s.takeOrders(ctx, orders) }()
	woken := make(chan struct{}, strikes) // one entry for each worker that runs again
	for range strikes {
		time.Sleep(time.Duration(100+f.random.IntN(300)) * time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		at, frozen := f.random.IntN(len(f.workers)), time.Duration(f.random.IntN(5000))*time.Millisecond
		w := f.workers[at]
		if f.random.IntN(2) == 0 {
			f.kills++
			_ = w.Process.Kill() // kill -9: nothing is flushed, closed or deferred
			_ = w.Wait()
			if err := f.start(at); err != nil {
				return err
			}
			woken <- struct{}{}
			continue
		}
		if err := freeze(w.Process); err != nil {
			return err
		}
		f.freezes++
		time.AfterFunc(frozen, func() {
			_ = wake(w.Process) // unless it was killed meanwhile
			woken <- struct{}{}
		})
	}
	if err := <-taken; err != nil {
		return err
	}
	for range strikes {
		<-woken
	}
	return s.awaitPayments(ctx)
}

// stop ends the workers in order, and waits for their end. It wakes frozen ones first.
func (f *fleet) stop() (err error) {
	for _, w := range f.workers {
		if w == nil || w.Process == nil {
			continue
		}
		_ = w.stdin.Close()
		_ = wake(w.Process)
		err = errors.Join(err, w.Wait())
	}
	return err
}
