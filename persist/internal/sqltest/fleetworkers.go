package sqltest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// fleetWorkers is how many processes work.
const fleetWorkers = 4

// Work is the role of a worker process: it runs the journal until the end of its standard input. While the database is down, it tries again: for 30 seconds at
// the start, without an end later. calmFleet in the environment stands for a test without faults, where a longer lease avoids second sends.
func Work(ctx context.Context, open func(context.Context) (persist.Journal, error)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	j, err := open(ctx)
	for start := time.Now(); err != nil && time.Since(start) < 30*time.Second; j, err = open(ctx) {
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	lease := fleetLease
	if os.Getenv(calmFleet) != "" {
		lease = calmLease
	}
	client, err := workClient(j, time.Second, lease)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	for ctx.Err() == nil {
		if err := client.Run(ctx); err != nil { // the database is away
			fmt.Fprintln(os.Stderr, "run:", err)
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// The leases of workers. Where nobody dies, none ends while the machine stands still: another worker would rightly send again.
const (
	fleetLease = 2 * time.Second
	calmLease  = time.Minute
	calmFleet  = "ONCEHTTP_TEST_CALM_FLEET" // the variable that tells a worker of such a fleet
)

// workClient returns the client of a worker process in tests. Its pauses are short, so that the operations of killed workers are sent soon. elapsed
// bounds a call.
func workClient(j persist.Journal, elapsed, lease time.Duration) (*oncehttp.Client, error) {
	return oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback(), ResumeWorkers: 8, Lease: lease, Retry: oncehttp.Policy{
		MinDelay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond, MaxPause: 200 * time.Millisecond,
		MaxElapsed: elapsed, AttemptTimeout: 10 * time.Second, AnswerTimeout: 10 * time.Second, MaxRetryAfter: time.Second,
	}})
}

// worker is one process.
type worker struct {
	*exec.Cmd
	stdin io.Closer
}

// start starts a worker process at a place in the list of workers, by which strike finds it.
func (f *fleet) start(at int) {
	cmd := Child(f.t.Context(), "fleet", f.Worker...)
	cmd.Stderr = os.Stderr
	if f.Calm {
		cmd.Env = append(cmd.Env, calmFleet+"=1")
	}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Error(err)
		return
	}
	f.workers[at] = &worker{Cmd: cmd, stdin: stdin}
}

// strike harms a random worker process: it kills it and starts another one, or freezes it for some time. waking counts the frozen ones, so that the test can
// wait for their wake.
func (f *fleet) strike() {
	at := f.random.IntN(fleetWorkers)
	frozen := time.Duration(f.random.IntN(5000)) * time.Millisecond // some longer than a lease
	time.Sleep(time.Duration(f.random.IntN(200)) * time.Millisecond)
	w := f.workers[at]
	if f.random.IntN(2) == 0 {
		f.kills++
		if err := w.Process.Kill(); err != nil {
			f.t.Error(err)
		}
		_ = w.Wait() // it was killed
		f.start(at)
		return
	}
	f.freezes++
	if err := freeze(w.Process); err != nil {
		f.t.Error(err)
	}
	f.waking.Go(func() {
		time.Sleep(frozen)
		_ = wake(w.Process) // unless it was killed meanwhile
	})
}

// stop tells the workers to stop, by closing their input, and waits for them.
func (f *fleet) stop() {
	for _, w := range f.workers {
		_ = w.stdin.Close()
		if err := w.Wait(); err != nil {
			f.t.Errorf("a worker: %v", err)
		}
	}
}
