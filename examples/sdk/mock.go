package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// mock is a stripe-mock in a process of its own, on loopback.
type mock struct {
	url  string // without a slash at its end
	stop func() // ends the process; to be called once
}

// startMock builds stripe-mock, a tool of go.mod, into dir and starts it. The process also ends with ctx, and by stop.
func startMock(ctx context.Context, dir string) (*mock, error) {
	program := filepath.Join(dir, "stripe-mock.exe") // a name that all systems start
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/stripe/stripe-mock")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building stripe-mock, which has to be done in examples/sdk: %w\n%s", err, output)
	}
	ctx, cancel := context.WithCancel(ctx)
	// Without an address for HTTPS it would listen on a fixed port of all interfaces.
	cmd := exec.CommandContext(ctx, program, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting stripe-mock: %w", err)
	}
	lines := bufio.NewReader(stdout)
	address, err := listening(lines)
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, lines) }) // a full pipe would stop it
	stop := func() {
		cancel() // kills it
		reading.Wait()
		_ = cmd.Wait() // it was killed
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &mock{url: "http://" + address, stop: stop}, nil
}

// listening reads the output of stripe-mock until the line with its address, and returns the address. The end of the output before it is an error.
func listening(lines *bufio.Reader) (string, error) {
	for {
		line, err := lines.ReadString('\n')
		if address, found := strings.CutPrefix(strings.TrimSpace(line), "Listening for HTTP at address: "); found {
			return address, nil
		}
		if err != nil {
			return "", errors.Join(errors.New("stripe-mock ended before it listened"), err)
		}
	}
}
