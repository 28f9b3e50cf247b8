//go:build browser

package chromium

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Browser is a headless browser, spoken to in the DevTools protocol over a
// pipe: no port, no driver, no module. Its methods fail the test on any error. One
// goroutine uses it.
type Browser struct {
	t       *testing.T
	to      io.Writer
	from    *bufio.Reader
	session string
	last    int
	events  []event // all so far, in order
}

type event struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts the browser with one empty page; the test's end stops it. The test talks to it by two pipes, in the DevTools protocol. It reaches no host: each
// name is mapped to none.
func Start(t *testing.T) *Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("no chromium in PATH; it is Debian's package chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	toRead, toWrite := pipe(t)
	fromRead, fromWrite := pipe(t)
	cmd := exec.CommandContext(ctx, path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage",
		"--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir="+profileDir(t), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toRead, fromWrite} // 3 and 4, as the flag says
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = toRead.Close(), fromWrite.Close()
	t.Cleanup(func() {
		_ = toWrite.Close() // it ends when its pipe does
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			cancel()
			<-ended
		}
		cancel()
	})
	c := &Browser{t: t, to: toWrite, from: bufio.NewReader(fromRead)}
	c.attach()
	return c
}

// profileDir returns a directory for the browser's own files. Its helper processes
// outlive it by a moment and still write there, so that t.TempDir, which
// removes once, now and then fails.
func profileDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		poll := time.NewTicker(20 * time.Millisecond)
		defer poll.Stop()
		for range 500 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			<-poll.C
		}
		t.Error(err)
	})
	return dir
}

// pipe returns both ends of a new pipe. They are closed at the end of the test.
func pipe(t *testing.T) (*os.File, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// attach opens an empty page, and turns on its events, by commands of the DevTools protocol. From then on commands go to that page (its session).
func (c *Browser) attach() {
	c.t.Helper()
	var target struct{ TargetID, SessionID string }
	c.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	c.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	c.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		c.Call(domain+".enable", nil, nil)
	}
}

// Call sends a command of the DevTools protocol, and waits for its answer; messages that come first are kept in c.events. A zero byte ends each message. params
// and result may be nil. An error fails the test.
func (c *Browser) Call(method string, params, result any) {
	c.t.Helper()
	c.last++
	command := map[string]any{"id": c.last, "method": method}
	if params != nil {
		command["params"] = params
	}
	if c.session != "" {
		command["sessionId"] = c.session
	}
	data, err := json.Marshal(command)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.to.Write(append(data, 0)); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	for {
		e := c.next(method)
		if e.ID != c.last {
			continue
		}
		if e.Error != nil {
			c.t.Fatalf("%s: %s", method, e.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(e.Result, result); err != nil {
				c.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

// next waits for the next message of the browser, an event or the answer to a command, and keeps it. The test fails if the browser has ended; during names the
// work under way.
func (c *Browser) next(during string) event {
	c.t.Helper()
	data, err := c.from.ReadBytes(0)
	if err != nil {
		c.t.Fatalf("%s: the browser ended: %v", during, err)
	}
	var e event
	if err := json.Unmarshal(data[:len(data)-1], &e); err != nil {
		c.t.Fatalf("%s: %v", during, err)
	}
	c.events = append(c.events, e)
	return e
}

// Open loads a page, and waits for its load event among the events from now on, some of which may come before the command's answer.
func (c *Browser) Open(url string) {
	c.t.Helper()
	seen := len(c.events)
	c.Call("Page.navigate", map[string]any{"url": url}, nil)
	for ; ; seen++ {
		for seen >= len(c.events) {
			c.next("load")
		}
		if c.events[seen].Method == "Page.loadEventFired" {
			return
		}
	}
}

// Eval runs an expression in the page, and returns its value as text. An exception fails the test.
func (c *Browser) Eval(expression string) string {
	c.t.Helper()
	var answer struct {
		Result struct{ Value any }
		Thrown *struct{ Text string } `json:"exceptionDetails"`
	}
	c.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "userGesture": true, "awaitPromise": true}, &answer)
	if answer.Thrown != nil {
		c.t.Fatalf("%s: %s", expression, answer.Thrown.Text)
	}
	return fmt.Sprint(answer.Result.Value)
}

// Key presses one key the way a person would.
func (c *Browser) Key(name string, text string) {
	c.t.Helper()
	c.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": name, "text": text}, nil)
	c.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name}, nil)
}

// Complaints returns all complaints of the page so far: uncaught errors, calls of console, log entries (such as broken policies) and dialogs.
func (c *Browser) Complaints() []string {
	c.t.Helper()
	c.Eval("1") // what the page said before has arrived with this answer
	var list []string
	for _, e := range c.events {
		switch e.Method {
		case "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening", "Runtime.consoleAPICalled":
			list = append(list, e.Method+" "+string(e.Params))
		}
	}
	return list
}

// Requests returns the URLs that the page asked for, by the network or from files, so far.
func (c *Browser) Requests() []string {
	c.t.Helper()
	var urls []string
	for _, e := range c.events {
		if e.Method != "Network.requestWillBeSent" {
			continue
		}
		var sent struct{ Request struct{ URL string } }
		if err := json.Unmarshal(e.Params, &sent); err != nil {
			c.t.Fatal(err)
		}
		urls = append(urls, sent.Request.URL)
	}
	return urls
}

// Picture returns the page as a PNG of this size, in CSS pixels; dark: as for a person who prefers dark colours.
func (c *Browser) Picture(width, height int, dark bool) []byte {
	c.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	c.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	c.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	var shot struct{ Data []byte }
	c.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	return shot.Data
}

// Want compares the text of an expression's value in the page with value. A difference is an error of the test.
func (c *Browser) Want(expression, value string) {
	c.t.Helper()
	if got := c.Eval(expression); got != value {
		c.t.Errorf("%s = %q, want %q", expression, got, value)
	}
}

// NoComplaints demands a silent console and no request beyond the page itself, the file called name.
func (c *Browser) NoComplaints(name string) {
	c.t.Helper()
	for _, complaint := range c.Complaints() {
		c.t.Error(complaint)
	}
	for _, url := range c.Requests() {
		if !strings.HasPrefix(url, "file://") || !strings.HasSuffix(strings.SplitN(url, "#", 2)[0], "/"+name) {
			c.t.Errorf("the page asked for %s", url)
		}
	}
}
