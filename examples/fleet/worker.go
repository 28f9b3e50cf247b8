package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// work is one worker: it sends the payments of the journal to the server at api until ctx or its standard input ends, and then waits for its requests on the
// wire. The short lease lets another worker soon take over from a dead one.
func work(ctx context.Context, schema, api string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the stage is over, or gone
		stop()
	}()
	journal, err := postgres.Open(ctx, address(), postgres.Options{Schema: schema, MaxConns: 4})
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Origins: []string{api}, Retry: policy(), Lease: 2 * time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for ctx.Err() == nil {
		if err := client.Run(ctx); err != nil { // one call of the journal had no answer; it goes on
			fmt.Fprintln(os.Stderr, "worker:", err)
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// policy is quick, as the server is near and this is a demonstration. The zero Policy suits a server on the internet.
func policy() oncehttp.Policy {
	return oncehttp.Policy{
		MinDelay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond, MaxPause: 200 * time.Millisecond,
		MaxElapsed: time.Second, AttemptTimeout: time.Second, AnswerTimeout: time.Second,
	}
}
