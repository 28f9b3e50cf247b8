package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// The times and bounds of credentials that change.
const (
	fileEvery    = time.Second      // between two readings of a file
	commandEvery = time.Minute      // between two runs of a command, unless the server refuses what it has printed
	commandAgain = time.Second      // after such a refusal, or a failure
	commandWait  = 10 * time.Second // for a command
)

// credentials gives an origin's headers to its sends. They are read anew while the worker runs: those of a file when it changes, those of a
// command every minute and after a refusal. Where that fails, those read last stay. It is for use by several goroutines.
type credentials struct {
	origin string
	source string // the flag's text, for people
	every  time.Duration
	read   func(ctx context.Context) (http.Header, error) // nil: they never change

	mu      sync.Mutex
	header  http.Header // nil: none were read yet
	next    time.Time   // when they are read again
	failure string      // of the latest reading; empty: none
	say     io.Writer
}

// authorize sets the present headers with the credentials of one server on a request. It returns an error for a request to another origin than c.origin.
func (c *credentials) authorize(req *http.Request) error {
	header, err := c.current(req.Context())
	if err != nil {
		return err
	}
	return session.Authorize(header, c.origin)(req)
}

// current returns the headers with the credentials, and reads them again first if it is time. If that fails, it returns those read before, and tries again soon;
// without any it returns the error. Without c.read the headers never change. c.next is the time of the next
// reading, and c.every the pause after one that succeeds. A failure is printed once (c.failure).
func (c *credentials) current(ctx context.Context) (http.Header, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == nil || c.header != nil && time.Now().Before(c.next) {
		return c.header, nil
	}
	header, err := c.read(ctx)
	c.next = time.Now().Add(c.every)
	if err == nil {
		c.header, c.failure = header, ""
		return header, nil
	}
	c.next = time.Now().Add(commandAgain)
	if text := err.Error(); text != c.failure && c.header != nil {
		c.failure = text
		terminal.Say(c.say, "%s: %s; going on with what it said before", c.source, words.ClipCause(text))
	}
	if c.header == nil {
		return nil, fmt.Errorf("%s: %w", c.source, err)
	}
	return c.header, nil
}

// refused has the headers read again soon, before a later send: the server has refused them. It puts off no reading that is due before.
func (c *credentials) refused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if soon := time.Now().Add(commandAgain); c.next.After(soon) {
		c.next = soon
	}
}

// fromFile returns a function that reads the headers in a file. If it had headers before and has none now, it is just being written, and that is an error.
func fromFile(name string) func(context.Context) (http.Header, error) {
	had := false
	return func(context.Context) (http.Header, error) {
		header := http.Header{}
		err := session.AddHeaderFile(header, name)
		if err == nil && had && len(header) == 0 {
			err = fmt.Errorf("no header is in it any more: %s", name)
		}
		had = had || len(header) > 0
		return header, err
	}
}

// fromCommand returns a function that runs the program args[0] with its arguments, without a shell, and returns the headers printed by it, one a
// line. args must not be empty.
func fromCommand(args []string) func(context.Context) (http.Header, error) {
	return func(ctx context.Context) (http.Header, error) {
		ctx, cancel := context.WithTimeout(ctx, commandWait)
		defer cancel()
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &limited{to: &out}, &limited{to: &errs}
		cmd.WaitDelay = commandAgain // a child of it may keep its output open
		err := cmd.Run()
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("it did not end within %v", commandWait)
		case err != nil:
			return nil, errors.Join(err, firstLine(errs.String()))
		}
		header := http.Header{}
		if err := session.AddHeaders(header, out.String()); err != nil {
			return nil, fmt.Errorf("what it printed: %w", err) // without a value
		}
		if len(header) == 0 {
			return nil, errors.New("it printed no header")
		}
		return header, nil
	}
}

// firstLine returns the first line of what a program said, as an error; nil if it said nothing.
func firstLine(text string) error {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return nil
	}
	return errors.New(words.ClipCause(line))
}

// limited writes the begin of what a program prints, and refuses the rest.
type limited struct{ to *bytes.Buffer }

// Write implements [io.Writer]: it keeps what a program prints. More than terminal.HeaderFileBytesMax bytes in all are an error.
func (l *limited) Write(p []byte) (int, error) {
	if l.to.Len()+len(p) > terminal.HeaderFileBytesMax {
		return 0, errors.New("it printed too much")
	}
	return l.to.Write(p)
}

// keyring has the credentials of each origin. One origin's are shown to no other.
type keyring map[string]*credentials

// keyring returns the credentials of -H, --auth and --auth-command, by the origin (server) to which each goes. Each file is read, and each program is run, once, so
// that their faults show at the start.
func (f *workFlags) keyring(header http.Header, stderr io.Writer) (keyring, error) {
	all := keyring{}
	if len(header) > 0 && len(f.origins) != 1 {
		return nil, errors.New("-H goes with one --origin, which says whose the headers are; --auth gives some to more servers")
	}
	for _, text := range f.origins {
		origin, err := parseOrigin(text)
		if err != nil {
			return nil, fmt.Errorf("--origin %s: %w", words.Clip(text), err)
		}
		all[origin] = &credentials{origin: origin, header: header}
	}
	for i, text := range f.auth {
		c := &credentials{source: fmt.Sprintf("--auth number %d", i+1), every: fileEvery, say: stderr}
		file, err := all.add(c, text, "want ORIGIN=@FILE")
		name, isFile := strings.CutPrefix(file, "@")
		switch {
		case err != nil:
			return nil, err
		case isFile:
			c.read = fromFile(name)
		case file != "":
			return nil, fmt.Errorf("%s: want ORIGIN=@FILE", c.source)
		default: // ORIGIN= alone: a server that needs no headers
			c.header = http.Header{}
		}
	}
	for i, text := range f.runs {
		c := &credentials{source: fmt.Sprintf("--auth-command number %d", i+1), every: commandEvery, say: stderr}
		args, err := all.add(c, text, "want ORIGIN=PROGRAM and its arguments")
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(args) == "" {
			return nil, fmt.Errorf("%s: want ORIGIN=PROGRAM and its arguments", c.source)
		}
		c.read = fromCommand(strings.Fields(args))
	}
	for _, c := range all {
		if _, err := c.current(context.Background()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// add gives c to the origin before the = of a flag's text, and returns what follows the =. It is an error if the origin has credentials already. want is the form of
// the flag, for errors.
func (k keyring) add(c *credentials, text, want string) (rest string, err error) {
	to, rest, found := strings.Cut(text, "=")
	origin, err := parseOrigin(to)
	switch {
	case !found:
		return "", fmt.Errorf("%s: %s", c.source, want)
	case err != nil:
		return "", fmt.Errorf("%s: %w", c.source, err)
	case k[origin] != nil && (k[origin].source != "" || len(k[origin].header) > 0): // else it is from --origin
		return "", fmt.Errorf("%s: %s has its headers already", c.source, origin)
	}
	c.origin, k[origin] = origin, c
	return rest, nil
}

// authorize puts the headers of an origin (server) on a request to it. A request to an origin without headers is an error, so that nothing is sent there.
func (k keyring) authorize(req *http.Request) error {
	origin := session.OriginOf(req.URL)
	c, known := k[origin]
	if !known {
		return fmt.Errorf("no headers were given for %s (--auth)", origin)
	}
	return c.authorize(req)
}

// see has the headers for a server read again soon if that server has refused an attempt for its credentials. The client calls it for each event.
func (k keyring) see(e oncehttp.Event) {
	if e.Kind != oncehttp.EventAnswered || e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden {
		return
	}
	if c := k[e.Origin]; c != nil {
		c.refused()
	}
}
