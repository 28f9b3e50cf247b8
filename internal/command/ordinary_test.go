package command_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestOrdinaryTraffic: whatever an API that works answers, send and batch send each operation once, say that it is done, and leave
// nothing pending or held. A final 4xx is refused.
func TestOrdinaryTraffic(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(zip, `{"id":"p1"}`)
	_ = zip.Close()
	for name, r := range map[string]struct {
		status       int
		header, body string
		flags        []string
		stream       bool // it does not end
	}{
		"201 JSON":        {status: 201, header: "Content-Type: application/json\nLocation: /payments/p1", body: `{"id":"p1"}`},
		"201 empty":       {status: 201},
		"204":             {status: 204},
		"202":             {status: 202, header: "Location: /jobs/1\nRetry-After: 5"},
		"JSON as text":    {status: 200, header: "Content-Type: text/plain", body: `{"id":"p1"}`},
		"plain text":      {status: 200, header: "Content-Type: text/plain", body: "OK\n"},
		"after a BOM":     {status: 200, header: "Content-Type: application/json", body: "\ufeff{}"},
		"NDJSON":          {status: 200, header: "Content-Type: application/x-ndjson", body: "{\"a\":1}\n{\"a\":2}\n"},
		"CSV":             {status: 200, header: "Content-Type: text/csv", body: "id\np1\n"},
		"PDF":             {status: 200, header: "Content-Type: application/pdf", body: "%PDF-1.7\n\xe2\xe3"},
		"XML":             {status: 200, header: "Content-Type: application/xml", body: `<?xml version="1.0"?><payment/>`},
		"HTML by Accept":  {status: 200, header: "Content-Type: text/html", body: "<!DOCTYPE html><html></html>", flags: []string{"-H", "Accept: text/html"}},
		"gzip":            {status: 200, header: "Content-Type: application/json\nContent-Encoding: gzip", body: zipped.String()},
		"gzip, asked for": {status: 200, header: "Content-Type: application/json\nContent-Encoding: gzip", body: zipped.String(), flags: []string{"-H", "Accept-Encoding: gzip"}},
		"2 MB":            {status: 200, header: "Content-Type: application/json", body: `{"a":"` + strings.Repeat("x", 2<<20) + `"}`},
		"events":          {status: 200, header: "Content-Type: text/event-stream", body: "data: 1\n\n", stream: true},
		"PUT":             {status: 200, body: "{}", flags: []string{"--method", "PUT"}},
		"422 problem":     {status: 422, header: "Content-Type: application/problem+json", body: `{"title":"no"}`},
		"402 as text":     {status: 402, header: "Content-Type: text/plain", body: "declined"},
		"keyless":         {status: 201, body: `{"id":"p1"}`, flags: []string{"--profile", "none"}},
		"named":           {status: 201, body: `{"id":"p1"}`, flags: []string{"--profile", "gocardless"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			sent := map[string]int{}
			s := commandtest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				mu.Lock()
				sent[req.URL.Path]++
				mu.Unlock()
				w.Header()["Content-Type"] = nil
				for line := range strings.Lines(r.header) {
					name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
					w.Header().Set(name, value)
				}
				w.WriteHeader(r.status)
				_, _ = io.WriteString(w, r.body)
				if r.stream {
					_ = http.NewResponseController(w).Flush()
					<-req.Context().Done()
				}
			})
			want, result := terminal.ExitOK, results.Done
			switch {
			case r.status == 202:
				result = results.Accepted
			case r.status >= 400:
				want, result = terminal.ExitRefused, ""
			}
			file := commandtest.WriteFile(t, "in.csv", "id\na\n")
			j := filepath.Join(filepath.Dir(file), "j.db")
			flags := append([]string{"--journal", j}, r.flags...)
			method, rest := "POST", flags
			if len(r.flags) > 0 && r.flags[0] == "--method" {
				method, rest = r.flags[1], flags[:2]
			}
			send := append(commandtest.Fast("send", method, s.URL+"/send", "-d", "{}", "--key", "k", "--json", "--attempt-timeout", "10s"), rest...)
			batch := append(commandtest.Fast("batch", file, "--url", s.URL+"/batch", "--key", "o:{id}", "--attempt-timeout", "10s"), flags...)
			for _, call := range [][]string{send, batch} {
				if l := commandtest.Run(t, call...).Want(t, want).Only(t); result != "" && l.Result != result || l.Sends != 1 {
					t.Errorf("%s: %+v", call[0], l)
				}
			}
			if got := commandtest.Run(t, "journal", "list", "--json", "--state", "pending,held", "--journal", j).Want(t, terminal.ExitOK); got.Out != "" {
				t.Errorf("left: %s", got.Out)
			}
			if fmt.Sprint(sent) != "map[/batch:1 /send:1]" {
				t.Errorf("sent %v", sent)
			}
		})
	}
}
