package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// beside is a server on loopback for the tests of an SDK.
type beside struct {
	module string   // a command, with its version: for go install
	args   []string // of the command
	says   string   // the beginning of the line of output that ends with its address
	port   string   // the environment variable for its port, read by the tests
}

// start builds the server that an SDK's tests need (b.module) into the folder work, starts it, and puts its port into the environment of this process. The
// caller must call stop, which kills it; after an error stop is nil, and nothing runs.
func (b *beside) start(ctx context.Context, work string) (stop func(), err error) {
	install := exec.CommandContext(ctx, "go", "install", b.module)
	install.Env = append(os.Environ(), "GOBIN="+work, "GOFLAGS=", "GOWORK=off")
	if err := run(install); err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(path.Base(b.module), "@")
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, filepath.Join(work, name), b.args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	lines := bufio.NewReader(out)
	port, err := b.listens(lines)
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, lines) }) // a full pipe would stop it
	stop = func() {
		cancel()
		reading.Wait()
		_ = cmd.Wait() // it was killed
	}
	if err == nil {
		err = os.Setenv(b.port, port)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// listens reads the server's output up to the line with its address, which begins with b.says,
// and returns the port. It fails if the output ends before.
func (b *beside) listens(lines *bufio.Reader) (string, error) {
	for {
		line, err := lines.ReadString('\n')
		if address, found := strings.CutPrefix(strings.TrimSpace(line), b.says); found {
			_, port, err := net.SplitHostPort(strings.TrimSpace(address))
			return port, err
		}
		if err != nil {
			return "", errors.Join(fmt.Errorf("%s ended before it listened", b.module), err)
		}
	}
}
