package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// ownHandler is the suite's own handler and its steering. It counts effects by reference,
// waits at gates, and fails or crashes as told. It is safe for concurrent use.
type ownHandler struct {
	reference *regexp.Regexp // finds the reference in a path or body

	mu      sync.Mutex // guards the fields below, and every script
	made    int        // effects and failures so far; each answer has its number
	counts  map[string]int
	scripts map[string]*script
}

// script holds the orders for requests with one reference. The handler's lock guards it.
type script struct {
	gate    *gate         // nil: there is none, or a request has entered it
	open    func()        // releases the gate; nil: there never was one
	wait    chan struct{} // closed by open; nil: requests do not wait
	status  int           // of failures
	times   int           // failures that remain; 0: none, negative: without end
	crashes int           // crashes that remain
	late    bool          // crashes come after the effect
	reply   *reply        // nil: the handler's own answer
}

// reply is an answer that a case wants from the suite's handler.
type reply struct {
	status int
	header [][2]string
	body   []byte
}

// newOwnHandler returns the suite's own handler, which counts effects by the references in requests and misbehaves as cases ask it to.
func newOwnHandler() *ownHandler {
	return &ownHandler{
		reference: regexp.MustCompile(`r[0-9a-f]{24}`), // as newOperation makes references
		counts:    map[string]int{}, scripts: map[string]*script{},
	}
}

// ownsHandler is true: the suite runs the handler itself.
func (s *ownHandler) ownsHandler() bool { return true }

// script returns the orders of a case for requests with this reference (be slow, fail, crash), new ones if there are none. The caller holds s.mu.
func (s *ownHandler) script(ref string) *script {
	if s.scripts[ref] == nil {
		s.scripts[ref] = &script{}
	}
	return s.scripts[ref]
}

// hold makes requests with op's reference wait until the gate is released, so that duplicates meet them at work; the duration is not needed here. The
// caller's release closes wait. The gate's entered is closed when the first of them arrives.
func (s *ownHandler) hold(op *operation, _ time.Duration) *gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := make(chan struct{})
	var once sync.Once
	g := &gate{entered: make(chan struct{}), open: func() { once.Do(func() { close(wait) }) }}
	at := s.script(op.ref)
	at.gate, at.open, at.wait = g, g.open, wait
	return g
}

// fail makes the handler answer requests with op's reference with this status. It does so times times; 0 means always.
func (s *ownHandler) fail(op *operation, status, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op.failing = status // so that the sender does not take its 429 or 503 for a rate limit
	at := s.script(op.ref)
	at.status, at.times = status, times
	if times == 0 {
		at.times = -1
	}
}

// crash makes the handler crash once at the next request with op's reference, before its effect or after it.
func (s *ownHandler) crash(op *operation, afterEffect bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.script(op.ref)
	at.crashes, at.late = 1, afterEffect
}

// answer sets the handler's answer to requests with op's reference. They still have an effect.
func (s *ownHandler) answer(op *operation, with reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script(op.ref).reply = &with
}

// effects returns the number of effects of a reference that the handler has counted. The Witness is always WitnessCounted (an exact count), and the
// error nil.
func (s *ownHandler) effects(_ context.Context, ref string) (int, Witness, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[ref], WitnessCounted, nil
}

// ServeHTTP is the handler behind the middleware under test. Each request with a whole body has an effect, unless the case has ordered a failure or a
// crash for its reference (its script), or the body is broken JSON. GET, HEAD and OPTIONS have none. A crash is a panic. An action without a body has
// its reference in the path.
func (s *ownHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, answerBytesMax))
	if err != nil {
		http.Error(w, "the body did not arrive whole", http.StatusBadRequest)
		return
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	ref := s.reference.FindString(r.URL.Path)
	if ref == "" {
		ref = string(s.reference.Find(body))
	}
	act := s.enter(ref)
	if act.wait != nil {
		<-act.wait
	}
	switch {
	case act.crash:
		if act.late {
			s.count(ref)
		}
		panic("conformance: this crash was asked for")
	case r.Header.Get("Content-Type") == "application/json" && len(body) > 0 && !json.Valid(body):
		s.problem(w, http.StatusBadRequest)
	case act.status != 0:
		s.problem(w, act.status)
	default:
		s.effect(w, ref, act.reply)
	}
}

// act is the order for one request.
type act struct {
	wait   chan struct{} // nil: no wait
	crash  bool
	late   bool   // the crash comes after the effect
	status int    // of a failure; 0: it succeeds
	reply  *reply // nil: the handler's own answer
}

// enter returns the behaviour that the case has ordered for the next request with this reference, and counts off its failures and crashes. It tells
// the case, by the gate's entered, that the first request has arrived. times below zero means failures without end.
func (s *ownHandler) enter(ref string) act {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.scripts[ref]
	if at == nil {
		return act{}
	}
	a := act{wait: at.wait, reply: at.reply}
	if at.gate != nil {
		close(at.gate.entered)
		at.gate = nil
	}
	if at.crashes > 0 {
		at.crashes--
		a.crash, a.late = true, at.late
	}
	if at.times != 0 {
		at.times--
		a.status = at.status
	}
	return a
}

// problem answers with a failure. Its body has a number of its own, so that a second execution
// differs from a stored answer.
func (s *ownHandler) problem(w http.ResponseWriter, status int) {
	s.mu.Lock()
	s.made++
	body := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"instance":"/failures/%d"}`, http.StatusText(status), status, s.made)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the client may have left
}

// count counts an effect of a reference, and returns a number that is new within the run; failures of problem take numbers of the same sequence.
func (s *ownHandler) count(ref string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	s.counts[ref]++
	return s.made
}

// effect counts an effect and answers with it, or with the reply that the case has set if that is not nil.
func (s *ownHandler) effect(w http.ResponseWriter, ref string, with *reply) {
	made := s.count(ref)
	id, visit := "effect_"+strconv.Itoa(made), strconv.Itoa(7919*made) // another number for each cookie
	if with == nil {
		with = &reply{
			status: http.StatusCreated, body: fmt.Appendf(nil, `{"id":%q,"reference":%q}`, id, ref),
			header: [][2]string{{"Content-Type", "application/json"}, {"Location", "/effects/" + id}, {"Set-Cookie", "visit=" + visit + "; HttpOnly"}},
		}
	}
	for _, field := range with.header {
		w.Header().Set(field[0], field[1])
	}
	w.WriteHeader(with.status)
	if len(with.body) > 0 {
		_, _ = w.Write(with.body) // the client may have left
	}
}

// gzipReply returns an answer whose body is compressed.
func gzipReply() reply {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(`{"id":"compressed"}`)) // into memory
	_ = z.Close()
	return reply{status: http.StatusCreated, body: b.Bytes(), header: [][2]string{
		{"Content-Type", "application/json"}, {"Content-Encoding", "gzip"},
	}}
}

// gunzip returns the uncompressed body. False: body is no whole gzip.
func gunzip(body []byte) ([]byte, bool) {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, false
	}
	plain, err := io.ReadAll(io.LimitReader(z, answerBytesMax))
	return plain, err == nil
}
