package commandtest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command"
)

// Blocking returns a server that answers nothing. arrived is closed when its first request has come. Each request waits until the test closes release, and its
// connection then breaks off. A request with the key "waits" breaks off at once: the test gets a pending operation by it first.
func Blocking(t *testing.T) (url string, arrived, release chan struct{}) {
	t.Helper()
	arrived, release = make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := Serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") != "waits" {
			once.Do(func() { close(arrived) })
			<-release
		}
		panic(http.ErrAbortHandler)
	})
	return s.URL, arrived, release
}

// Beside starts the command with args in a goroutine, and returns once its request has arrived at a server. The test calls end to wait for the end of the command.
func Beside(arrived <-chan struct{}, args ...string) (end func() Ran) {
	done := make(chan Ran, 1)
	go func() {
		var out, errs strings.Builder
		status := command.Run(context.Background(), args, strings.NewReader(""), &out, &errs)
		done <- Ran{status, out.String(), errs.String()}
	}()
	<-arrived
	return func() Ran { return <-done }
}
