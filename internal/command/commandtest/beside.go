package commandtest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command"
)

// Blocking is a server that answers nothing until release; arrived is closed when the first request has come. What it does not
// answer breaks off.
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

// Beside runs a command until its request has arrived, and returns a function for waiting for its end.
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
