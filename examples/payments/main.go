// Payments charges 200 orders at a server that loses answers, cuts bodies and
// says 409 and 503; it is killed half-way, starts again, and then compares the
// orders with the server's ledger.
//
//	go run ./examples/payments
//
// Copy from charge.go. This file sets the stage: a process with the mock server
// starts three charging processes, one after the other.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
)

// main runs the example, or the process that charges orders: the example starts itself again as one, to kill it.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	if args := os.Args[1:]; len(args) == 4 && args[0] == "charge" {
		err = child(os.Stdout, args[1], args[2], args[3])
	} else {
		err = parent(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

// child is a charging process. It kills itself at answer number dieAt (0: never),
// as the kernel would: the server has acted, and the journal does not know yet. With 0 it prints where its answers came from.
func child(out io.Writer, url, journal, dieAt string) error {
	orders, err := readOrders(ordersCSV)
	if err != nil {
		return err
	}
	last, err := strconv.ParseInt(dieAt, 10, 64)
	if err != nil {
		return err
	}
	var answers atomic.Int64
	client, err := oncehttp.Open(journal, oncehttp.Config{
		Retry: policy(),
		Observe: func(_ context.Context, e oncehttp.Event) {
			if e.Kind == oncehttp.EventAnswered && e.Status == 201 && answers.Add(1) == last {
				die()
			}
		},
	})
	if err != nil {
		return err
	}
	sources, err := charge(client, url, orders)
	fmt.Fprintf(out, "  finished: %d answers from the server, %d repeated by the server, %d from the journal\n",
		sources[oncehttp.SourceServer], sources[oncehttp.SourceReplay], sources[oncehttp.SourceJournal])
	return errors.Join(err, client.Close())
}

// die ends the process as kill -9 does: nothing is flushed, closed or deferred.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until the signal is here
}

// parent runs everything. A nil error means that every order took effect exactly once.
func parent(ctx context.Context, out io.Writer) error {
	orders, err := readOrders(ordersCSV)
	if err != nil {
		return err
	}
	mix, err := mockserver.ParseFaults("drop-after=0.2,cut-body=0.1,drop-before=0.05,409=0.1,503=0.1")
	if err != nil {
		return err
	}
	server := mockserver.New(mockserver.Config{Mix: mix, Seed: 1})
	defer server.Close()
	if err := server.Start(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "payments-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	run := func(dieAt int) error {
		cmd := exec.CommandContext(ctx, self, "charge", server.URL(), filepath.Join(dir, "payments.db"), strconv.Itoa(dieAt))
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		return errors.Join(ctx.Err(), cmd.Run())
	}
	end, err := play(out, orders, server.Ledger(), run)
	if err != nil {
		return err
	}
	return verdict(out, orders, end)
}

// play runs the three processes and returns the ledger at the end. The first is killed half-way, the second does the rest, and the third must send nothing. It
// returns an error if one did not go as expected.
func play(out io.Writer, orders []order, ledger *mockserver.Ledger, run func(dieAt int) error) (end mockserver.Snapshot, err error) {
	fmt.Fprintf(out, "charging %d orders; the server loses answers, cuts bodies and says 409 and 503\n", len(orders))
	fmt.Fprintln(out, "run 1: kill -9 half-way")
	err = run(len(orders) / 2)
	half := ledger.Snapshot()
	if killed := (*exec.ExitError)(nil); !errors.As(err, &killed) || half.Effects == 0 || half.Effects == len(orders) {
		return end, fmt.Errorf("run 1 was not killed half-way, but after %d orders: %w", half.Effects, err)
	}
	fmt.Fprintf(out, "  %v; so far the server saw %d sends and charged %d orders\n", err, half.Sends, half.Effects)
	fmt.Fprintln(out, "run 2: the same program, the same journal")
	if err := run(0); err != nil {
		return end, fmt.Errorf("run 2: %w", err)
	}
	done := ledger.Snapshot()
	fmt.Fprintln(out, "run 3: once more")
	if err := run(0); err != nil {
		return end, fmt.Errorf("run 3: %w", err)
	}
	end = ledger.Snapshot()
	fmt.Fprintf(out, "  it sent %d requests\n", end.Sends-done.Sends)
	if end.Sends != done.Sends {
		return end, errors.New("run 3 was to send nothing, as all was confirmed before")
	}
	return end, nil
}

// verdict counts the effects of each order in the server's own ledger. It returns an error if an order has not exactly one.
func verdict(out io.Writer, orders []order, ledger mockserver.Snapshot) error {
	duplicates, losses, ours := 0, 0, 0
	for _, o := range orders {
		effects := ledger.Keys[string(keyOf(o))].Effects
		ours += effects
		duplicates += max(effects-1, 0)
		losses += max(1-effects, 0)
	}
	duplicates += ledger.Effects - ours // under keys that are no order's
	fmt.Fprintf(out, "\nthe server's ledger: %d orders, %d sends, %d effects, %d duplicates, %d losses\n",
		len(orders), ledger.Sends, ledger.Effects, duplicates, losses)
	if duplicates != 0 || losses != 0 {
		return errors.New("not every order took effect exactly once")
	}
	fmt.Fprintln(out, "every order took effect exactly once")
	return nil
}
