package conformance_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/profile"
)

// odd is a server that is right, though something about it looks wrong.
type odd struct {
	name   string
	c      choices
	q      quirk
	change func(o *conformance.Options)
	// open lists what is not decided, and rightly so.
	open string
}

// What is right, and looks odd, is not held against a server.
func TestOddIsRight(t *testing.T) {
	t.Parallel()
	virtually(t, some(append(oddAnswers(), oddLimits()...)), func(t *testing.T, _ int, c odd) {
		c.c.updates = true
		s, url := newSample(t, c.c, c.q)
		o := sampleOptions(url)
		o.Profile = c.c.declare()
		if c.change != nil {
			c.change(&o)
		}
		if rep := runSure(t, o); list(wrong(rep)) != c.open {
			t.Errorf("%s: got %s, want %q open, no failure and no warning\n%s", c.name, list(wrong(rep)), c.open, text(rep))
		}
		_ = s
	})
}

// A limit on the rate of requests that leaders of an overlap meet, more often than a longer hold is tried, is waited for.
func TestLimitMetByLeaders(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"inflight/once", "inflight/follower-leaves", "inflight/around-completion", "inflight/leader-leaves"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			var limits atomic.Int32
			_, url := newSample(t, choices{}, quirk{front: func(c *call) bool {
				c.mu.Lock()
				first := c.r.URL.Query().Get("sleep") != "" && c.notes[c.ref] == nil
				c.notes[c.ref] = true
				c.mu.Unlock()
				if !first || limits.Add(1) > 5 {
					return false
				}
				a := c.refusal(http.StatusTooManyRequests, "limited", "too many requests")
				a.header["Retry-After"] = "0"
				c.send(a)
				return true
			}})
			o := sampleOptions(url)
			o.Profile, o.Run = choices{}.declare(), []string{id}
			if rep := run(t, o); find(t, rep, id).Verdict != conformance.VerdictPass || limits.Load() < 6 {
				t.Errorf("after %d limits, want a pass after 5\n%s", limits.Load(), text(rep))
			}
		})
	}
}

func oddAnswers() []odd {
	return []odd{
		{name: "the effect follows 300 ms after its answer", c: choices{status: 202, later: 300 * time.Millisecond}},
		{name: "answers name nothing", c: choices{nameless: true}},
		{name: "no body and no Location", c: choices{status: 204, nameless: true}},
		{
			name: "ids are numbered by path",
			q: quirk{run: func(c *call) reply {
				a := c.serve()
				if a.status != http.StatusCreated {
					return a
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				n, _ := c.notes[c.r.URL.Path].(int)
				c.notes[c.r.URL.Path] = n + 1
				a.body, a.header["Location"] = fmt.Sprintf(`{"id":%d}`, n+1), c.r.URL.Path+"/"+strconv.Itoa(n+1)
				return a
			}},
		}, {
			name: "the id is the reference",
			q: quirk{run: func(c *call) reply {
				a := c.serve()
				if a.status == http.StatusCreated {
					a.body, a.header["Location"] = fmt.Sprintf(`{"id":%q}`, c.ref), "/payments"
				}
				return a
			}},
		}, {
			name: "a number at another place",
			q: quirk{run: func(c *call) reply {
				a := c.serve()
				a.body = strings.Replace(a.body, `"id":"p`, `"data":{"n":"`, 1)
				a.body = strings.Replace(a.body, `","reference"`, `"},"reference"`, 1)
				return a
			}},
			change: func(o *conformance.Options) { o.IDPointer = "/data/n" },
		}, {
			name: "303 to what was made",
			q: quirk{run: func(c *call) reply {
				a := c.serve()
				if a.status == http.StatusCreated {
					a.status = http.StatusSeeOther
				}
				return a
			}},
		}, {
			name: "HEAD is answered 501, and OPTIONS 405",
			q: quirk{front: func(c *call) bool {
				if c.r.Method == http.MethodHead {
					c.w.WriteHeader(http.StatusNotImplemented)
				}
				return c.r.Method == http.MethodHead
			}},
		}, {
			name: "a repeat is told to wait for a quarter of a second after the answer",
			q: quirk{repeat: func(c *call, e *entry) (reply, bool) {
				if time.Since(e.born) > 250*time.Millisecond {
					return reply{}, false
				}
				return c.refusal(http.StatusConflict, "busy", "not stored yet"), true
			}},
			change: func(o *conformance.Options) {
				o.Skip = []string{"inflight/**", "soak/**", "net/slow-upload-duplicate", "net/pipelined-twice"} // told to wait after the outcome is what they look for
			},
		}, {
			name: "every answer differs in its header",
			q: quirk{front: func(c *call) bool {
				c.w.Header().Set("X-Request-Id", strconv.Itoa(c.number()))
				c.w.Header().Set("Connection", "close")
				return false
			}},
		}, {
			name: "a natural key: the same reference under a fresh key is done already",
			q: quirk{run: func(c *call) reply {
				c.mu.Lock()
				known := c.effects[c.ref] > 0
				c.mu.Unlock()
				if known && c.r.URL.Query().Get("fail") == "" {
					return c.refusal(http.StatusConflict, "exists", "the order was placed before")
				}
				return c.serve()
			}},
			change: func(o *conformance.Options) {
				o.Profile.BusinessConflict = []profile.Matcher{{Status: []int{409}, Pointer: "/code", Equals: []string{"exists"}}}
				o.SecondPath = "" // the reference is one for all paths
			},
		},
	}
}

func oddLimits() []odd {
	return []odd{
		{
			name: "forty requests in 100 ms, then 429", c: choices{perBurst: 40},
			change: func(o *conformance.Options) { o.Settle = 3 * time.Second },
		},
		{
			name: "the limit is met by a request that expects to continue",
			q: quirk{front: func(c *call) bool {
				c.mu.Lock()
				limited := c.r.Header.Get("Expect") != "" && c.notes["expected "+c.ref] == nil
				c.notes["expected "+c.ref] = limited
				c.mu.Unlock()
				if limited {
					a := c.refusal(http.StatusTooManyRequests, "limited", "too many requests")
					a.header["Retry-After"] = "1"
					c.send(a)
				}
				return limited
			}},
		},
		{name: "bodies of 20 KB", c: choices{bodyMax: 20_000}},
		{name: "100 ms for every request", c: choices{delay: 100 * time.Millisecond}, change: func(o *conformance.Options) { o.Hold = 300 * time.Millisecond }},
		{
			name: "members that are not known are refused",
			q: quirk{front: func(c *call) bool {
				unknown := false
				for _, name := range []string{"padding", "note", "quantity", "tags", "units"} {
					unknown = unknown || bytes.Contains(c.body, []byte(`"`+name+`":`))
				}
				if unknown {
					c.send(c.refusal(http.StatusBadRequest, "unknown", "a member is not known"))
				}
				return unknown
			}},
			open: "~conflict/1.0-vs-1 ~conflict/array-order ~conflict/large-numbers ~conflict/string-case",
		}, {
			name: "keys are UUIDs",
			q: quirk{key: func(_ *call, k labelled) labelled {
				k.ok = k.ok && len(k.key) == 36
				return k
			}},
			change: func(o *conformance.Options) { o.Profile.Key.Format = profile.UUID },
		}, {
			name: "a handler that crashes closes the connection",
			q: quirk{front: func(c *call) bool {
				crash := c.r.URL.Query().Get("crash") != ""
				if crash {
					c.hangUp()
				}
				return crash
			}},
		}, {
			name: "a chunked body closes the connection",
			q: quirk{front: func(c *call) bool {
				chunked := len(c.r.TransferEncoding) > 0
				if chunked {
					c.hangUp()
				}
				return chunked
			}},
			change: func(o *conformance.Options) { o.Skip = []string{"soak/**", "net/truncated-does-not-claim"} },
		}, {
			name: "chunked bodies are refused",
			q: quirk{front: func(c *call) bool {
				if len(c.r.TransferEncoding) > 0 {
					c.send(c.refusal(http.StatusLengthRequired, "length", "a length is required"))
				}
				return len(c.r.TransferEncoding) > 0
			}},
			change: func(o *conformance.Options) { o.Skip = []string{"soak/**", "net/truncated-does-not-claim"} },
		}, {
			name: "the second caller is not known",
			q: quirk{front: func(c *call) bool {
				stranger := strings.Contains(c.r.Header.Get("Authorization"), "bob")
				if stranger {
					c.send(c.refusal(http.StatusUnauthorized, "caller", "not known"))
				}
				return stranger
			}},
			open: "~replay/second-caller ~scope/other-principal-not-answered",
		}, {
			name: "there is no second path",
			q: quirk{front: func(c *call) bool {
				if c.r.URL.Path != "/payments" {
					c.send(c.refusal(http.StatusNotFound, "path", "no such path"))
				}
				return c.r.URL.Path != "/payments"
			}},
			open: "~replay/second-path ~scope/other-path-not-answered",
		}, {
			name: "a key is required of everybody, under another name",
			c:    choices{required: true},
			q: quirk{key: func(c *call, _ labelled) labelled {
				c.r.Header["Idempotency-Key"] = c.r.Header["X-Request-Id"]
				return c.readKey()
			}},
			change: func(o *conformance.Options) {
				o.KeyHeader, o.Skip = "X-Request-ID", []string{"replay/other-headers"} // which changes X-Request-Id
			},
		},
	}
}

// hangUp closes the connection without an answer.
func (c *call) hangUp() {
	if conn, _, err := http.NewResponseController(c.w).Hijack(); err == nil {
		_ = conn.Close() // the client sees it
	}
}

// A server whose queue of connections is short drops most of a burst, and now and then all of it. What is left is judged.
func TestShortQueue(t *testing.T) {
	t.Parallel()
	s := &sample{choices: choices{wait: true}, entries: map[string]*entry{}, effects: map[string]int{}, notes: map[string]any{}}
	var mu sync.Mutex
	atWork, numbers, bursts := 0, map[string]int{}, map[string]bool{}
	come := func(key string, by int) int {
		mu.Lock()
		defer mu.Unlock()
		if _, known := numbers[key]; !known {
			numbers[key] = len(numbers)
		}
		atWork += by
		bursts[key] = bursts[key] || atWork > 4
		return atWork
	}
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		full := come(key, 1) > 20
		defer come(key, -1)
		body, err := io.ReadAll(r.Body) // the last byte comes when all are there
		mu.Lock()
		drop := full || err != nil || bursts[key] && numbers[key]%3 == 1
		mu.Unlock()
		if drop {
			(&call{w: w, r: r}).hangUp()
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.ServeHTTP(w, r)
	}))
	o := sampleOptions(url)
	o.Profile, o.Run, o.Rounds = choices{wait: true}.declare(), []string{"inflight/burst"}, 6
	if rep := run(t, o); find(t, rep, "inflight/burst").Verdict != conformance.VerdictPass {
		t.Errorf("want a pass\n%s", text(rep))
	}
}

// Witnesses that are right, and look odd, are believed.
func TestOddWitness(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, n int){
		"404 for what is not known": func(w http.ResponseWriter, n int) {
			if n == 0 {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = fmt.Fprintf(w, `{"count":%d}`, n)
		},
		"a list that is null": func(w http.ResponseWriter, n int) {
			if n == 0 {
				_, _ = fmt.Fprint(w, `{"count":null}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"count":[%s]}`, strings.TrimSuffix(strings.Repeat("1,", n), ","))
		},
	} {
		s, url := newSample(t, choices{}, quirk{})
		o := sampleOptions(url)
		o.Witness = witness(t, s, answer) + "?ref={ref}#/count"
		o.Run = []string{"replay/**", "conflict/not-executed"}
		if rep := run(t, o); len(wrong(rep)) > 0 || find(t, rep, "conflict/not-executed").Verdict != conformance.VerdictPass {
			t.Errorf("%s: got %s, want nothing\n%s", name, list(wrong(rep)), text(rep))
		}
	}
}

// witness serves the counts of a sample in another form.
func witness(t *testing.T, s *sample, answer func(w http.ResponseWriter, n int)) string {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		s.mu.Lock()
		n := s.effects[r.URL.Query().Get("ref")]
		s.mu.Unlock()
		answer(w, n)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
