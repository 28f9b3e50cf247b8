package company_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
)

// weather is what the server does to each request of a scenario.
type weather uint8

const (
	fair      weather = iota
	lost              // the effect takes place, and its answer is lost
	conflict          // 409: still being processed
	declines          // 402, which the server does not store
	declinesL         // 402 with a long body
	slow              // the effect takes place after server.takes
	down              // no connection is had
)

// server honours keys, and counts effects by intent. It is the transport of all clients.
type server struct {
	mu       sync.Mutex
	weather  weather
	window   time.Duration        // after which a key is forgotten
	takes    time.Duration        // how long the server takes where it is slow
	auth     bool                 // a request without credentials is answered 404
	stored   map[string]kept      // by account and key
	effects  map[string]int       // by intent
	requests map[string]int       // by intent
	keys     map[string]int       // effects by key
	closed   map[string]error     // intents whose caller was told that nothing happened and nothing is pending
	at       map[string]time.Time // of the latest effect
	failures []string
}

// kept is the answer under a key.
type kept struct {
	request, answer string
	at              time.Time
}

func newServer() *server {
	return &server{window: window, takes: 20 * time.Second, stored: map[string]kept{}, effects: map[string]int{}, requests: map[string]int{}, keys: map[string]int{}, closed: map[string]error{}, at: map[string]time.Time{}}
}

// configure changes how the server is.
func (s *server) configure(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

var errLost = errors.New("connection reset")

// seen is a request as the server reads it.
type seen struct {
	key, account, intent, body string
	region                     string // which knows keys of its own
	bare                       bool
}

// readRequest reads what the request wants: its order, for the tenant and by the query that it has.
func readRequest(req *http.Request) seen {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body) // it is in memory
		req.Body.Close()
	}
	s := seen{region: regionOf(req), account: req.Header.Get("Stripe-Account"), body: string(body), bare: req.Header.Get("Authorization") == ""}
	for name, lines := range req.Header {
		if strings.EqualFold(name, "Idempotency-Key") {
			s.key = strings.Trim(strings.Join(lines, ","), `"`)
		}
	}
	s.intent = strings.Join([]string{order(body), req.URL.Query().Get("n"), req.Header.Get("X-Tenant"), s.account, req.Header.Get(noteHeader)}, " ")
	return s
}

// regional is the way to one region of the API.
type regional struct {
	*server
	region string
}

type regionName struct{}

func (r regional) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.server.RoundTrip(req.WithContext(context.WithValue(req.Context(), regionName{}, r.region)))
}

// regionOf is the region that a request is sent to.
func regionOf(req *http.Request) string {
	region, _ := req.Context().Value(regionName{}).(string)
	return region
}

// order is the member of that name of a body; empty if there is none.
func order(body []byte) string {
	var has struct{ Order string }
	_ = json.Unmarshal(body, &has) // else it has none
	return has.Order
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	r := readRequest(req)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	weather, takes := s.weather, s.takes
	s.mu.Unlock()
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		trace.GetConn(req.URL.Host)
		if weather == down {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		trace.GotConn(httptrace.GotConnInfo{})
	}
	if req.Method == http.MethodGet {
		return s.find(req), nil
	}
	if weather == slow {
		done := make(chan *http.Response, 1)
		time.AfterFunc(takes, func() { done <- s.answer(req, r, fair) }) // also where the client has left
		select {
		case resp := <-done:
			return resp, nil
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	resp := s.answer(req, r, weather)
	if weather == lost {
		return nil, errLost
	}
	return resp, nil
}

// answer does what the request wants, once for its key.
func (s *server) answer(req *http.Request, r seen, weather weather) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[r.intent]++
	name := strings.Join([]string{r.account, r.region, r.key}, "|")
	was, known := s.stored[name]
	known = known && time.Since(was.at) < s.window
	switch {
	case s.auth && r.bare:
		return respond(req, 404, `{"error":"no such account"}`)
	case known && was.request != r.intent+r.body:
		return respond(req, 422, `{"error":"the key belongs to another request"}`)
	case known:
		return respond(req, 201, was.answer)
	case weather == conflict:
		return respond(req, 409, `{"error":"in progress"}`)
	case weather == declines, weather == declinesL:
		note := ""
		if weather == declinesL {
			note = strings.Repeat("x", 2000)
		}
		return respond(req, 402, fmt.Sprintf(`{"error":"declined","note":%q}`, note))
	}
	answer := fmt.Sprintf(`{"intent":%q,"note":%q}`, r.intent, strings.Repeat("x", 300))
	if r.key != "" {
		s.stored[name] = kept{r.intent + r.body, answer, time.Now()}
	}
	s.effect(r)
	return respond(req, 201, answer)
}

// effect counts an effect. The caller holds mu.
func (s *server) effect(r seen) {
	s.effects[r.intent]++
	s.keys[r.key]++
	s.at[r.intent] = time.Now()
	if n := s.effects[r.intent]; n > 1 {
		s.failures = append(s.failures, fmt.Sprintf("%q has %d effects, the last one under %q", r.intent, n, r.key))
	}
	if err := s.closed[r.intent]; err != nil {
		s.failures = append(s.failures, fmt.Sprintf("%q takes effect under %q although its caller was told: %v", r.intent, r.key, err))
	}
}

// find is the lookup by the business reference.
func (s *server) find(req *http.Request) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ref := "", req.URL.Query().Get("ref")
	for intent, n := range s.effects {
		if strings.HasPrefix(intent, ref+" ") && n > 0 {
			found = fmt.Sprintf(`{"reference":%q}`, ref)
		}
	}
	return respond(req, 200, `{"data":[`+found+`]}`)
}

// respond is an answer.
func respond(req *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader([]byte(body))),
	}
}

// set changes the weather.
func (s *server) set(w weather) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.weather = w
}

// happened returns the number of effects of an intent.
func (s *server) happened(intent string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[intent]
}

// asked reports whether a request of an intent has reached the server.
func (s *server) asked(intent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[intent] > 0
}

// under returns the number of effects under a key, also one that travels within a token, or not at all.
func (s *server) under(key oncehttp.Key) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sent, effects := range s.keys {
		if sent == "" || strings.HasSuffix(sent, string(key)) {
			n += effects
		}
	}
	return n
}

// told notes what a call about an intent was told. asking: the call begins, and what was said before holds no longer.
func (s *server) told(intent string, err error, asking bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asking {
		delete(s.closed, intent)
		return
	}
	s.closed[intent] = err
}
