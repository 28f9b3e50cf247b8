package commandtest

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command"
)

// mocked is a mock command. It runs until Stop.
type mocked struct {
	URL  string
	Wait func() Ran // until it ends by itself
	Stop func() Ran
}

// StartCommand runs "oncehttp mock" with args in this process, and waits for its first line. The result has the server's URL, and functions that stop the command or
// wait for it.
func StartCommand(t *testing.T, args ...string) mocked {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	outR, outW := io.Pipe()
	var errs strings.Builder
	status := make(chan int, 1)
	go func() {
		status <- command.Run(ctx, append([]string{"mock"}, args...), strings.NewReader(""), outW, &errs)
		_ = outW.Close()
	}()
	out := bufio.NewReader(outR)
	first, err := out.ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(first), "listening on ")
	if err != nil || !found {
		t.Fatalf("first line %q, %v", first, err)
	}
	t.Cleanup(interrupt)
	m := mocked{URL: url, Wait: func() Ran {
		rest, _ := io.ReadAll(out)
		return Ran{<-status, string(rest), errs.String()}
	}}
	m.Stop = func() Ran {
		interrupt()
		return m.Wait()
	}
	return m
}
