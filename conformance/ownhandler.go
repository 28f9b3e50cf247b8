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

// ownHandler is the handler that the suite supplies, and steers it: it counts
// effects by reference, waits at gates, fails and crashes as told. It is safe for
// concurrent use.
type ownHandler struct {
	reference *regexp.Regexp

	mu      sync.Mutex
	made    int // effects and failures so far; each has its number
	counts  map[string]int
	scripts map[string]*script
}

// script is what the handler does with one reference.
type script struct {
	gate    *gate // nil once it has been entered
	open    func()
	wait    chan struct{}
	status  int
	times   int // of status; 0: always
	crashes int
	late    bool // crash after the effect
	reply   *reply
}

// reply is an answer that a case wants of the handler.
type reply struct {
	status int
	header [][2]string
	body   []byte
}

func newOwnHandler() *ownHandler {
	return &ownHandler{
		reference: regexp.MustCompile(`r[0-9a-f]{24}`),
		counts:    map[string]int{}, scripts: map[string]*script{},
	}
}

func (s *ownHandler) ownsHandler() bool { return true }

// script returns what the handler does with a reference; the lock is held.
func (s *ownHandler) script(ref string) *script {
	if s.scripts[ref] == nil {
		s.scripts[ref] = &script{}
	}
	return s.scripts[ref]
}

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

func (s *ownHandler) fail(op *operation, status, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op.failing = status
	at := s.script(op.ref)
	at.status, at.times = status, times
	if times == 0 {
		at.times = -1
	}
}

func (s *ownHandler) crash(op *operation, afterEffect bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.script(op.ref)
	at.crashes, at.late = 1, afterEffect
}

func (s *ownHandler) answer(op *operation, with reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script(op.ref).reply = &with
}

func (s *ownHandler) effects(_ context.Context, ref string) (int, Witness, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[ref], WitnessCounted, nil
}

// ServeHTTP is the handler behind the middleware. A request whose body does not
// arrive whole has no effect.
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

// act is what one run of the handler is to do.
type act struct {
	wait   chan struct{}
	crash  bool
	late   bool
	status int
	reply  *reply
}

// enter returns what this run of the handler is to do, and takes it from the
// script.
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

// problem answers with a failure. It names an instance, so that a second run can be
// told from a stored answer.
func (s *ownHandler) problem(w http.ResponseWriter, status int) {
	s.mu.Lock()
	s.made++
	body := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"instance":"/failures/%d"}`, http.StatusText(status), status, s.made)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the client may have left
}

// count counts an effect and gives its number.
func (s *ownHandler) count(ref string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	s.counts[ref]++
	return s.made
}

// effect counts an effect and answers with it, or with what the case wants instead.
func (s *ownHandler) effect(w http.ResponseWriter, ref string, with *reply) {
	made := s.count(ref)
	id, visit := "effect_"+strconv.Itoa(made), strconv.Itoa(7919*made)
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

// gunzip reads a compressed body, if it is one.
func gunzip(body []byte) ([]byte, bool) {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, false
	}
	plain, err := io.ReadAll(io.LimitReader(z, answerBytesMax))
	return plain, err == nil
}
