package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp"
)

// bigBody is the size of the body in bytes: the greatest that oncehttp takes by default.
const bigBody = 10 << 20

// bodyWays returns the kinds of bodies; the first is sent by net/http alone. With
// "in memory" the memory of the caller's own copy counts, too.
func bodyWays() []string {
	return []string{"plain, in memory", "in memory", "streamed, length known", "streamed, length unknown"}
}

// weighed is the result of role-body.
type weighed struct {
	Peak float64 // of anonymous memory above that before the request, in sizes of the body
	Read int64   // bytes read of the body
}

// runBodies measures the memory of a request with a big body, and how much of one over the limit is read, both as multiples of the body's size. A body one byte
// over the limit must be refused. Where memory cannot be measured it records a note instead.
func runBodies(b *bench) error {
	server, err := startServer(b)
	if err != nil {
		return err
	}
	defer server.stop()
	const group = "peak memory of a 10 MiB request"
	peaks := make([]samples, len(bodyWays()))
	var known, unknown samples
	for r := range b.rounds {
		for i, way := range bodyWays() {
			var w weighed
			dir := filepath.Join(b.dir, fmt.Sprintf("body-%d-%d", r, i))
			if err := runSelf(b, &w, "role-body", server.payURL(0), way, dir, strconv.Itoa(bigBody)); err != nil {
				b.note("not measured: %v", err)
				return nil
			}
			peaks[i] = append(peaks[i], w.Peak)
			if i < 2 { // these two hold the whole body before the call, so how much is read says nothing
				continue
			}
			// bigBody is the client's limit.
			if err := runSelf(b, &w, "role-body", server.payURL(0), way, dir, strconv.Itoa(bigBody+1)); err != nil {
				return err
			}
			read := float64(w.Read) / bigBody
			if i == 2 {
				known = append(known, read)
			} else {
				unknown = append(unknown, read)
			}
		}
	}
	for i, way := range bodyWays() {
		b.add(group, way, "bodies", peaks[i])
	}
	b.add("bytes read of one over the limit", "length known", "bodies", known)
	b.add("bytes read of one over the limit", "length unknown", "bodies", unknown)
	b.atMost("peak with the caller's own copy", " bodies", 2.2, peaks[1])
	b.atMost("peak, streamed, length known", " bodies", 2.2, peaks[2])
	b.atMost("read of a body over the limit, length known", " bodies", 0, known)
	b.atMost("read of an endless body over the limit", " bodies", 1.01, unknown)
	return nil
}

// bodyRole is the program of a child process: it sends one request with a big body and prints the memory for it, and the bytes read of it. Arguments:
// the URL, one of bodyWays, a folder for a journal, the size of the body. Above bigBody, the client's limit, the request must be refused.
func bodyRole(args []string) error {
	url, way, dir := args[0], args[1], args[2]
	size, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	client, err := oncehttp.Open(filepath.Join(dir, "body.db"), oncehttp.Config{})
	if err != nil {
		return err
	}
	defer client.Close()
	do := client.Do
	if way == bodyWays()[0] {
		do = (&http.Client{}).Do
	}
	for range 20 { // buffers, pools, the first page of everything
		req, err := newPayment(url, time.Now().UnixNano())
		if err != nil {
			return err
		}
		if err := consume(do(req)); err != nil {
			return err
		}
	}
	debug.FreeOSMemory()
	before, err := residentMemory("RssAnon")
	if err != nil {
		return err
	}
	stop := watchMemory()
	src := &source{left: size}
	failed := sendBody(do, url, way, src, size)
	peak, err := stop()
	if err != nil {
		return err
	}
	switch {
	case size <= bigBody && failed != nil:
		return failed
	case size > bigBody && !errors.Is(failed, oncehttp.ErrBodyTooLarge):
		return fmt.Errorf("a body over the limit gave %v", failed)
	}
	return printJSON(weighed{Peak: float64(peak-before) / float64(size), Read: src.read})
}

// sendBody sends size bytes of src in one of bodyWays: the first two read them into memory before, the third tells the length in advance, the last does not.
func sendBody(do func(*http.Request) (*http.Response, error), url, way string, src *source, size int64) error {
	var body io.Reader = src
	if ways := bodyWays(); way == ways[0] || way == ways[1] {
		own := make([]byte, size)
		if _, err := io.ReadFull(src, own); err != nil {
			return err
		}
		body = bytes.NewReader(own)
	}
	req, err := http.NewRequest(http.MethodPost, url, body)
	if err != nil {
		return err
	}
	if way == bodyWays()[2] {
		req.ContentLength = size
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	return consume(do(req))
}

// source is a body of left more bytes, which are hard to compress; read counts the bytes read so far.
type source struct{ left, read int64 }

// Read fills p with the next bytes: they look random, and are the same in each run. After the last one it returns io.EOF. s.left counts the bytes
// to come, s.read those already given.
func (s *source) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), s.left)
	for i := range p[:n] {
		p[i] = byte(scatter(s.read + int64(i)))
	}
	s.left -= n
	s.read += n
	return int(n), nil
}
