package sqltest

import (
	"context"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Listening calls Listen in the background until the test ends. Each call of its function is sent to heard.
func Listening(t *testing.T, j persist.Notifier) (heard <-chan error) {
	t.Helper()
	all, over := make(chan error, 1000), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(over)
		_ = j.Listen(ctx, func(err error) { all <- err })
	}()
	t.Cleanup(func() {
		stop()
		<-over
	})
	return all
}

// Heard waits for the next call of the function of Listening, and returns its error: nil is a wake. after says in messages what was done before.
func Heard(t *testing.T, heard <-chan error, after string) error {
	t.Helper()
	select {
	case err := <-heard:
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing was heard after %s", after)
		return nil
	}
}

// HeardWake waits until the journal wakes its listener, and fails the test if it gets an error. after says in messages what was done before.
func HeardWake(t *testing.T, heard <-chan error, after string) {
	t.Helper()
	if err := Heard(t, heard, after); err != nil {
		t.Fatalf("after %s: %v", after, err)
	}
}
