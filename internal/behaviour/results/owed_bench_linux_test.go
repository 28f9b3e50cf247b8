package results_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// BenchmarkOwed measures the processor time of a Run beside 10,000 owed results whose delivery fails.
func BenchmarkOwed(b *testing.B) {
	const owed, span = 10_000, 15 * time.Second
	j, err := bolt.Open(filepath.Join(b.TempDir(), "j.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	begin := func(i int) {
		sum := make([]byte, 32)
		rec, _, err := j.Begin(context.Background(), persist.Record{
			ID: persist.ID{Key: fmt.Sprint(i)}, Origin: "https://api.example:443", Method: "POST", Target: "/v1/things", Body: make([]byte, 300),
			Carrier: "header", CarrierName: "Idempotency-Key", WireKey: fmt.Sprint(i), Fingerprint: sum, Window: time.Hour, Created: time.Now(), Results: true,
		})
		if err == nil {
			rec.State, rec.HoldReason, rec.OwedFrom = persist.StateHeld, persist.HoldNoKey, time.Now()
			_, err = j.Update(context.Background(), rec)
		}
		if err != nil {
			b.Error(err)
		}
	}
	var all sync.WaitGroup
	for w := range 64 {
		all.Go(func() {
			for i := w; i < owed; i += 64 {
				begin(i)
			}
		})
	}
	all.Wait()
	c, err := oncehttp.New(oncehttp.Config{
		Journal: j, Logger: slog.New(slog.DiscardHandler), OnResult: func(context.Context, persist.Record) error { return errors.New("the database is away") },
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ctx, stop := context.WithCancel(b.Context())
		all.Go(func() { _ = c.Run(ctx) })
		time.Sleep(time.Second)
		before := processor(b)
		time.Sleep(span)
		b.ReportMetric(float64(processor(b)-before)/float64(span)*100, "%cpu")
		stop()
		all.Wait()
	}
	if err := errors.Join(c.Close(), j.Close()); err != nil {
		b.Error(err)
	}
}

// processor is the processor time of this process.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
