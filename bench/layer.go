package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	resty2 "github.com/go-resty/resty/v2"
	"github.com/google/uuid"
	"github.com/hashicorp/go-retryablehttp"
	resty3 "resty.dev/v3"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// stubTransport answers 201 in memory, so that only the layers above it are measured. It closes the body, as a RoundTripper must.
type stubTransport struct{}

// RoundTrip implements http.RoundTripper. It reads the body, sends nothing, and answers 201 at once: so the figures are those of the clients alone.
func (stubTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		Status: "201 Created", StatusCode: http.StatusCreated, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answerBody)),
		ContentLength: int64(len(answerBody)), Request: req,
	}, nil
}

const layerURL = "http://payments.example/payments"

// layerContenders returns new clients over stubTransport, so that oncehttp's journal in memory begins empty. The caller closes
// them. The targets compare them by their indexes, so their order matters.
func layerContenders() ([]*contender, error) {
	plain := &http.Client{Transport: stubTransport{}}
	retryable := retryablehttp.NewClient()
	retryable.Logger, retryable.HTTPClient.Transport = nil, stubTransport{}
	failsafe := &http.Client{Transport: failsafehttp.NewRoundTripper(stubTransport{}, failsafehttp.NewRetryPolicyBuilder().Build())}
	owned, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: stubTransport{}})
	if err != nil {
		return nil, err
	}
	generated, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: stubTransport{}})
	if err != nil {
		return nil, err
	}
	served, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: stubTransport{}})
	if err != nil {
		return nil, err
	}
	through, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: stubTransport{}})
	if err != nil {
		return nil, err
	}
	passing := clientContender("oncehttp Transport, no operation: it passes", (&http.Client{Transport: through.Transport()}).Do)
	passing.close = through.Close
	inbound, cancel := context.WithCancel(context.Background())
	orders := oncehttp.NewScope("order")
	return []*contender{
		clientContender("plain net/http", plain.Do),
		clientContender("go-retryablehttp StandardClient", retryable.StandardClient().Do),
		{
			name: "oncehttp Do + memory, generated keys", close: generated.Close,
			do: clientContender("", generated.Do).do,
		},
		{name: "oncehttp DoKey + memory, business keys", do: func(url string, n int64) error {
			req, err := newPayment(url, n)
			if err != nil {
				return err
			}
			return consume(owned.DoKey(req, orders.Key(businessParts(n))))
		}, close: owned.Close},
		{name: "oncehttp Do + memory, in a context that can end", do: func(url string, n int64) error {
			req, err := newPaymentIn(inbound, url, n)
			if err != nil {
				return err
			}
			return consume(served.Do(req))
		}, close: func() error { cancel(); return served.Close() }},
		leastContender(stubTransport{}),
		clientContender("failsafehttp", failsafe.Do),
		restyContender2(resty2.New().SetTransport(stubTransport{}).SetRetryCount(4)),
		restyContender3(resty3.New().SetTransport(stubTransport{}).SetRetryCount(4)),
		passing,
	}, nil
}

// clientContender returns one of the compared programs: it sends payments by a function like http.Client.Do. It has no close.
func clientContender(name string, do func(*http.Request) (*http.Response, error)) *contender {
	return &contender{name: name, do: func(url string, n int64) error {
		req, err := newPayment(url, n)
		if err != nil {
			return err
		}
		return consume(do(req))
	}}
}

// leastContender returns a program that does the least work for Do's promise, in the plainest way, and is no client: it reads the body, makes a key,
// hashes the request, keeps both, sends a copy with a time limit while it traces the connection, reads the answer and keeps it. It checks nothing, joins no
// equal calls, does not classify the answer, and finds no earlier operation.
func leastContender(wire http.RoundTripper) *contender {
	var mu sync.Mutex
	kept := map[string][]byte{}
	return clientContender("(the least: snapshot, key, hash, keep, send, keep)", func(req *http.Request) (*http.Response, error) {
		body := make([]byte, req.ContentLength)
		if _, err := io.ReadFull(req.Body, body); err != nil {
			return nil, err
		}
		key := uuid.NewString()
		rec := fmt.Appendf(nil, "%s %s\n%s\n%s", req.Method, req.URL, req.Header["Content-Type"], body)
		sum := sha256.Sum256(rec)
		rec = append(rec, sum[:]...)
		mu.Lock()
		kept[key] = rec
		mu.Unlock()
		var left bool
		ctx, cancel := context.WithTimeout(req.Context(), 30*time.Second)
		defer cancel()
		out := req.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { left = true }}))
		out.Header.Set("Idempotency-Key", key)
		out.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := wire.RoundTrip(out)
		if err != nil {
			return nil, fmt.Errorf("left %t: %w", left, err)
		}
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		kept[key] = append(rec, answer...)
		mu.Unlock()
		resp.Body = io.NopCloser(bytes.NewReader(answer))
		return resp, nil
	})
}

// restyContender2 returns one of the compared programs: it sends payments by resty v2 through c. Version 2 has nothing to close.
func restyContender2(c *resty2.Client) *contender {
	return &contender{name: "resty v2", do: func(url string, n int64) error {
		req, err := newPayment(url, n)
		if err != nil {
			return err
		}
		resp, err := c.R().SetHeader("Content-Type", "application/json").SetBody(req.Body).Post(url)
		return wantCreated(resp.StatusCode(), err)
	}}
}

// restyContender3 returns one of the compared programs: it sends payments by resty v3 through c. Its close closes c.
func restyContender3(c *resty3.Client) *contender {
	return &contender{name: "resty v3", do: func(url string, n int64) error {
		req, err := newPayment(url, n)
		if err != nil {
			return err
		}
		resp, err := c.R().SetHeader("Content-Type", "application/json").SetBody(req.Body).Post(url)
		return wantCreated(resp.StatusCode(), err)
	}, close: c.Close}
}

// wantCreated returns err, or an error for any status but 201.
func wantCreated(status int, err error) error {
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("answered %d", status)
	}
	return err
}

// runLayer measures the HTTP layer of all clients in memory, with one caller: time and allocations of an operation without network and disk. New clients for
// each round keep the journals in memory small.
func runLayer(b *bench) error {
	const group = "one caller, everything in memory"
	var names []string
	var times, cpu, allocs []samples
	ops := fullOrTiny(b, int64(30_000), 300)
	for range b.rounds {
		contenders, err := layerContenders()
		if err != nil {
			return err
		}
		for i, l := range contenders {
			if len(names) < len(contenders) { // in the first round
				names, times, cpu, allocs = append(names, l.name), append(times, nil), append(cpu, nil), append(allocs, nil)
			}
			ns, busy, mallocs, err := l.repeat(ops)
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			times[i], cpu[i], allocs[i] = append(times[i], ns), append(cpu[i], busy), append(allocs[i], mallocs)
			if l.close != nil {
				_ = l.close()
			}
		}
	}
	for i, name := range names {
		b.add(group, name, "ns/op", times[i])
		b.add(group, name, "of plain", times[i].over(times[0]))
		b.add(group, name, "CPU ns/op", cpu[i])
		b.add(group, name, "allocs/op", allocs[i])
	}
	for i, what := range []string{"generated keys", "business keys"} { // contenders 2 and 3, compared with 1
		b.atMost("oncehttp with journal, "+what+": time of go-retryablehttp's StandardClient", "", 1, times[2+i].over(times[1]))
		// Rounded, as in Go's own benchmarks: a journal's map grows now and then.
		b.atMost("oncehttp with journal, "+what+": allocations beyond go-retryablehttp's StandardClient", "", 0, allocs[2+i].minus(allocs[1]).rounded())
	}
	passing := len(names) - 1
	b.atMost("oncehttp's Transport, a request that is no operation: time beyond plain net/http", "ns", 1000, times[passing].minus(times[0]))
	if b.profile == "" {
		return nil
	}
	contenders, err := layerContenders()
	if err != nil {
		return err
	}
	var next atomic.Int64
	return profileContender(b, contenders[3], 1, layerURL, &next) // oncehttp with business keys
}

// repeat does ops operations one after another, after some to fill caches and pools. It returns the figures of one
// operation: time and processor time in ns (garbage collection included), and allocations.
func (l *contender) repeat(ops int64) (ns, cpu, mallocs float64, err error) {
	for n := range ops / 10 { // fills caches and pools
		if err := l.do(layerURL, -1-n); err != nil { // negative: other payments than the measured ones
			return 0, 0, 0, err
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began, busy := time.Now(), processorTime()
	for n := range ops {
		if err := l.do(layerURL, n); err != nil {
			return 0, 0, 0, err
		}
	}
	took, busy := time.Since(began), processorTime()-busy
	runtime.ReadMemStats(&after)
	per := float64(ops)
	return float64(took) / per, float64(busy) / per, float64(after.Mallocs-before.Mallocs) / per, nil
}
