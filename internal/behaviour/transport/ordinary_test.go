package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/profile"
)

// ordinaryConfigs are the configurations with which ordinary traffic is sent.
func ordinaryConfigs() map[string]func(*oncehttp.Config) {
	return map[string]func(*oncehttp.Config){
		"draft-07":   func(*oncehttp.Config) {},
		"stripe":     func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() },
		"gocardless": func(cfg *oncehttp.Config) { cfg.Profile = profile.GoCardless() },
		"keyless":    func(cfg *oncehttp.Config) { cfg.Profile = profile.None() },
	}
}

// traffic is a server of ordinary traffic, which counts what it gets: "METHOD /path".
type traffic struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string]int
}

func startTraffic(t *testing.T, cases map[string]ordinary, h2 bool) *traffic {
	s := &traffic{got: map[string]int{}}
	names := trafficNames(cases)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		parts := strings.Split(req.URL.Path, "/") // "", who sends, the number of the case
		s.mu.Lock()
		s.got[req.Method+" "+strings.Join(parts[:3], "/")]++
		s.mu.Unlock()
		n, _ := strconv.Atoi(parts[2])
		cases[names[n]].answer(w, req)
	}))
	s.EnableHTTP2 = h2
	if h2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections) // event streams do not end by themselves
	return s
}

func (s *traffic) count(method, path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[method+" "+path]
}

func trafficNames(cases map[string]ordinary) []string {
	var names []string
	for name := range cases {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// request is the call to a path of the server.
func (o ordinary) request(t *testing.T, url string) *http.Request {
	t.Helper()
	var body io.Reader = strings.NewReader("{}")
	switch o.body {
	case "":
	case "none":
		body = nil
	default:
		body = strings.NewReader(o.body)
	}
	req, err := http.NewRequest(o.verb(), url, body)
	if err != nil {
		t.Fatal(err)
	}
	if o.body == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for line := range strings.Lines(o.header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		req.Header.Set(name, value)
	}
	return req
}

func (o ordinary) verb() string {
	if o.method == "" {
		return http.MethodPost
	}
	return o.method
}

// read returns the answer's status and body; of a stream its first bytes.
func (o ordinary) read(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	var b []byte
	var err error
	if o.stream {
		b = make([]byte, 5)
		_, err = io.ReadFull(resp.Body, b)
	} else {
		b, err = io.ReadAll(resp.Body)
	}
	if err != nil {
		t.Errorf("the body: %v", err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, b)
}

// TestOrdinaryTraffic: whatever an API that works answers, each operation is sent once and then decided: nothing is held, pending or in
// doubt, and the caller gets the answer that a plain http.Client gets.
func TestOrdinaryTraffic(t *testing.T) {
	t.Parallel()
	for protocol, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		for name, change := range ordinaryConfigs() {
			if h2 && name == "gocardless" {
				continue
			}
			t.Run(protocol+" "+name, func(t *testing.T) {
				t.Parallel()
				cases := ordinaryTraffic()
				s := startTraffic(t, cases, h2)
				transport := s.Client().Transport.(*http.Transport).Clone()
				t.Cleanup(transport.CloseIdleConnections)
				ended := make(chan oncehttp.Event, 2*len(cases))
				c, j := clienttest.New(t, transport, func(cfg *oncehttp.Config) {
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						if e.Kind == oncehttp.EventFinished && strings.HasPrefix(string(e.Key), "k:/Run/") {
							ended <- e
						}
					}
					change(cfg)
					if cfg.Profile == nil {
						cfg.Profile = profile.Draft07()
					}
					cfg.Profile.Own.SeeOther = profile.Yes
					cfg.Retry = clienttest.Quick(2)
					cfg.Retry.AttemptTimeout = time.Minute // so that a busy machine is not taken for a slow API
					if name == "draft-07" && !h2 {
						cfg.Journal = openBolt(t)
					}
					cfg.Authorize = func(req *http.Request) error {
						req.Header.Set("Authorization", fmt.Sprint("Bearer ", time.Now().UnixNano())) // renewed each time
						return nil
					}
				})
				for i, what := range trafficNames(cases) {
					o := cases[what]
					if h2 && o.http1 {
						continue
					}
					t.Run(what, func(t *testing.T) { o.test(t, c, j, s, transport, i) })
				}
				ordinaryRun{c, j, s, cases, h2, ended}.test(t)
			})
		}
	}
}

func openBolt(t *testing.T) persist.Journal {
	j, err := bolt.Open(testrun.Dir(t)+"/j.db", bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// test sends a call by Do, with a key and without, and through the Transport.
func (o ordinary) test(t *testing.T, c *oncehttp.Client, j persist.Journal, s *traffic, transport http.RoundTripper, i int) {
	plainly := func(follow bool) string {
		client := &http.Client{Transport: transport}
		if !follow {
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		}
		resp, err := client.Do(o.request(t, fmt.Sprintf("%s/plain/%d", s.URL, i)))
		if err != nil {
			t.Fatal(err)
		}
		return o.read(t, resp)
	}
	for _, door := range []string{"DoKey", "Do", "Transport"} {
		path := fmt.Sprintf("/%s/%d", door, i)
		req := o.request(t, s.URL+path)
		var resp *http.Response
		var err error
		follow := door == "Transport"
		switch door {
		case "DoKey":
			resp, err = c.DoKey(req, oncehttp.Key("k:"+path))
		case "Do":
			resp, err = c.Do(req)
		default:
			resp, err = (&http.Client{Transport: c.Transport()}).Do(req)
		}
		if err != nil {
			t.Errorf("%s: %v", door, err)
		} else if got, want := o.read(t, resp), plainly(follow); got != want {
			t.Errorf("%s: %.200q, want %.200q", door, got, want)
		}
		if n, gets := s.count(o.verb(), path), s.count("GET", path); n != 1 || gets > 0 && !follow || follow && gets != o.gets {
			t.Errorf("%s: %d sends and %d GETs", door, n, gets)
		}
	}
	allDecided(t, j)
}

// allDecided checks that nothing in the journal is pending or held.
func allDecided(t *testing.T, j persist.Journal) {
	t.Helper()
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if !rec.State.Final() {
			t.Errorf("%s %s is %v (%s)", rec.Method, rec.Target, rec.State, rec.HoldReason)
		}
	}
}

// ordinaryRun sends all cases by Enqueue and Run.
type ordinaryRun struct {
	c     *oncehttp.Client
	j     persist.Journal
	s     *traffic
	cases map[string]ordinary
	h2    bool
	ended <-chan oncehttp.Event // each operation of Run
}

func (r ordinaryRun) test(t *testing.T) {
	names := trafficNames(r.cases)
	n := 0
	for i, what := range names {
		if r.h2 && r.cases[what].http1 {
			continue
		}
		n++
		path := fmt.Sprintf("/Run/%d", i)
		if err := r.c.Enqueue(r.cases[what].request(t, r.s.URL+path), oncehttp.Key("k:"+path)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.c.Run(ctx) }()
	for ; n > 0; n-- {
		if e := <-r.ended; e.Err != nil {
			t.Errorf("%s: %v", e.Key, e.Err)
		}
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for i, what := range names {
		path := fmt.Sprintf("/Run/%d", i)
		if r.h2 && r.cases[what].http1 {
			continue
		}
		if n, gets := r.s.count(r.cases[what].verb(), path), r.s.count("GET", path); n != 1 || gets != 0 {
			t.Errorf("Run, %s: %d sends and %d GETs", what, n, gets)
		}
	}
	allDecided(t, r.j)
}
