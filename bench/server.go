package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// serveRole is the server: it reads the body, waits for the duration in the
// request's query, and answers 201. It prints its URL, and ends with its standard
// input, so that it never outlives its parent.
func serveRole([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		awaitEnd()
		os.Exit(0)
	}()
	fmt.Println("http://" + l.Addr().String())
	return http.Serve(l, http.HandlerFunc(pay))
}

// awaitEnd waits for the end of this process's standard input, a pipe from its parent: it ends with the parent, too.
func awaitEnd() { _, _ = io.Copy(io.Discard, os.Stdin) }

const answerBody = `{"id":"pay_0123456789abcdef","status":"succeeded","amount":4200,"currency":"eur"}`

// pay is the handler of the benchmark's server: it answers 201 to one payment, after the delay that is the whole query (such as "20ms").
func pay(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if delay, _ := time.ParseDuration(r.URL.RawQuery); delay > 0 {
		time.Sleep(delay)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answerBody)
}

// server is a server in a process of its own. Its user must call stop.
type server struct {
	url   string
	stdin io.Closer
	cmd   *exec.Cmd
}

// startServer starts the benchmark's server in a process of its own, and waits for its URL. The process also ends with ctx.
func startServer(ctx context.Context) (*server, error) { return startRole(ctx, "role-serve") }

// startRole starts this program once more, as the server of that role, and waits for its URL. The process also ends with ctx.
func startRole(ctx context.Context, role string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, role)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the server did not start: %w", err)
	}
	return &server{url: strings.TrimSpace(line), stdin: stdin, cmd: cmd}, nil
}

// stop ends the process, by the end of its standard input, and waits for it.
func (s *server) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}

// payURL returns the URL of payments that the server answers after delay.
func (s *server) payURL(delay time.Duration) string {
	return s.url + "/payments?" + delay.String()
}

// idleMax is the number of idle connections in every contender's pool, oncehttp's
// default. With net/http's default of 2, new connections would dominate the figures.
const idleMax = 256

// newPool returns a new transport without a proxy. It keeps up to idleMax idle connections to a server, so that each worker has one, and no other limit
// (0). The caller closes these at the end.
func newPool() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, idleMax
	return t
}

// newPayment returns the request of payment n, equal for all contenders. Its context never ends.
func newPayment(url string, n int64) (*http.Request, error) {
	return newPaymentIn(context.Background(), url, n)
}

// newPaymentIn returns the request of payment n, equal for all contenders, with this context.
func newPaymentIn(ctx context.Context, url string, n int64) (*http.Request, error) {
	body := fmt.Sprintf(`{"amount":4200,"currency":"eur","customer":"cus_%d","order":"%d","note":"as agreed"}`, n%977, n)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// consume reads and closes an answer. It takes the results of Do; any status but 201 is an error.
func consume(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}
