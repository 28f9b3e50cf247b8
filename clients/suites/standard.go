package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// patch is a change of a file of the standard library: insert is added behind after, which
// must occur exactly once.
type patch struct {
	file, after, insert string
}

// patches lists the changes of the standard library: a hook for the transport of each
// http.Client, and no connection or DNS query beyond this machine. Each names a file, the text
// in it that must be there once, and the text to insert behind that.
func patches() []patch {
	return []patch{
		{"net/http/client.go", "func (c *Client) transport() RoundTripper {\n", `	if OncehttpBeneath != nil {
		rt := c.Transport
		if rt == nil {
			rt = DefaultTransport
		}
		return OncehttpBeneath(rt)
	}
`},
		{"net/http/client.go", "var ErrSchemeMismatch = errors.New(\"http: server gave HTTP response to HTTPS client\")\n", "\n// OncehttpBeneath is for the program suites of oncehttp.\nvar OncehttpBeneath func(RoundTripper) RoundTripper\n"},
		{"net/dial.go", "func (sd *sysDialer) dialSingle(ctx context.Context, ra Addr) (c Conn, err error) {\n", `	switch ra := ra.(type) {
	case *TCPAddr:
		if !ra.IP.IsLoopback() && !ra.IP.IsUnspecified() {
			return nil, errNoSuchHost
		}
	case *UDPAddr:
		if !ra.IP.IsLoopback() && !ra.IP.IsUnspecified() {
			return nil, errNoSuchHost
		}
	}
`},
		// The condition is always true. A plain return would leave unreachable code.
		{"net/dnsclient_unix.go", "q dnsmessage.Question, timeout time.Duration, useTCP, ad bool) (dnsmessage.Parser, dnsmessage.Header, error) {\n", `	if !useTCP || useTCP {
		return dnsmessage.Parser{}, dnsmessage.Header{}, errNoSuchHost
	}
`},
	}
}

// patchStandard writes the changed files of the standard library into dir, and returns the
// path of the file for go test -overlay. It fails if a patch does not fit this version of Go: its text must be in the file once.
func patchStandard(ctx context.Context, dir string) (overlay string, err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	src := filepath.Join(strings.TrimSpace(string(out)), "src")
	replace := map[string]string{}
	for _, p := range patches() {
		original := filepath.Join(src, filepath.FromSlash(p.file))
		changed, again := replace[original] // again: an earlier patch has changed this file
		from := changed
		if !again {
			changed, from = filepath.Join(dir, filepath.FromSlash(p.file)), original
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(text), p.after); n != 1 {
			return "", fmt.Errorf("%s of this version of Go has %d lines %q", p.file, n, p.after)
		}
		replace[original] = changed
		if err := write(changed, strings.Replace(string(text), p.after, p.after+p.insert, 1)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, write(overlay, string(text))
}

// write writes a file, and makes its folder.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
